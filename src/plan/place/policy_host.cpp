#include "plan/place/policy_host.hpp"

#include "base/plugin_file.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {
namespace {

/// What policies may say went wrong; all else is a wrong argument of the caller, who named the policy.
errc code_of(int32_t reported, bool built_in) {
  const auto code = static_cast<errc>(reported);
  const bool is_known =
      reported >= static_cast<int32_t>(errc::invalid_model) && reported <= static_cast<int32_t>(errc::internal);
  const bool is_expected = code == errc::unsupported || code == errc::out_of_memory;
  return is_expected || (built_in && is_known) ? code : errc::invalid_argument;
}

} // namespace

policy_host::policy_host() {
  asked_.abi_version = policy_abi_version;
  asked_.context = this;
  asked_.report = report;
}

void policy_host::report(void* context, int32_t code, const char* message) {
  auto& host = *static_cast<policy_host*>(context);
  try {
    host.reported_.text = message ? message : "";
    host.reported_.code = static_cast<errc>(std::clamp<int32_t>(code, 0, 255));
  } catch (...) {
    host.keep_problem();
  }
}

schedule policy_host::run(const policy_call& place, std::string_view who) {
  schedule answer{std::vector<uint32_t>(asked_.task_count, policy_none),
                  std::vector<double>(asked_.task_count, std::nan(""))};
  policy_result result{answer.device.data(), answer.start.data()};
  problem_ = nullptr;
  reported_ = {};
  call(place, result, who);
  check(answer, who);
  return answer;
}

void policy_host::call(const policy_call& place, policy_result& result, std::string_view who) {
  const int32_t status = call_plugin(who, "a policy reports what is wrong (`policy_problem::report`) and returns",
                                     [&] { return place(&asked_, &result); });
  if (problem_)
    std::rethrow_exception(std::exchange(problem_, nullptr));
  if (status == 0)
    return;
  const errc code = code_of(static_cast<int32_t>(reported_.code), who.empty());
  if (who.empty())
    throw error(code, reported_.text);
  fail(code, "{} failed: {}", who, failure_reason(status, reported_.text));
}

void policy_host::check(const schedule& answer, std::string_view who) {
  const auto refuse = [&](task_id n, const std::string& what) {
    const std::string task = asked_.task_name(asked_.context, n);
    expects(!who.empty(), "a built-in policy chose a device that cannot be");
    fail(errc::invalid_argument, "{} gave {} {}; ask `policy_problem::allowed` before, and give every task a device",
         who, task, what);
  };
  for (task_id n = 0; n < asked_.task_count; ++n) {
    const uint32_t d = answer.device[n];
    if (d == policy_none)
      refuse(n, "no device");
    if (d >= asked_.device_count)
      refuse(n, fmt::format("device {}, and there are only {}", d, asked_.device_count));
    if (asked_.allowed(asked_.context, n, d) == 0)
      refuse(n, fmt::format("'{}', which may not run it", asked_.devices[d].name));
  }
  if (problem_)
    std::rethrow_exception(std::exchange(problem_, nullptr));
}

} // namespace troupe
