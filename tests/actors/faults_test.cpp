// Random models on devices that fail, stall, hang or die on order: the right result, or one error that names the
// device.
#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/fault_device.hpp"
#include "support/random_models.hpp"
#include "support/reference_device.hpp"

#include <algorithm>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

const session_options by_nodes{.policy = placement_policy::round_robin};
const session_options by_parts{.policy = placement_policy::split, .split_along = -1};

/// How a device behaves in one test.
struct trouble {
  fault_script script;
  bool fails = false;  // a chunk of it may fail
  bool healthy = true; // it completes everything
};

trouble random_trouble(random_source& r) {
  trouble t;
  const uint64_t at = below(r, 8);
  switch (below(r, 10)) {
    case 0: t.script.fail_at = at, t.fails = true; break;
    case 1: t.script.stall_at = at; break;
    case 2: t.script.die_at = at; break;
    case 3: t.script.die_at_install = true; break;
    case 4:
      t.script.hang_at = at;
      t.script.latch = std::make_shared<hang_latch>();
      break;
    default: break;
  }
  t.healthy = t.script.fail_at == fault_script::never && t.script.stall_at == fault_script::never &&
              t.script.die_at == fault_script::never && t.script.hang_at == fault_script::never &&
              !t.script.die_at_install;
  if (below(r, 4) == 0)
    t.script.delay = std::chrono::microseconds(1 + below(r, 300));
  return t;
}

enum class outcome { right, right_after_loss, chunk_failed, all_lost };
constexpr std::array outcome_names{"right", "right after a loss", "one error: a chunk failed",
                                   "one error: devices lost"};

/// The device timeout is as long as it is because a busy machine may leave a healthy device's thread waiting.
engine troubled_engine(const std::vector<trouble>& troubles) {
  engine_hooks hooks;
  for (size_t d = 0; d < troubles.size(); ++d)
    hooks.custom_devices.push_back([d, script = troubles[d].script] {
      return std::make_unique<fault_device>(std::make_unique<reference_device>("dev" + std::to_string(d)), script);
    });
  return make_engine({.devices = {}, .device_timeout = 250ms}, hooks);
}

outcome judge_error(const error& e, const std::vector<trouble>& troubles) {
  INFO(e.what());
  const std::string text = e.what();
  REQUIRE(text.find("device 'dev") != std::string::npos);
  if (e.code() == errc::device_lost) {
    CHECK(std::none_of(troubles.begin(), troubles.end(), [](const trouble& t) { return t.healthy; }));
    return outcome::all_lost;
  }
  CHECK(e.code() == errc::device_failed);
  CHECK(std::any_of(troubles.begin(), troubles.end(), [](const trouble& t) { return t.fails; }));
  return outcome::chunk_failed;
}

/// One run on troubled devices; the result or the error is checked.
outcome troubled_run(uint64_t seed, session_options how) {
  random_source r(seed);
  const graph model = random_model(r);
  const named_tensors inputs = random_inputs(r);
  std::vector<trouble> troubles(2 + below(r, 3));
  for (trouble& t : troubles)
    t = random_trouble(r);
  outcome result = outcome::right;
  {
    engine e(troubled_engine(troubles));
    how.fuse = below(r, 2) == 0;
    const session s = e.load(model, how);
    try {
      const run_result answer = s.run(inputs, {.timeout = 20s});
      CHECK(equal(answer.outputs, evaluate_directly(model, inputs), how.policy == placement_policy::split ? 1e-5 : 0));
      result = answer.stats.lost_devices.empty() ? outcome::right : outcome::right_after_loss;
    } catch (const error& problem) {
      result = judge_error(problem, troubles);
    }
  }
  for (const trouble& t : troubles)
    if (t.script.latch)
      t.script.latch->release(); // the abandoned chunk may end now
  return result;
}

void run_seeds(uint64_t first, uint64_t count, const session_options& how) {
  std::array<int, 4> histogram{};
  double worst_ms = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    INFO("seed " << seed);
    const auto start = std::chrono::steady_clock::now();
    ++histogram.at(static_cast<size_t>(troubled_run(seed, how)));
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    CHECK(ms < 15'000);
    worst_ms = std::max(worst_ms, ms);
  }
  std::cout << count << " runs on troubled devices, longest " << worst_ms << " ms:";
  for (size_t i = 0; i < histogram.size(); ++i)
    std::cout << (i ? ", " : " ") << outcome_names[i] << " " << histogram[i];
  std::cout << "\n";
}

} // namespace

TEST_CASE("runs on devices in trouble end right or with one error", "[actors][C11][A13]") {
  run_seeds(1, 8, by_nodes);
  run_seeds(1, 8, by_parts);
}

TEST_CASE("1,000 runs on devices in trouble end right or with one error", "[actors][C11][A13][slow]") {
  run_seeds(1'000, 1'000, by_nodes);
}

TEST_CASE("300 runs in parts on devices in trouble end right or with one error", "[actors][C11][split][slow]") {
  run_seeds(3'000, 300, by_parts);
}
