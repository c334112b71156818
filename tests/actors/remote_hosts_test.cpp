// Engines over workers in this process, joined by TCP on the loopback: the whole way, but for TLS (network_test.cpp).
#include "actors/worker.hpp"
#include "support/catch.hpp"
#include "support/relay.hpp"
#include "support/run_graph.hpp"
#include "support/small_models.hpp"
#include "trace/run_trace.hpp"
#include "troupe/engine.hpp"

#include <nlohmann/json.hpp>

#include <future>
#include <map>
#include <thread>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;
using actors::worker;
using nlohmann::json;

namespace {

std::unique_ptr<worker> open_worker(std::vector<std::string> devices, uint16_t port = 0,
                                    remote::service_options service = {}) {
  return std::make_unique<worker>(actors::worker_options{.devices = {.devices = std::move(devices)},
                                                         .who = {.insecure = true},
                                                         .host = "127.0.0.1",
                                                         .port = port,
                                                         .service = std::move(service)});
}

engine open_engine(std::vector<std::string> devices,
                   const std::vector<std::pair<std::string, const worker*>>& workers) {
  engine_options options{.devices = std::move(devices), .credentials = {.insecure = true}};
  for (const auto& [name, w] : workers)
    options.hosts.push_back(fmt::format("{}=127.0.0.1:{}", name, w->port()));
  return engine(options);
}

tensor input_of(shape dims) {
  tensor t(dtype::float32, std::move(dims));
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = 0.001f * static_cast<float>(i % 4001) - 2;
  return t;
}

std::vector<float> run_on(const session& s, const tensor& x) {
  const run_result r = s.run({{"x", x}});
  const auto values = r.outputs.begin()->second.values<float>();
  return {values.begin(), values.end()};
}

/// Waits for another thread's work.
template <class Condition>
void await(Condition&& holds) {
  for (const auto end = std::chrono::steady_clock::now() + 20s; !holds(); std::this_thread::sleep_for(2ms))
    REQUIRE(std::chrono::steady_clock::now() < end);
}

} // namespace

TEST_CASE("a worker may end on another thread than it began on", "[actors][D1]") {
  std::unique_ptr<worker> w = open_worker({"null"});
  auto ended = std::make_shared<std::promise<void>>();
  std::future<void> end = ended->get_future();
  std::thread([w = std::move(w), ended]() mutable {
    w = nullptr;
    ended->set_value();
  }).detach(); // a hang fails the test, not the process
  CHECK(end.wait_for(20s) == std::future_status::ready);
}

TEST_CASE("a model runs over the devices of two other hosts", "[actors][remote][D1][D3]") {
  const auto one = open_worker({"cpu"}), two = open_worker({"cpu"});
  engine e = open_engine({"cpu"}, {{"one", one.get()}, {"two", two.get()}});
  std::vector<std::string> names;
  for (const device_summary& d : e.devices())
    names.push_back(d.name);
  REQUIRE(names == std::vector<std::string>{"cpu", "one/cpu", "two/cpu"});
  for (const int64_t columns : {3, 30000}) { // long values are pulled
    const tensor x = input_of({20, columns});
    engine here({.devices = {"cpu"}});
    const auto expected = run_on(here.load(chain(9, {20, columns})), x);
    for (const placement_policy policy :
         {placement_policy::round_robin, placement_policy::weighted, placement_policy::heft, placement_policy::dmda,
          placement_policy::greedy_memory, placement_policy::pipeline}) {
      const session s = e.load(chain(9, {20, columns}), {.policy = policy, .fuse = false});
      for (int i = 0; i < 3; ++i)
        CHECK(run_on(s, x) == expected);
    }
  }
  CHECK(e.lost_devices().empty());
}

TEST_CASE("a weight that two other hosts need leaves this process once", "[actors][remote][D3]") {
  std::mutex mutex;
  std::map<std::string, int64_t> loaded; // bytes, by where they came from
  const auto count = [&](const std::string& event, const remote::service_options::facts& facts) {
    const std::lock_guard lock(mutex);
    for (const auto& [name, value] : facts)
      if (event == "loaded" && name.starts_with("bytes_"))
        loaded[name] += std::stoll(value);
  };
  const auto one = open_worker({"cpu"}, 0, {.log = count}), two = open_worker({"cpu"}, 0, {.log = count});
  engine e = open_engine({"one/cpu", "two/cpu"}, {{"one", one.get()}, {"two", two.get()}});
  graph_builder b;
  const value_id x = b.input("x", {100, 3000}), w = b.constant("w", input_of({100, 3000}));
  value_id v = x;
  for (int i = 0; i < 4; ++i)
    v = b.op("Add", {v, w});
  b.output(v);
  engine here({.devices = {"cpu"}});
  const tensor in = input_of({100, 3000});
  const session s = e.load(b.g, {.policy = placement_policy::round_robin, .fuse = false});
  CHECK(run_on(s, in) == run_on(here.load(b.g), in));
  const std::lock_guard lock(mutex);
  CHECK(loaded["bytes_from_session"] == 1'200'000);
  CHECK(loaded["bytes_from_peers"] == 1'200'000);
}

TEST_CASE("devices of one host that install a plan at once run it", "[actors][remote][D1]") {
  const auto one = open_worker({"cpu*2"});
  engine e = open_engine({"cpu"}, {{"one", one.get()}});
  engine here({.devices = {"cpu"}});
  for (int64_t columns = 20; columns < 40; ++columns) {
    const tensor x = input_of({20, columns});
    const session s = e.load(chain(9, {20, columns}), {.policy = placement_policy::round_robin, .fuse = false});
    CHECK(run_on(s, x) == run_on(here.load(chain(9, {20, columns})), x));
  }
}

TEST_CASE("a trace shows a host as a process, its times on this process's clock", "[actors][remote][trace][C11]") {
  const auto one = open_worker({"cpu*2"});
  engine e = open_engine({"cpu"}, {{"one", one.get()}});
  const session s = e.load(chain(9, {20, 30}), {.policy = placement_policy::round_robin, .fuse = false});
  const run_result r = s.run({{"x", input_of({20, 30})}}, {.trace = true});
  size_t far_nodes = 0;
  for (const chunk_trace& c : r.trace->chunks)
    for (const device_timing& t : c.timings) {
      CHECK(c.sent_ns <= t.begin_ns);
      CHECK(t.begin_ns <= t.end_ns);
      CHECK(t.end_ns <= c.ended_ns);
      far_nodes += is_remote(r.trace->source->devices[r.trace->source->chunks[c.chunk].device]);
    }
  CHECK(far_nodes == 6);
  std::map<int, std::string> processes, tracks;
  const json written = json::parse(to_chrome_json(*r.trace));
  for (const json& event : written["traceEvents"]) {
    if (event["name"] == "process_name")
      processes[event["pid"]] = event["args"]["name"];
    if (event["name"] == "thread_name" && event["pid"] == 1)
      tracks[event["tid"]] = event["args"]["name"];
  }
  CHECK(processes == std::map<int, std::string>{{0, "troupe"}, {1, "one"}});
  CHECK(tracks == std::map<int, std::string>{
                      {0, "one/cpu"}, {1, "one/cpu, queue 0"}, {2, "one/cpu#1"}, {3, "one/cpu#1, queue 0"}});
}

TEST_CASE("only those devices of other hosts join that are named", "[actors][remote][D1]") {
  const auto one = open_worker({"cpu*2"});
  engine e = open_engine({"one/cpu#1"}, {{"one", one.get()}});
  REQUIRE(e.devices().size() == 1);
  CHECK(e.devices()[0].name == "one/cpu#1");
  CHECK_THROWS_WITH(open_engine({"one/cpu#2"}, {{"one", one.get()}}), Catch::Contains("one/cpu#2"));
}

TEST_CASE("long texts cross as weights, inputs, outputs and between hosts", "[actors][remote][D3]") {
  constexpr int64_t count = 3000; // about 200 KB, and more elements than inference looks into
  std::vector<std::string> words, others;
  for (int64_t i = 0; i < count; ++i) {
    words.push_back(fmt::format("{:060}\n", i));
    others.push_back(i % 2 ? words.back() : std::string(static_cast<size_t>(i % 200), 'x'));
  }
  const std::vector<std::string> long_words{std::string(300'000, 'a'), "", std::string(100'000, '\0')};
  graph_builder b(19);
  const value_id x = b.input("x", {count}, dtype::string), at = b.input("at", {count}, dtype::int64);
  const value_id few = b.input("few", {3}, dtype::int64);
  const value_id gathered = b.op("Gather", {b.constant("words", tensor::of<std::string>({count}, words)), at});
  b.output(b.op("Equal", {gathered, x}));
  b.output(b.op("Gather", {gathered, at}));
  b.output(b.op("Gather", {b.constant("long words", tensor::of<std::string>({3}, long_words)), few}));
  tensor backwards(dtype::int64, {count});
  for (int64_t i = 0; i < count; ++i)
    backwards.mutable_data<int64_t>()[i] = count - 1 - i;
  const named_tensors inputs{{"x", tensor::of<std::string>({count}, others)},
                             {"at", backwards},
                             {"few", tensor::of<int64_t>({3}, std::vector<int64_t>{2, 1, 0})}};
  engine here({.devices = {"cpu"}});
  const named_tensors expected = here.load(b.g).run(inputs).outputs;
  REQUIRE(expected.size() == 3);
  const auto one = open_worker({"cpu"}), two = open_worker({"cpu"});
  engine e = open_engine({"one/cpu", "two/cpu"}, {{"one", one.get()}, {"two", two.get()}});
  for (const placement_policy policy : {placement_policy::single, placement_policy::round_robin}) {
    const run_result r = e.load(b.g, {.policy = policy}).run(inputs);
    const auto used =
        std::count_if(r.stats.busy_ms.begin(), r.stats.busy_ms.end(), [](const auto& busy) { return busy.second > 0; });
    CHECK(used == (policy == placement_policy::single ? 1 : 2));
    for (const auto& [name, value] : expected) {
      const tensor& got = r.outputs.at(name);
      REQUIRE(got.type() == value.type());
      if (value.type() == dtype::string)
        CHECK(std::equal(value.values<std::string>().begin(), value.values<std::string>().end(),
                         got.values<std::string>().begin(), got.values<std::string>().end()));
      else
        CHECK(std::equal(value.values<bool>().begin(), value.values<bool>().end(), got.values<bool>().begin()));
    }
  }
}

TEST_CASE("a lost host costs a new plan, and is used again when it comes back", "[actors][remote][D5]") {
  auto one = open_worker({"cpu"});
  engine e = open_engine({"cpu"}, {{"one", one.get()}});
  const tensor x = input_of({20, 30});
  const session s = e.load(chain(9, {20, 30}), {.policy = placement_policy::round_robin, .fuse = false});
  const auto expected = run_on(s, x);
  const uint16_t port = one->port();
  for (int round = 0; round < 3; ++round) {
    one = nullptr;
    CHECK(run_on(s, x) == expected);
    one = open_worker({"cpu"}, port);
    await([&] { return !e.hosts().at(0).lost; });
    await([&] {
      CHECK(run_on(s, x) == expected);
      const run_result r = s.run({{"x", x}});
      return std::any_of(r.stats.busy_ms.begin(), r.stats.busy_ms.end(),
                         [](const auto& busy) { return busy.first == "one/cpu" && busy.second > 0; });
    });
  }
}

TEST_CASE("hosts that do not answer keep no other host away", "[actors][remote][D5]") {
  const auto one = open_worker({"cpu"});
  std::list<relay> ways;
  engine_options options{.devices = {"cpu"}, .credentials = {.insecure = true}};
  for (int i = 0; i < 7; ++i)
    options.hosts.push_back(fmt::format("h{}=127.0.0.1:{}", i, ways.emplace_back(one->port()).port()));
  engine e(options);
  const auto is_lost = [&](size_t i) { return e.hosts().at(i).lost; };
  for (relay& way : ways) {
    way.stall(&way != &ways.back()); // from then on, calls of it end by their time limit only
    way.cut();
  }
  await([&] { return is_lost(6); });
  const auto begin = std::chrono::steady_clock::now();
  await([&] { return !is_lost(6); });
  CHECK(std::chrono::steady_clock::now() - begin < 8s); // the six, one after the other, take twelve
  CHECK(is_lost(0));
}

TEST_CASE("values stay on a device of another host, and are lost with it", "[actors][remote][D4][D5]") {
  auto one = open_worker({"cpu"});
  engine e = open_engine({"one/cpu"}, {{"one", one.get()}});
  const session s = e.load(chain(1, {20, 3000}));
  const tensor x = input_of({20, 3000});
  const device_tensor there = e.put(x, "one/cpu");
  CHECK(there->device() == "one/cpu");
  CHECK_FALSE(there->host().defined());
  const std::string output = s.outputs().at(0).name;
  const run_result r = s.run({}, {.device_inputs = {{"x", there}}, .keep = {output}});
  const tensor y = e.fetch(r.kept.at(output));
  CHECK(std::equal(y.values<float>().begin(), y.values<float>().end(), run_on(s, x).begin()));
  one = nullptr;
  try {
    s.run({}, {.device_inputs = {{"x", r.kept.at(output)}}});
    FAIL("a lost value was used");
  } catch (const error& why) {
    CHECK(why.code() == errc::device_lost);
    CHECK(std::string(why.what()).find("one/cpu") != std::string::npos);
  }
}

TEST_CASE("a host that cannot be connected to is an error that names it", "[actors][remote][D2]") {
  CHECK_THROWS_WITH(engine({.devices = {"cpu"}, .hosts = {"127.0.0.1:1"}, .credentials = {.insecure = true}}),
                    Catch::Contains("127.0.0.1:1"));
  CHECK_THROWS_WITH(engine({.devices = {"cpu"}, .hosts = {"127.0.0.1:1"}}), Catch::Contains("certificate"));
  engine e({.devices = {"cpu"}, .credentials = {.insecure = true}});
  CHECK_THROWS_AS(e.add_host("nonsense"), error);
  const auto one = open_worker({"cpu"});
  e.add_host(fmt::format("one=127.0.0.1:{}", one->port()));
  CHECK_THROWS_WITH(e.add_host(fmt::format("one=127.0.0.1:{}", one->port())),
                    Catch::Contains("two hosts are called 'one'"));
  CHECK(e.devices().size() == 2);
}

TEST_CASE("a worker that drains sends its sessions away", "[actors][remote][D5]") {
  auto one = open_worker({"cpu"});
  engine e = open_engine({"cpu"}, {{"one", one.get()}});
  const session s = e.load(chain(9, {20, 30}), {.policy = placement_policy::round_robin, .fuse = false});
  const tensor x = input_of({20, 30});
  const auto expected = run_on(s, x);
  one->drain(10s);
  CHECK(one->sessions() == 0);
  CHECK(run_on(s, x) == expected);
}
