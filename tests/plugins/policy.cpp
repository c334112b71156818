// Policy plug-ins for tests (tests/CMakeLists.txt): a library for each of these functions, chosen by `POLICY`, and some
// whose description of themselves is wrong.
#include <troupe/policy.hpp>

#include <stdexcept>

using namespace troupe;

namespace {

/// Each task on the last device that may run it.
[[maybe_unused]] int32_t last_device(const policy_problem* p, policy_result* result) {
  for (uint32_t n = 0; n < p->task_count; ++n)
    for (uint32_t d = 0; d < p->device_count; ++d)
      if (p->allowed(p->context, n, d))
        result->device[n] = d;
  return 0;
}

[[maybe_unused]] int32_t throws(const policy_problem*, policy_result*) {
  throw std::runtime_error("out of ideas");
}

[[maybe_unused]] int32_t throws_a_number(const policy_problem*, policy_result*) {
  throw 42;
}

[[maybe_unused]] int32_t no_such_device(const policy_problem* p, policy_result* result) {
  last_device(p, result);
  result->device[0] = p->device_count;
  return 0;
}

[[maybe_unused]] int32_t not_allowed(const policy_problem* p, policy_result* result) {
  for (uint32_t n = 0; n < p->task_count; ++n)
    result->device[n] = 0;
  return 0;
}

[[maybe_unused]] int32_t forgetful(const policy_problem*, policy_result*) {
  return 0;
}

[[maybe_unused]] int32_t reports(const policy_problem* p, policy_result*) {
  p->report(p->context, 5, "nothing is large enough");
  return 1;
}

[[maybe_unused]] int32_t gives_no_reason(const policy_problem*, policy_result*) {
  return 7;
}

} // namespace

extern "C" TROUPE_API const policy_plugin* ENTRY() {
  static const policy_plugin self{VERSION, CALLED, "for tests", POLICY};
  return SELF;
}
