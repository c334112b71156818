// Large data is asked for when it is needed: cheap policies stay cheap over many tasks and devices.
#include "plan/place/policies.hpp"
#include "plan/place/policy_host.hpp"
#include "support/catch.hpp"

#include <stdexcept>

using namespace troupe;

namespace {

/// Tasks in a row without values, and devices; it counts the questions to it.
class counted_problem : public policy_host {
public:
  counted_problem(uint32_t tasks, uint32_t devices)
      : devices_(devices, policy_device{.name = "some", .memory_bytes = 1}), begin_(tasks + 1, 0), flags_(tasks, 0) {
    asked_.task_count = tasks;
    asked_.device_count = devices;
    asked_.devices = devices_.data();
    asked_.task_flags = flags_.data();
    asked_.input_begin = asked_.output_begin = asked_.reader_begin = begin_.data();
    asked_.allowed = [](void* context, uint32_t, uint32_t) {
      return answered<counted_problem>(context, 0, [](counted_problem& p) { return p.asked_allowed++ >= 0 ? 1 : 0; });
    };
    asked_.seconds = [](void* context, uint32_t, uint32_t) {
      return answered<counted_problem>(context, 1.0, [](counted_problem& p) {
        ++p.asked_seconds;
        if (p.is_broken)
          throw std::runtime_error("the table is lost");
        return 1.0;
      });
    };
  }

  int64_t asked_allowed = 0, asked_seconds = 0;
  bool is_broken = false;

private:
  std::vector<policy_device> devices_;
  std::vector<uint64_t> begin_;
  std::vector<uint8_t> flags_;
};

} // namespace

TEST_CASE("round-robin over 10,000 devices makes no table", "[schedules][C6]") {
  counted_problem problem(1'000'000, 10'000);
  const schedule made = problem.run(row_of(placement_policy::round_robin).place);
  CHECK(made.device[123'456] == 3456);
  CHECK(problem.asked_seconds == 0);
  CHECK(problem.asked_allowed == 2'000'000); // by the policy, and by the check of its answer
}

TEST_CASE("a question that fails ends the policy's run with its error", "[schedules][E5]") {
  counted_problem problem(3, 2);
  problem.is_broken = true;
  CHECK_THROWS_WITH(problem.run(row_of(placement_policy::heft).place), "the table is lost");
  problem.is_broken = false;
  CHECK(problem.run(row_of(placement_policy::heft).place).device == std::vector<uint32_t>{0, 1, 0});
}
