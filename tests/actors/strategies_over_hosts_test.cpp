// Every strategy over the devices of two worker processes: the answers of one device, also if one of the workers is
// killed meanwhile.
#include "loader/models.hpp"
#include "strategy/replica_sets.hpp"
#include "support/catch.hpp"
#include "support/places.hpp"
#include "support/small_models.hpp"
#include "support/worker_process.hpp"

#include <set>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

constexpr int64_t width = 256;

/// Layers x ← x + tanh(x · w) / 8: enough work that two hosts pay. Rows are independent.
graph layers(size_t count) {
  graph_builder b;
  value_id v = b.input("x", {dim::symbol("batch"), width});
  const value_id part = b.scalar(0.125f);
  for (size_t i = 0; i < count; ++i) {
    tensor weight = random_tensor({width, width}, static_cast<uint32_t>(i));
    for (float& each : std::span(weight.mutable_data<float>(), static_cast<size_t>(weight.size())))
      each /= 16; // so that products are about as large as x
    const value_id inner = b.op("Tanh", {b.op("MatMul", {v, b.constant(fmt::format("w{}", i), weight)})});
    v = b.op("Add", {v, b.op("Mul", {inner, part})}, {}, i + 1 == count ? "y" : "");
  }
  b.output(v);
  return b.g;
}

/// Two workers that lend a CPU each, and an engine that has nothing else.
struct two_workers {
  std::unique_ptr<worker_process> start(const std::string& name) const {
    return std::make_unique<worker_process>(
        std::vector<std::string>{"--devices", "cpu", "--weights", (folder.path() / name).string()});
  }

  scratch_folder folder;
  std::unique_ptr<worker_process> one = start("one"), two = start("two");
  engine session_side{
      {.devices = {"one/cpu", "two/cpu"},
       .hosts = {fmt::format("one=127.0.0.1:{}", one->port()), fmt::format("two=127.0.0.1:{}", two->port())},
       .credentials = {.insecure = true}}};
};

session_options with(strategy how, const stream_options& stream = {}) {
  session_options options{.strategy = how, .stream = stream};
  if (how == strategy::model_parallel)
    options.policy = placement_policy::weighted; // what uses both hosts, whatever their speeds
  return options;
}

void check_close(const named_tensors& got, const named_tensors& want) {
  REQUIRE(got.size() == want.size());
  for (const auto& [name, expected] : want) {
    const tensor& found = got.at(name);
    REQUIRE(found.dims() == expected.dims());
    double largest = 0, difference = 0;
    for (size_t i = 0; i < expected.values<float>().size(); ++i) {
      const double value = expected.values<float>()[i];
      largest = std::max(largest, std::abs(value));
      difference = std::max(difference, std::abs(value - found.values<float>()[i]));
    }
    INFO(name);
    CHECK(difference <= 1e-4 * largest);
  }
}

named_tensors rows(int64_t count, uint32_t seed) {
  return {{"x", random_tensor({count, width}, seed)}};
}

/// Inputs of a model of tests/data: floats, and token ids.
named_tensors inputs_of(const session& s, int64_t batch) {
  named_tensors inputs;
  for (const value_info& input : s.inputs()) {
    shape dims;
    for (const dim& d : *input.dims)
      dims.push_back(d.is_constant() ? d.constant() : d.to_string() == "batch" ? batch : 5);
    if (input.type == dtype::float32) {
      inputs[input.name] = random_tensor(dims, 5);
      continue;
    }
    REQUIRE(input.type == dtype::int64);
    tensor ids(dtype::int64, dims);
    for (int64_t i = 0; i < ids.size(); ++i)
      ids.mutable_data<int64_t>()[i] = i % 3;
    inputs[input.name] = ids;
  }
  return inputs;
}

} // namespace

TEST_CASE("every strategy over two workers answers as one device does", "[actors][remote][C1][C2][C3][C4][D3]") {
  two_workers hosts;
  engine here({.devices = {"cpu"}});
  const session alone = here.load(layers(16));
  for (const strategy how : strategies)
    for (const stream_options& stream : {stream_options{}, stream_options{.micro_batch = 8}}) {
      INFO(to_string(how) << ", micro-batch " << stream.micro_batch);
      const session s = hosts.session_side.load(layers(16), with(how, stream));
      for (const int64_t count : {1, 2, 64, 131})
        check_close(s.run(rows(count, 3)).outputs, alone.run(rows(count, 3)).outputs);
      // Both took part.
      const stream_stats stats = s.queue_stats();
      CHECK(stats.rows == "batch");
      if (stats.replicas.size() == 2) {
        CHECK(stats.replicas[0].pieces > 0);
        CHECK(stats.replicas[1].pieces > 0);
      } else {
        const auto p = plan_of(s, rows(64, 3));
        CHECK(std::set<device_index>(p->placement.begin(), p->placement.end()).size() == 2);
      }
    }
  CHECK(hosts.session_side.lost_devices().empty());
}

TEST_CASE("every strategy over two workers runs models of files as one device does",
          "[actors][remote][C1][C2][C3][C4]") {
  two_workers hosts;
  engine here({.devices = {"cpu"}});
  for (const char* file : {"small_cnn.onnx", "small_transformer.onnx"}) {
    const std::string path = test_data() + "/" + file;
    const session alone = here.load(path);
    for (const strategy how : strategies)
      for (const int64_t batch : {1, 7}) {
        INFO(file << ", " << to_string(how) << ", batch " << batch);
        const session s = hosts.session_side.load(path, with(how));
        const named_tensors inputs = inputs_of(s, batch);
        check_close(s.run(inputs).outputs, alone.run(inputs).outputs);
      }
  }
}

TEST_CASE("a worker that is killed in the middle of a stream loses no request, under any strategy",
          "[actors][remote][C1][C2][C3][C4][C11]") {
  constexpr uint32_t before = 24, after = 16;
  engine here({.devices = {"cpu"}});
  const session alone = here.load(layers(16));
  std::vector<named_tensors> expected;
  for (uint32_t i = 0; i < before + after; ++i)
    expected.push_back(alone.run(rows(20 + i % 5, i)).outputs);
  for (const strategy how : strategies) {
    INFO(to_string(how));
    two_workers hosts;
    const session s = hosts.session_side.load(layers(16), with(how, {.micro_batch = 8}));
    std::vector<std::future<run_result>> runs;
    const auto submit = [&](uint32_t count) {
      for (uint32_t i = 0; i < count; ++i) {
        const auto number = static_cast<uint32_t>(runs.size());
        runs.push_back(s.submit(rows(20 + number % 5, number)));
      }
    };
    submit(before);
    runs[before / 4].wait();
    hosts.two->kill_now(); // with requests in flight and others that wait
    submit(after);
    for (size_t i = 0; i < runs.size(); ++i)
      CHECK_NOTHROW(check_close(runs[i].get().outputs, expected[i]));
    const stream_stats stats = s.queue_stats();
    CHECK(stats.answered == before + after);
    CHECK(stats.failed == 0);
    CHECK(stats.waiting == 0);
    REQUIRE(hosts.session_side.hosts().size() == 2);
    CHECK(hosts.session_side.hosts()[1].lost);
    if (stats.replicas.size() == 2)
      CHECK_FALSE(stats.replicas[1].living);
    CHECK(stats.replicas[0].living);
  }
}
