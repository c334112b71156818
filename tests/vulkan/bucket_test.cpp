// Bindings that share a layout: the same results as with separate layouts, and nothing is recorded anew for them.
#include "actors/engine_access.hpp"
#include "cpu/cpu_device.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"
#include "support/run_inline.hpp"

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Rows and columns of a value; rows depend on the symbols.
struct matrix {
  value_id id = no_value;
  dim rows;
  int64_t columns = 0;
};

/// Calls drawn at random over matrices whose rows are "n", "m" and dims that follow from them.
class random_model {
public:
  explicit random_model(uint32_t seed) : engine_(seed) {
    for (const char* symbol : {"n", "m"})
      values_.push_back({b_.input(std::string("x_") + symbol, {dim::symbol(symbol), 8}), dim::symbol(symbol), 8});
    for (int i = 0; i < 10; ++i)
      add_call();
    for (int i = 0; i < 3; ++i)
      b_.output(b_.op("Identity", {values_[values_.size() - 1 - draw(6)].id}, {}, "y" + std::to_string(i)));
  }

  std::shared_ptr<const graph> program() const { return std::make_shared<const graph>(rewrite(b_.g, {})); }

private:
  size_t draw(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(engine_); }
  const matrix& any() { return values_[draw(values_.size())]; }

  /// A matrix with as many columns.
  matrix like(const matrix& a) {
    for (;;)
      if (const matrix& other = any(); other.columns == a.columns)
        return other;
  }

  void add_call() {
    const matrix a = any();
    switch (draw(8)) {
      case 0: {
        const std::array names{"Relu", "Sigmoid", "Tanh", "Abs"};
        values_.push_back({b_.op(names[draw(names.size())], {a.id}), a.rows, a.columns});
        return;
      }
      case 1: {
        const value_id other = like(a).id,
                       sum = b_.op("ReduceMean", {other}, attrs_of({{"axes", std::vector<int64_t>{0}}}));
        values_.push_back({b_.op("Add", {a.id, sum}), a.rows, a.columns});
        return;
      }
      case 2: {
        const matrix other = like(a);
        values_.push_back(
            {b_.op("Concat", {a.id, other.id}, attrs_of({{"axis", int64_t{0}}})), a.rows + other.rows, a.columns});
        return;
      }
      case 3: {
        const int64_t columns = draw(2) ? 8 : 12;
        const value_id w = b_.constant("w" + std::to_string(b_.g.values.size()),
                                       random_tensor({a.columns, columns}, static_cast<uint32_t>(draw(100))));
        values_.push_back({b_.op("MatMul", {a.id, w}), a.rows, columns});
        return;
      }
      case 4: return add_attention(a);
      case 5: {
        const value_id halves = b_.op("Reshape", {a.id, b_.integers({-1, a.columns / 2})});
        const value_id turned = b_.op("Softmax", {halves}, attrs_of({{"axis", int64_t{0}}}));
        values_.push_back({b_.op("Reshape", {turned, b_.integers({-1, a.columns})}), a.rows, a.columns});
        return;
      }
      case 6: { // dims as numbers
        const value_id size = b_.op("Cast", {b_.op("Shape", {like(a).id})}, attrs_of({{"to", int64_t{1}}}));
        const value_id count = b_.op("ReduceMax", {size}, attrs_of({{"keepdims", int64_t{1}}}));
        values_.push_back({b_.op("Div", {a.id, count}), a.rows, a.columns});
        return;
      }
      default: {
        const matrix other = like(a);
        const value_id sum = b_.op("Add", {other.id, b_.scalar(0.25f)});
        values_.push_back({b_.op("Mul", {sum, sum}), other.rows, other.columns});
      }
    }
  }

  void add_attention(const matrix& a) {
    const value_id other = like(a).id;
    const value_id scores = b_.op("MatMul", {a.id, b_.op("Transpose", {other})});
    const value_id weights = b_.op("Softmax", {scores}, attrs_of({{"axis", int64_t{-1}}}));
    values_.push_back({b_.op("MatMul", {weights, other}), a.rows, a.columns});
  }

  std::mt19937 engine_;
  graph_builder b_;
  std::vector<matrix> values_;
};

struct tested_device {
  std::string name;
  std::unique_ptr<device> made;
};

std::vector<tested_device> tested_devices() {
  std::vector<tested_device> all;
  all.push_back({"cpu", make_cpu_device("cpu", {.poison = true})});
  all.push_back({"poisoned", open_gpu({.poison = true})});
  all.push_back({"not coherent", open_gpu({.force_non_coherent = true})});
  all.push_back({"imported", open_gpu({.blocks = std::make_shared<host_block_pool>(), .force_staging = true})});
  return all;
}

std::vector<tensor> inputs_for(const graph& program, int64_t n, int64_t m) {
  std::vector<tensor> inputs;
  for (value_id v : program.inputs)
    inputs.push_back(random_tensor({program.values[v].name == "x_n" ? n : m, 8}, static_cast<uint32_t>(n + 100 * m)));
  return inputs;
}

bool same_bytes(const tensor& a, const tensor& b) {
  return a.type() == b.type() && a.dims() == b.dims() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

/// Runs one model with one binding after the other.
class bucket_run {
public:
  explicit bucket_run(graph_builder b) : gpu_(open_gpu({.poison = true})) {
    plan_ = make_plan(std::make_shared<const graph>(rewrite(b.g, {})), {gpu_->info()}, {});
    runner_ = std::make_unique<inline_runner>(plan_, std::vector<device*>{gpu_.get()});
  }

  /// Returns how many command buffers a run with `rows` rows records.
  int64_t recorded(int64_t rows) {
    const int64_t before = gpu_->stats().recorded_chunks;
    const tensor in = random_tensor({rows, 64}, static_cast<uint32_t>(rows));
    inline_runner exact(plan_, {gpu_.get()});
    const tensor got = runner_->run(std::span(&in, 1)).at(0);
    const int64_t made = gpu_->stats().recorded_chunks - before;
    CHECK(same_bytes(got, exact.run(std::span(&in, 1)).at(0)));
    return made;
  }

private:
  std::unique_ptr<device> gpu_;
  std::shared_ptr<const plan> plan_;
  std::unique_ptr<inline_runner> runner_;
};

} // namespace

TEST_CASE("a binding in a shared layout gives what a layout of its own gives", "[vulkan][D1][D3][A9]") {
  const auto devices = tested_devices();
  size_t shared = 0, varied = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const auto program = random_model(seed).program();
    for (const tested_device& d : devices) {
      INFO("seed " << seed << " on " << d.name);
      const auto p = make_plan(program, {d.made->info()}, {});
      inline_runner buckets(p, {d.made.get()});
      layout_buckets layouts(16);
      for (const auto& [n, m] : {std::pair{5, 5}, {6, 5}, {7, 5}, {7, 21}, {9, 20}, {3, 17}, {7, 5}, {1, 1}}) {
        const std::vector<tensor> inputs = inputs_for(*program, n, m);
        inline_runner exact(p, {d.made.get()});
        const auto got = buckets.run(inputs), wanted = exact.run(inputs);
        for (size_t o = 0; o < got.size(); ++o) {
          INFO("n " << n << ", m " << m << ", output " << o);
          REQUIRE(same_bytes(got[o], wanted[o]));
        }
        const auto bound = layouts.bind(p, 0, {{"n", n}, {"m", m}});
        varied += std::count(bound->layout->varies.begin(), bound->layout->varies.end(), true);
      }
      shared += layouts.stats().hits;
    }
  }
  CHECK(shared > 100);
  CHECK(varied > 1000);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("a binding inside a bucket records nothing, another kernel does", "[vulkan][D1][A9]") {
  graph_builder b;
  const value_id x = b.input("x", {dim::symbol("n"), 64});
  const value_id product = b.op("MatMul", {b.op("Relu", {x}), b.constant("w", random_tensor({64, 48}, 1))});
  b.output(b.op("Softmax", {product}, attrs_of({{"axis", int64_t{-1}}}), "y"));
  bucket_run run(b);
  CHECK(run.recorded(20) == 1); // exact
  CHECK(run.recorded(21) == 1); // a bucket up to 32
  for (int64_t rows : {22, 32, 23, 21, 20})
    CHECK(run.recorded(rows) == 0);
  CHECK(run.recorded(3) == 1); // few rows have another kernel
  CHECK(run.recorded(22) == 0);
  CHECK(run.recorded(3) == 0);
  CHECK(run.recorded(33) == 1);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("products that are recorded alike read their own packed weights", "[vulkan][D1]") {
  graph_builder b;
  const value_id x = b.input("x", {dim::symbol("n"), 64});
  const auto product = [&](const char* of, uint32_t seed) { // weights that launches do not depend on
    return b.op("MatMul", {b.op(of, {x}), b.constant("w" + std::to_string(seed), random_tensor({64, 1040}, seed))});
  };
  b.output(b.op("Concat", {product("Relu", 1), product("Tanh", 2)}, attrs_of({{"axis", int64_t{1}}}), "y"));
  bucket_run run(b);
  CHECK(run.recorded(20) == 1);
  CHECK(run.recorded(21) == 1);
  CHECK(run.recorded(22) == 0);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("runs with many dims at once share a session's slots", "[vulkan][D1][A9][A11]") {
  engine e = make_engine({.devices = {"vulkan:0", "cpu"}}, {.gpu_validation = gpus_are_validated()});
  graph_builder b;
  const value_id x = b.input("x", {dim::symbol("n"), 3});
  b.output(b.op("Add", {b.op("Neg", {x}), b.op("Floor", {x})}, {}, "y"));
  const session s = e.load(b.g, {.policy = placement_policy::round_robin, .fuse = false});
  std::atomic<int> wrong{0};
  const auto work = [&](uint32_t thread) {
    for (uint32_t run = 0; run < 40; ++run) {
      const tensor in = random_tensor({1 + (run * 7 + thread * 5) % 30, 3}, run);
      const tensor out = s.run({{"x", in}}).outputs.at("y");
      wrong += out.dims() != in.dims();
      for (int64_t i = 0; i < out.size(); ++i) {
        const float v = in.values<float>()[i];
        wrong += out.values<float>()[i] != -v + std::floor(v);
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (uint32_t t = 0; t < 4; ++t)
      threads.emplace_back(work, t);
  }
  CHECK(wrong == 0);
  CHECK(s.stats().bound_plans.misses <= 30); // some are foreseen
  CHECK(s.stats().layouts.misses <= 8);
  CHECK(e.stats().at(0).recorded_chunks <= 8 * 4 * 2);
  CHECK(gpu_messages(e).empty());
}
