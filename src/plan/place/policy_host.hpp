// Who asks policies: fills in a `policy_problem`, answers its questions, and does not believe what comes back.
//
// The functions of a problem never throw, since a policy may be compiled C. What one of them cannot answer is kept and
// thrown when the policy has returned.
#pragma once

#include "plan/place/scheduling_problem.hpp"

#include <exception>
#include <functional>
#include <string>
#include <string_view>

namespace troupe {

/// What is called of a policy: as `place_function`, and it may know more.
using policy_call = std::function<int32_t(const policy_problem* problem, policy_result* result)>;

/// The base of all that is asked of policies.
class policy_host {
public:
  policy_host(const policy_host&) = delete;
  policy_host& operator=(const policy_host&) = delete;

  const policy_problem& asked() const { return asked_; }

  /// Runs a policy. `who` is what errors call it, such as "the policy plug-in 'mine' (libmine.so)"; empty for built-in
  /// ones, whose errors say all themselves. Throws what a question or the policy failed with; `errc::invalid_argument`
  /// if a plug-in throws, or answers with a device that does not exist or that may not run the task.
  schedule run(const policy_call& place, std::string_view who = {});

protected:
  policy_host();
  ~policy_host() = default;

  /// Answers a question about `context`, which is a `Host`; `otherwise` if it throws.
  template <class Host, class Answer, class Ask>
  static Answer answered(void* context, Answer otherwise, Ask&& ask) noexcept {
    Host& host = *static_cast<Host*>(static_cast<policy_host*>(context));
    try {
      return ask(host);
    } catch (...) {
      host.keep_problem();
      return otherwise;
    }
  }

  /// Keeps the exception that is being handled, unless there is an earlier one.
  void keep_problem() noexcept {
    if (!problem_)
      problem_ = std::current_exception();
  }

  policy_problem asked_{};
  std::string text_; // the last one that was asked for

private:
  struct failure {
    errc code = errc::internal;
    std::string text;
  };

  static void report(void* context, int32_t code, const char* message);
  void call(const policy_call& place, policy_result& result, std::string_view who);
  void check(const schedule& answer, std::string_view who);

  std::exception_ptr problem_; // what some question threw
  failure reported_;
};

} // namespace troupe
