// Single-byte mutations of two small models: whatever the bytes, loading, planning and running end in a result or in
// one clear error, in bounded time and memory.
#include "support/catch.hpp"
#include "support/places.hpp"

#include "actors/engine_access.hpp"
#include "loader/models.hpp"

#include <chrono>
#include <fstream>
#include <random>

#include <sys/resource.h>

using namespace troupe;
using namespace troupe::test;

namespace {

std::string bytes_of_file(const std::string& name) {
  std::ifstream in(test_data() + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int64_t mapped_bytes() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

/// Limits the address space to the mapped memory and `extra` bytes, as long as it lives. Sanitizers reserve terabytes:
/// there the allocator's own limit has to do.
class memory_limit {
public:
  explicit memory_limit(int64_t extra) {
    ::getrlimit(RLIMIT_AS, &before_);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(mapped_bytes() + extra);
    ::setrlimit(RLIMIT_AS, &now);
#else
    (void)extra;
#endif
  }
  ~memory_limit() {
    ::setrlimit(RLIMIT_AS, &before_);
  }
  memory_limit(const memory_limit&) = delete;
  memory_limit& operator=(const memory_limit&) = delete;

private:
  rlimit before_{};
};

/// Inputs that fit: every symbol is 2, elements count up from 0. Nothing if one is too large to make here.
std::optional<named_tensors> made_up_inputs(const session& s) {
  constexpr int64_t most_elements = 1 << 20;
  named_tensors inputs;
  for (const value_info& info : s.inputs()) {
    shape dims;
    for (const dim& d : info.dims.value_or(symbolic_shape{}))
      dims.push_back(d.is_constant() ? d.constant() : 2);
    if (volume(dims) > most_elements)
      return std::nullopt;
    tensor t(info.type, dims);
    if (info.type != dtype::string)
      std::memset(t.mutable_data(), 0, static_cast<size_t>(t.bytes()));
    for (int64_t i = 0; i < t.size(); ++i) {
      if (info.type == dtype::float32)
        t.mutable_data<float>()[i] = static_cast<float>(i % 16) / 8;
      else if (info.type == dtype::int64)
        t.mutable_data<int64_t>()[i] = i % 16;
    }
    inputs[info.name] = t;
  }
  return inputs;
}

/// Loads, plans and runs a model; returns the name of the error it ends in, "result" otherwise.
std::string outcome(engine& e, const std::string& model) {
  try {
    const session s = e.load(load_model(std::as_bytes(std::span(model))));
    const auto inputs = made_up_inputs(s);
    if (!inputs)
      return "too large";
    s.run(*inputs, {.timeout = std::chrono::seconds(20)});
    return "result";
  } catch (const error& problem) {
    CHECK(std::string(problem.what()) != "");
    return std::string(to_string(problem.code()));
  }
}

void mutate(const std::string& name, int count, unsigned seed) {
  engine e({.devices = {"cpu"}});
  const std::string original = bytes_of_file(name);
  REQUIRE(original.size() > 1000);
  REQUIRE(outcome(e, original) == "result"); // threads and caches exist from here on
  const memory_limit limit(int64_t{2} << 30);
  std::mt19937 random(seed);
  std::map<std::string, int> outcomes;
  double slowest = 0;
  std::string slowest_mutation;
  for (int i = 0; i < count; ++i) {
    std::string mutated = original;
    const size_t at = random() % mutated.size();
    const auto flip = static_cast<char>(1 + random() % 255);
    mutated[at] = static_cast<char>(mutated[at] ^ flip);
    const std::string mutation = fmt::format("byte {} ^ {}", at, static_cast<int>(flip));
    INFO(name << " " << mutation);
    const auto start = std::chrono::steady_clock::now();
    const std::string ending = outcome(e, mutated);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (took > slowest) {
      slowest = took;
      slowest_mutation = mutation;
    }
    ++outcomes[ending];
    REQUIRE(ending != "internal");
    REQUIRE(ending != "timeout");
  }
  std::string summary;
  for (const auto& [ending, times] : outcomes)
    summary += fmt::format("{} {}, ", ending, times);
  INFO(name << ": " << summary << "slowest " << slowest << " s: " << slowest_mutation);
  CHECK(slowest < 20);
  CHECK(outcomes["result"] > count / 10);        // a flipped weight is still a model
  CHECK(outcomes["invalid_model"] > count / 50); // and a flipped length is none
}

} // namespace

TEST_CASE("mutated models end in a result or an error", "[loader]") {
  mutate("small_cnn.onnx", 100, 1);
  mutate("small_transformer.onnx", 100, 2);
}

TEST_CASE("ten thousand mutated models end in a result or an error", "[loader][slow]") {
  mutate("small_cnn.onnx", 5000, 3);
  mutate("small_transformer.onnx", 5000, 4);
}

TEST_CASE("a Reshape that does not fit is refused when dims are bound", "[loader]") {
  auto m = relu_model();
  auto& g = *m.mutable_graph();
  auto* target = g.add_initializer();
  target->set_name("target");
  target->set_data_type(onnx::TensorProto::INT64);
  target->add_dims(2);
  for (int64_t d : {0, 1000})
    target->add_int64_data(d);
  add_node(g, "Reshape", {"y", "target"}, {"z"});
  add_node(g, "Relu", {"z"}, {"w"});
  g.mutable_output(0)->set_name("w");
  engine e({.devices = {"cpu"}});
  const session s = e.load(load(m));
  CHECK(s.run({{"x", tensor::of<float>({1, 1000}, std::vector<float>(1000, 1.f))}}).outputs.at("w").size() == 1000);
  CHECK_THAT(error_of([&] {
               s.run({{"x", tensor::of<float>({1, 2}, std::vector<float>(2, 1.f))}});
             }),
             Catch::Contains("invalid_input") && Catch::Contains("Reshape"));
}

TEST_CASE("a product whose inner dims do not fit is refused when they are known", "[loader]") {
  auto m = relu_model(); // x [batch, features] times w [3, 2]
  auto& g = *m.mutable_graph();
  *g.add_initializer() = raw_floats("w", {3, 2}, std::vector<float>(6, 1));
  add_node(g, "MatMul", {"y", "w"}, {"z"});
  g.mutable_output(0)->set_name("z");
  engine e({.devices = {"cpu"}});
  for (bool fuse : {false, true}) {
    const session s = e.load(load(m), {.fuse = fuse});
    const auto run = [&](int64_t rows, int64_t depth) {
      const std::vector<float> ones(static_cast<size_t>(rows * depth), 1);
      return s.run({{"x", tensor::of<float>({rows, depth}, ones)}}).outputs.at("z").values<float>()[0];
    };
    for (int64_t rows : {1, 64}) { // few and many rows have different kernels
      CHECK(run(rows, 3) == 3);
      CHECK(error_of([&] { run(rows, 5); }) != "");
      CHECK(error_of([&] { run(rows, 2); }) != "");
    }
  }
}
