// Plans that use devices of other hosts: a session makes them, but does not run them.
#include "actors/shared_ledger.hpp"
#include "run/session_machine.hpp"
#include "support/catch.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

TEST_CASE("a run whose plan uses another host is refused before anything is sent", "[run][C11]") {
  std::vector<device_info> devices;
  ledger_accounts accounts;
  for (const std::string host : {"", "far"}) {
    devices.push_back({.name = "d" + host, .host = host, .kind = device_kind::null, .memory_bytes = int64_t{1} << 40});
    accounts.push_back(std::make_shared<actors::shared_ledger>(int64_t{1} << 40)->open([] {}));
  }
  const session_options options{.policy = placement_policy::round_robin, .fuse = false};
  auto plans = std::make_shared<session_plans>(make_model(chain(2), options, 0), devices);
  session_machine machine(devices, std::move(accounts), std::move(plans), completion_mode::device);
  const named_tensors inputs{{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}};
  machine.start_run(std::make_shared<run_request>(inputs, run_options{}));
  machine.ask_plan(7, inputs);
  std::optional<failure> refused;
  bound_plan_ptr shown;
  std::vector<command> commands;
  for (machine.take_commands(commands); !commands.empty(); machine.take_commands(commands))
    for (const command& c : commands) {
      CHECK_FALSE(std::holds_alternative<device_order>(c));
      if (const auto* job = std::get_if<plan_wanted>(&c))
        machine.on(planned{job->job, capture(job->make)});
      else if (const auto* ended = std::get_if<run_answer>(&c))
        refused = ended->why;
      else if (const auto* answer = std::get_if<query_answer>(&c))
        shown = answer->bound;
    }
  REQUIRE(refused);
  CHECK(refused->code == errc::unsupported);
  CHECK_THAT(refused->message, Contains("device 'dfar' of host 'far'"));
  REQUIRE(shown);
  CHECK(shown->source->transfers.at(1).route == transfer_route::remote);
  CHECK(machine.idle());
}
