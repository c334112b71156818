// Values that stay on their device, when something is wrong: clear errors, a state that stays as it was, and never a
// hang.
#include "support/bound_values.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

TEST_CASE("pairs that cannot be bound are refused with the reason", "[actors][B7]") {
  graph_builder b;
  const value_id x = b.input("x", {2, 3}), z = b.input("z", {6});
  const value_id y = b.op("Relu", {x}), w = b.op("Relu", {z});
  b.output(y);
  b.output(w);
  const std::string out = b.name(y), other = b.name(w);
  graph g = b.g;
  g.values[y].type = dtype::float32;
  g.values[y].dims = to_symbolic(shape{2, 3});
  engine e(engine_of({reference("ref")}));
  const session model = e.load(g);
  const auto refused = [&](std::vector<output_binding> pairs, const std::string& words) {
    refuses([&] { model.bind(std::move(pairs)); }, errc::invalid_argument, words);
  };
  refused({{"nothing", "x"}}, "no such output");
  refused({{out, "nothing"}}, "no such input");
  refused({{out, "x"}, {out, "z"}}, "bound twice");
  refused({{out, "x"}, {other, "x"}}, "bound twice");
  refused({{out, "z"}}, "cannot be bound to input 'z'");
  bound_session bound = model.bind({{out, "x"}});
  const tensor six = filled({2, 3}, 1.f), line = filled({6}, 1.f);
  refuses([&] { bound.run({{"z", line}}); }, errc::invalid_input, "needs its initial value");
  refuses([&] { bound.fetch(out); }, errc::invalid_argument, "no value yet");
  refuses([&] { bound.fetch(other); }, errc::invalid_argument, "is not bound");
  refuses(
      [&] {
        model.run({{"x", six}, {"z", line}}, {.keep = {"nothing"}});
      },
      errc::invalid_argument, "no such output");
  refuses([&] { model.run({{"x", six}, {"z", line}}, {.keep = {out, out}}); }, errc::invalid_argument, "twice");
  const auto on_device = [&](const tensor& t) { return run_options{.device_inputs = {{"x", e.put(t, "ref")}}}; };
  refuses([&] { model.run({{"x", six}, {"z", line}}, on_device(six)); }, errc::invalid_input, "given twice");
  refuses([&] { model.run({{"z", line}}, on_device(line)); }, errc::invalid_input, "shape [6]");
  refuses([&] { model.run({{"z", line}}, on_device(tensor(dtype::int32, {2, 3}))); }, errc::invalid_input, "is int32");
  refuses(
      [&] {
        model.run({{"z", line}}, {.device_inputs = {{"x", nullptr}}});
      },
      errc::invalid_input, "holds no tensor");
  refuses([&] { e.put(six, "moon"); }, errc::invalid_argument, "no device 'moon'");
  refuses([&] { e.fetch(nullptr); }, errc::invalid_argument, "null");
  CHECK(model.run({{"z", line}}, on_device(six)).outputs.size() == 2);
}

TEST_CASE("values of another engine, and strings, are refused by a GPU", "[actors][vulkan][B7]") {
  engine mine(engine_of({gpu("g")})), other(engine_of({gpu("g")})), third(engine_of({gpu("h")}));
  const session model = mine.load(summing_model({4}));
  const auto run_with = [&](const device_tensor& state) {
    model.run({{"x", filled({4}, 1.f)}}, {.device_inputs = {{"state", state}}});
  };
  refuses([&] { run_with(other.put(filled({4}, 1.f), "g")); }, errc::invalid_argument, "another engine");
  refuses([&] { mine.fetch(other.put(filled({4}, 1.f), "g")); }, errc::invalid_argument, "another engine");
  refuses([&] { run_with(third.put(filled({4}, 1.f), "h")); }, errc::invalid_input, "does not have");
  refuses([&] { mine.put(tensor(dtype::string, {1}), "g"); }, errc::invalid_argument, "strings");
}

TEST_CASE("a run that fails leaves the bound state as it was", "[actors][B7]") {
  engine e(engine_of({reference("ref", {.fail_at = 2})}));
  bound_session sum = e.load(summing_model({3})).bind({{"next", "state"}});
  const auto step = [&] { return sum.run({{"x", filled({3}, 1.f)}}).outputs.at("y"); };
  sum.run({{"x", filled({3}, 1.f)}, {"state", filled({3}, 0.f)}});
  CHECK(same(step(), filled({3}, -2.f)));
  CHECK(thrown_by(step).code() == errc::device_failed);
  CHECK(thrown_by([&] { sum.run({{"x", filled({4}, 1.f)}}); }).code() == errc::invalid_input);
  CHECK(same(sum.fetch("next"), filled({3}, 2.f)));
  CHECK(same(step(), filled({3}, -3.f)));
  sum.run({{"x", filled({3}, 1.f)}, {"state", filled({3}, 9.f)}}); // starts over
  CHECK(same(sum.fetch("next"), filled({3}, 10.f)));
}

TEST_CASE("bound state on a device that is lost is one error that names device and value", "[actors][vulkan][C11]") {
  const bool on_gpu = GENERATE(false, true);
  engine e(engine_of({on_gpu ? gpu("d", {.lose_at = 6}) : reference("d", {.die_at = 5}), reference("spare")}));
  bound_session sum = e.load(summing_model({3})).bind({{"next", "state"}}, {.heal = false});
  const tensor x = filled({3}, 1.f);
  sum.run({{"x", x}, {"state", filled({3}, 0.f)}});
  error loss(errc::internal, "");
  for (int runs = 1; loss.code() == errc::internal && runs < 9; ++runs)
    loss = thrown_by([&] {
      const tensor y = sum.run({{"x", x}}).outputs.at("y");
      CHECK(same(y, filled({3}, -1.f - static_cast<float>(runs))));
    });
  CHECK(loss.code() == errc::device_lost);
  for (int again = 0; again < 2; ++again) {
    refuses([&] { sum.run({{"x", x}}); }, errc::device_lost, "input 'state' lay on device 'd'");
    refuses([&] { sum.fetch("next"); }, errc::device_lost, "device 'd'");
  }
  // Given anew, it goes on with the other device.
  sum.run({{"x", x}, {"state", filled({3}, 2.f)}});
  CHECK(same(sum.run({{"x", x}}).outputs.at("y"), filled({3}, -4.f)));
  CHECK(same(sum.fetch("next"), filled({3}, 4.f)));
}

TEST_CASE("a value that does not come from its device ends by deadline, by cancelling, or as a loss", "[actors][C11]") {
  engine e(engine_of({reference("a"), reference("b", {.stall_fetches = true})}, 300ms));
  const session model = e.load(summing_model({3}));
  const device_tensor state = e.put(filled({3}, 1.f), "b");
  const auto run = [&](run_options options) {
    options.device_inputs = {{"state", state}};
    return model.run_async({{"x", filled({3}, 1.f)}}, options);
  };
  CHECK(thrown_by([&] { run({.timeout = 30ms}).get(); }).code() == errc::timeout);
  std::stop_source stop;
  auto cancelled = run({.cancel = stop.get_token()});
  CHECK(cancelled.wait_for(20ms) == std::future_status::timeout);
  stop.request_stop();
  CHECK(thrown_by([&] { cancelled.get(); }).code() == errc::cancelled);
  refuses([&] { run({}).get(); }, errc::device_lost, "input 'state' lay on device 'b'");
  refuses([&] { e.fetch(state); }, errc::device_lost, "device 'b'");
  CHECK(model.run({{"x", filled({3}, 1.f)}, {"state", filled({3}, 1.f)}}).outputs.size() == 2);
}

TEST_CASE("a fetch of a silent device ends", "[actors][C11]") {
  engine e(engine_of({reference("a", {.stall_fetches = true})}, 100ms));
  const device_tensor value = e.put(filled({3}, 1.f), "a");
  refuses([&] { e.fetch(value); }, errc::device_lost, "did not answer in time");
}
