// Placement policies that the program itself has, instead of a shared library (troupe/policy.hpp).
//
//   const troupe::own_policy mine("mine", [](const troupe::policy_problem* p, troupe::policy_result* r) {
//     for (uint32_t n = 0; n < p->task_count; ++n)
//       r->device[n] = n % p->device_count;
//     return 0;
//   });
//   auto session = engine.load("model.onnx", {.policy_plugin = mine.handle()});
#pragma once

#include "troupe/export.hpp"
#include "troupe/policy.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// A function as a policy. Its rules are those of a plug-in's (`place_function`), but it may throw: what it throws is
/// reported. Any thread may call it, and several at once.
class TROUPE_API own_policy {
public:
  using function = std::function<int32_t(const policy_problem* problem, policy_result* result)>;

  /// Throws `errc::invalid_argument` unless the name is 1 to 64 letters, digits, '-' and '_', and not a built-in one.
  own_policy(std::string name, function place);
  ~own_policy();
  own_policy(const own_policy&) = delete;
  own_policy& operator=(const own_policy&) = delete;

  /// Returns what means this policy where a plug-in's file would be named (`session_options::policy_plugin`), while
  /// this object lives. Sessions keep the function.
  const std::string& handle() const { return handle_; }

private:
  std::string handle_;
};

} // namespace troupe
