// Caches of a decoder that stay on their device and grow there: the same results as through the host, whatever becomes
// of earlier values.
#include "support/held_caches.hpp"
#include "support/tapped_device.hpp"

#include <thread>

using namespace troupe;
using namespace troupe::test;

TEST_CASE("bound caches grow as if they had gone through the host", "[actors][vulkan][B7]") {
  const stage& s = GENERATE(from_range(stages()));
  const int64_t batch = GENERATE(1, 3);
  const precision how = GENERATE(precision::fp32, precision::fp16);
  const auto decoder = GENERATE(cached_decoder, projected_decoder, decoder_by_operator);
  INFO(s.name << ", batch " << batch << (how == precision::fp16) << (decoder == cached_decoder));
  engine e(engine_of(s.devices));
  const session model = e.load(decoder(2), {.precision = how});
  fed_decoder fed(model, batch);
  bound_session bound = model.bind(pairs());
  // A prompt, single tokens beyond the room of several layouts, more queries than the kernel for few takes, and tokens
  // again.
  std::vector<int64_t> counts(46, 1);
  for (const auto& [step, count] : std::map<size_t, int64_t>{{0, 5}, {30, 2}, {38, 7}})
    counts[step] = count;
  for (size_t i = 0; i < counts.size(); ++i) {
    INFO("step " << i);
    const tensor x = tokens(counts[i], i, batch), wanted = fed.step(x);
    named_tensors inputs = i == 0 ? empty_caches(batch) : named_tensors();
    inputs["x"] = x;
    const run_result r = bound.run(inputs);
    CHECK(r.stats.fetched_bytes == 0);
    CHECK(r.outputs.size() == 1);
    REQUIRE(same(r.outputs.at("y"), wanted));
    if (i % 9 == 4 || i + 1 == counts.size())
      for (const output_binding& pair : pairs())
        REQUIRE(same(bound.fetch(pair.output), fed.caches.at(pair.input)));
  }
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("caches that grow in place are neither copied nor recorded anew, and have room", "[vulkan][B7]") {
  engine e(engine_of({gpu("d")}));
  const auto decoder = GENERATE(cached_decoder, projected_decoder, decoder_by_operator);
  const session model = e.load(decoder(2), {.precision = GENERATE(precision::fp32, precision::fp16)});
  bound_session bound = model.bind(pairs());
  named_tensors first = empty_caches();
  first["x"] = tokens(20, 1);
  bound.run(first);
  const auto step = [&](uint64_t seed) { bound.run({{"x", tokens(1, seed)}}); };
  const auto settled_bytes = [&] { // the last run's input is let go when its coordinator has looked up
    int64_t last = -1, now = e.stats().at(0).resident_bytes;
    for (const auto start = std::chrono::steady_clock::now();
         now != last || std::chrono::steady_clock::now() - start < std::chrono::milliseconds(20); last = now) {
      std::this_thread::yield();
      now = e.stats().at(0).resident_bytes;
    }
    return now;
  };
  for (uint64_t i = 0; i < 42; ++i) {
    step(i);
    const int64_t position = 4 * 2 * 8 * 4, used = position * (21 + static_cast<int64_t>(i)), held = settled_bytes();
    CHECK(held >= used);
    CHECK(held < 2 * used + 16 * position); // once, with room for as many again, and for another prompt
  }
  const device_stats before = e.stats().at(0);
  const int64_t room = settled_bytes();
  for (uint64_t i = 0; i < 3; ++i) { // later ones than the first of a layout
    step(i);
    CHECK(settled_bytes() == room);
  }
  CHECK(e.stats().at(0).recorded_chunks == before.recorded_chunks);
  CHECK(e.stats().at(0).arena_bytes == before.arena_bytes);
}

TEST_CASE("a bound step may keep the caches that it hands on", "[vulkan][B7]") {
  engine e(engine_of({gpu("d")}));
  const session model = e.load(cached_decoder(2));
  bound_session bound = model.bind(pairs());
  fed_decoder fed(model);
  named_tensors first = empty_caches();
  first["x"] = tokens(3, 1);
  bound.run(first);
  fed.step(tokens(3, 1));
  for (uint64_t i = 0; i < 4; ++i) { // from the second on, caches are made ahead
    const run_result r = bound.run({{"x", tokens(1, i)}}, {.keep = presents()});
    fed.step(tokens(1, i));
    for (const output_binding& pair : pairs()) {
      CHECK(same(e.fetch(r.kept.at(pair.output)), fed.caches.at(pair.input)));
      CHECK(same(e.fetch(r.kept.at(pair.output)), bound.fetch(pair.output)));
    }
  }
}

TEST_CASE("steps from the same caches do not see each other's rows", "[actors][vulkan][B7]") {
  const stage& s = GENERATE(from_range(stages()));
  INFO(s.name);
  engine e(engine_of(s.devices));
  const session model = e.load(cached_decoder());
  fed_decoder fed(model);
  fed.step(tokens(6, 1));
  held_caches held = put_caches(e, "d", fed.caches);
  for (uint64_t i = 0; i < 3; ++i) // in place from here on
    CHECK(same(held.step(model, tokens(1, i)), fed.step(tokens(1, i))));
  std::vector<held_caches> beams(3, held);
  std::vector<fed_decoder> wanted(3, fed);
  for (uint64_t step = 0; step < 4; ++step)
    for (size_t i = 0; i < beams.size(); ++i) {
      const tensor x = tokens(1, 100 * i + step);
      CHECK(same(beams[i].step(model, x), wanted[i].step(x)));
    }
  for (size_t i = 0; i < beams.size(); ++i)
    check_caches(e, beams[i], wanted[i].caches);
  check_caches(e, held, fed.caches);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("a cache can be wound back, whether or not what followed is still there", "[actors][vulkan][B7]") {
  const stage& s = GENERATE(from_range(stages()));
  const bool keeps = GENERATE(false, true);
  INFO(s.name << (keeps ? ", what followed is kept" : ""));
  engine e(engine_of(s.devices));
  const session model = e.load(cached_decoder());
  fed_decoder fed(model);
  fed.step(tokens(4, 1));
  held_caches held = put_caches(e, "d", fed.caches);
  for (uint64_t i = 0; i < 2; ++i)
    CHECK(same(held.step(model, tokens(1, i)), fed.step(tokens(1, i))));
  const held_caches early = held;
  const fed_decoder early_fed = fed;
  for (uint64_t i = 2; i < 5; ++i)
    CHECK(same(held.step(model, tokens(1, i)), fed.step(tokens(1, i))));
  const held_caches late = keeps ? held : held_caches{};
  held = early;
  model.stats(); // the coordinator has let the last run go when it answers, the device's waiter when it has copied
  check_caches(e, held, early_fed.caches);
  const int64_t recorded = e.stats().at(0).recorded_chunks;
  fed_decoder again = early_fed;
  for (uint64_t i = 50; i < 54; ++i) {
    const tensor y = held.step(model, tokens(1, i)); // nothing else runs between
    CHECK(same(y, again.step(tokens(1, i))));
  }
  CHECK((keeps || e.stats().at(0).recorded_chunks == recorded)); // they are where what followed was
  check_caches(e, held, again.caches);
  check_caches(e, early, early_fed.caches);
  if (keeps)
    check_caches(e, late, fed.caches);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("a step that is repeated from the same values is in place from the second time on", "[vulkan][B7]") {
  engine e(engine_of({gpu("d")}));
  const session model = e.load(cached_decoder());
  fed_decoder fed(model);
  fed.step(tokens(6, 1));
  const held_caches given = put_caches(e, "d", fed.caches);
  const tensor x = tokens(1, 2), y = fed_decoder(fed).step(x);
  int64_t recorded = 0;
  for (int i = 0; i < 8; ++i) {
    CHECK(same(held_caches(given).step(model, x), y));
    const int64_t now = e.stats().at(0).recorded_chunks;
    if (i >= 4)
      CHECK(now == recorded);
    recorded = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // what was made is let go
  }
  check_caches(e, given, fed.caches);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("one value can be several caches at once", "[actors][vulkan][B7]") {
  const stage& s = GENERATE(from_range(stages()));
  INFO(s.name);
  engine e(engine_of(s.devices));
  const session model = e.load(cached_decoder());
  const tensor rows = random_floats({1, 2, 9, 8}, 3);
  held_caches held;
  fed_decoder fed(model);
  const device_tensor one = e.put(rows, "d");
  for (const output_binding& pair : pairs()) {
    held.values[pair.input] = one;
    fed.caches[pair.input] = rows;
  }
  for (uint64_t i = 0; i < 2; ++i)
    CHECK(same(held.step(model, tokens(1, i)), fed.step(tokens(1, i))));
  const device_tensor grown = held.values.at("past_k0");
  const tensor host = fed.caches.at("past_k0");
  for (const output_binding& pair : pairs()) {
    held.values[pair.input] = grown;
    fed.caches[pair.input] = host;
  }
  for (uint64_t i = 2; i < 5; ++i)
    CHECK(same(held.step(model, tokens(1, i)), fed.step(tokens(1, i))));
  check_caches(e, held, fed.caches);
}

TEST_CASE("grown caches are values like others for runs that copy them, other models and other devices",
          "[actors][vulkan][B7]") {
  const bool on_gpu = GENERATE(false, true);
  engine e(engine_of({on_gpu ? gpu("d") : reference("d"), on_gpu ? gpu("other") : reference("other")}));
  const session model = e.load(cached_decoder());
  fed_decoder fed(model);
  fed.step(tokens(4, 1));
  held_caches held = put_caches(e, "d", fed.caches);
  for (uint64_t i = 0; i < 3; ++i)
    CHECK(same(held.step(model, tokens(1, i)), fed.step(tokens(1, i))));
  // Outputs go to the host, all or some of them.
  fed_decoder next = fed;
  const tensor x = tokens(1, 9), y = next.step(x);
  const run_result all = model.run({{"x", x}}, {.device_inputs = held.values});
  const run_result some = model.run({{"x", x}}, {.device_inputs = held.values, .keep = {"present_k1"}});
  CHECK(same(all.outputs.at("y"), y));
  CHECK(same(some.outputs.at("y"), y));
  for (const output_binding& pair : pairs())
    CHECK(same(all.outputs.at(pair.output), next.caches.at(pair.input)));
  CHECK(same(e.fetch(some.kept.at("present_k1")), next.caches.at("past_k1")));
  // One cache from the host.
  named_device_tensors without = held.values;
  without.erase("past_v0");
  const run_result mixed =
      model.run({{"x", x}, {"past_v0", fed.caches.at("past_v0")}}, {.device_inputs = without, .keep = presents()});
  CHECK(same(mixed.outputs.at("y"), y));
  CHECK(same(e.fetch(mixed.kept.at("present_v0")), next.caches.at("past_v0")));
  // Another model, and another device.
  const shape dims = fed.caches.at("past_k0").dims();
  const session sum = e.load(summing_model(dims));
  const tensor zero = filled(dims, 0.f);
  CHECK(same(sum.run({{"x", zero}}, {.device_inputs = {{"state", held.values.at("past_k0")}}}).outputs.at("next"),
             fed.caches.at("past_k0")));
  const session elsewhere = e.load(cached_decoder(), {.pins = {{"*", "other"}}});
  const run_result moved = elsewhere.run({{"x", x}}, {.device_inputs = held.values, .keep = presents()});
  CHECK(same(moved.outputs.at("y"), y));
  CHECK(moved.stats.fetched_bytes > 0);
  check_caches(e, held, fed.caches);
  CHECK(same(held.step(model, x), y));
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("a step that fails when its rows are written leaves the caches as they were", "[actors][vulkan][B7]") {
  const device_factory inner = GENERATE(gpu("d"), reference("d"));
  engine e(engine_of({[=] { return late_failure(inner(), 4); }}));
  const session model = e.load(cached_decoder());
  bound_session bound = model.bind(pairs());
  engine plain(engine_of({inner}));
  fed_decoder fed(plain.load(cached_decoder()));
  named_tensors first = empty_caches();
  first["x"] = tokens(3, 0);
  CHECK(same(bound.run(first).outputs.at("y"), fed.step(tokens(3, 0))));
  for (uint64_t i = 1; i < 4; ++i)
    CHECK(same(bound.run({{"x", tokens(1, i)}}).outputs.at("y"), fed.step(tokens(1, i))));
  refuses([&] { bound.run({{"x", tokens(1, 99)}}); }, errc::device_failed, "when it was done");
  for (uint64_t i = 5; i < 9; ++i)
    CHECK(same(bound.run({{"x", tokens(1, i)}}).outputs.at("y"), fed.step(tokens(1, i))));
  for (const output_binding& pair : pairs())
    CHECK(same(bound.fetch(pair.output), fed.caches.at(pair.input)));
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("bound caches of several sessions grow side by side", "[actors][vulkan][A11]") {
  const stage& s = GENERATE(from_range(stages()));
  INFO(s.name);
  engine e(engine_of(s.devices));
  const session model = e.load(cached_decoder());
  std::vector<std::vector<tensor>> wanted(3);
  for (size_t caller = 0; caller < wanted.size(); ++caller) {
    fed_decoder fed(model);
    for (uint64_t i = 0; i < 25; ++i)
      wanted[caller].push_back(fed.step(tokens(i == 0 ? 3 : 1, 100 * caller + i)));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < wanted.size(); ++caller)
    callers.emplace_back([&, caller] {
      bound_session bound = model.bind(pairs());
      for (uint64_t i = 0; i < 25; ++i) {
        named_tensors inputs = i == 0 ? empty_caches() : named_tensors();
        inputs["x"] = tokens(i == 0 ? 3 : 1, 100 * caller + i);
        wrong += !same(bound.run(inputs).outputs.at("y"), wanted[caller][i]);
      }
    });
  for (std::thread& t : callers)
    t.join();
  CHECK(wrong == 0);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("checkpoints of caches that grow in place are of one step, and steps repeat from there",
          "[actors][vulkan][C11]") {
  std::vector<tensor> wanted;
  engine other(engine_of({reference("d")}));
  fed_decoder fed(other.load(cached_decoder()));
  for (uint64_t i = 0; i < 30; ++i)
    wanted.push_back(fed.step(tokens(i == 0 ? 3 : 1, i)));
  const auto dies = [] { return std::make_unique<fault_device>(open_gpu({}, "d"), fault_script{.die_at = 20}); };
  engine e(engine_of({dies, reference("spare")}));
  bound_session bound = e.load(cached_decoder()).bind(pairs(), {.checkpoint = 3, .heal = false});
  uint64_t repeated = 0;
  while (bound.step() < wanted.size()) {
    const uint64_t i = bound.step();
    named_tensors inputs = i == 0 ? empty_caches() : named_tensors();
    inputs["x"] = tokens(i == 0 ? 3 : 1, i);
    try {
      const run_result r = bound.run(inputs);
      check_close(r.outputs.at("y"), wanted[i], 1e-4, 1e-5);
    } catch (const state_rolled_back& lost) {
      CHECK(lost.repeat_from() == bound.step() + 1);
      CHECK(bound.step() < i);
      ++repeated;
    }
  }
  CHECK(repeated == 1);
  for (const output_binding& pair : pairs())
    check_close(bound.fetch(pair.output), fed.caches.at(pair.input), 1e-4, 1e-5);
  CHECK(new_gpu_messages() == "");
}
