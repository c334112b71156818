// Every kernel of troupe.Projections against the reference: few rows and more, odd sizes, norms, ends, packed weights.
#include "ops/composed/projections.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"
#include "support/kernel_case.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::test;

namespace {

using projection::slot;

/// Builds a call of random operands.
class call {
public:
  call(std::string norm, shape x, float spread = 1) : depth_(x.back()), rows_(x) {
    c_.op = "Projections";
    c_.domain = "troupe";
    c_.inputs = {random_floats(x, 1, -spread, spread)};
    if (!norm.empty()) {
      c_.inputs.push_back(random_floats({depth_}, 2, 0.5f, 1.5f));
      c_.attrs.set("norm", norm);
      c_.attrs.set("epsilon.norm", 1e-3f);
    }
    if (norm == "LayerNormalization")
      c_.inputs.push_back(random_floats({depth_}, 3));
    c_.inputs.resize(projection::first);
  }

  call& product(int64_t n, attributes own = {}, bool biased = false) {
    const bool transposed = own.integer("transB", 0) != 0;
    return add(n, {random_floats(transposed ? shape{n, depth_} : shape{depth_, n}, seed()), {}, {}, bias(n, biased)},
               own);
  }

  call& packed(int64_t n, int64_t bits, int64_t block, int zeros, attributes own = {}, bool biased = false) {
    const int64_t blocks = (depth_ + block - 1) / block;
    std::vector<tensor> operands{random_integers(dtype::uint8, {n, blocks, block * bits / 8}, seed(), 0, 256),
                                 random_floats({n, blocks}, seed(), 0.01f, 0.02f),
                                 {},
                                 bias(n, biased)};
    if (zeros == 1)
      operands[2] = random_integers(dtype::uint8, {n, (blocks * bits + 7) / 8}, seed(), 0, 256);
    if (zeros == 2)
      operands[2] = random_floats({n, blocks}, seed(), 3, 9);
    for (const auto& [name, value] : {std::pair{"K", depth_}, {"N", n}, {"bits", bits}, {"block_size", block}})
      own.set(name, value);
    return add(n, std::move(operands), own);
  }

  call& residual() {
    shape dims = rows_;
    dims.back() = columns_;
    c_.inputs.back() = random_floats(dims, seed());
    return *this;
  }
  /// Puts a norm after the product; `sums`: the normalised sums are a result, too.
  call& last_norm(const std::string& name, bool sums) {
    c_.attrs.set("last_norm", name);
    c_.attrs.set("epsilon.last_norm", 1e-2f);
    c_.inputs.push_back(random_floats({columns_}, seed(), 0.5f, 1.5f));
    if (name == "LayerNormalization")
      c_.inputs.push_back(random_floats({columns_}, seed()));
    sums_ = sums;
    return *this;
  }
  call& gated() {
    c_.attrs.set("gated", int64_t{1});
    return *this;
  }
  /// Rotates products by the numbers of heads, all of that width: troupe.Rotary, or the operator with `rotated`
  /// elements of each.
  call& rotary(std::vector<int64_t> heads, int64_t width, bool batched = false) {
    c_.attrs.set("rotary", std::string("Rotary"));
    c_.attrs.set("rotary_heads", std::move(heads));
    angles_ = {random_floats({batched ? rows_[0] : 1, rows_[1], width}, seed()),
               random_floats({1, rows_[1], width}, seed())};
    return *this;
  }
  call& rotary_embedding(std::vector<int64_t> heads, int64_t rotated, bool interleaved, bool positions) {
    c_.attrs.set("rotary", std::string("RotaryEmbedding"));
    c_.attrs.set("rotary_heads", std::move(heads));
    c_.attrs.set("interleaved.rotary", int64_t{interleaved});
    c_.attrs.set("rotary_embedding_dim.rotary", rotated);
    const shape table = positions ? shape{9, rotated / 2} : shape{rows_[0], rows_[1], rotated / 2};
    angles_ = {random_floats(table, seed()), random_floats(table, seed())};
    if (positions)
      angles_.push_back(random_integers(dtype::int64, {rows_[0], rows_[1]}, seed(), 0, 9));
    return *this;
  }
  call& wide() {
    c_.attrs.set("wide", int64_t{1});
    return *this;
  }
  call& input(tensor x) {
    c_.inputs[0] = std::move(x);
    return *this;
  }

  /// Rounding of float16 passes through two products or a norm on the way.
  void check(double half_tolerance = 2e-2) {
    c_.attrs.set("products", products_);
    c_.outputs = c_.attrs.has("gated") ? 1 : static_cast<size_t>(products_) + (sums_ ? 1 : 0);
    for (size_t i = 1; i < c_.inputs.size(); ++i)
      if ((i - projection::first) % projection::each != projection::slot::residual || i < projection::first)
        c_.constants |= 1u << i;
    c_.inputs.insert(c_.inputs.end(), angles_.begin(), angles_.end());
    for (const bool half : {false, true}) {
      c_.rtol = half ? half_tolerance : 1e-4;
      c_.atol = half ? half_tolerance : 2e-4;
      check_gpu_kernels(c_, half);
    }
  }

private:
  uint64_t seed() { return ++seed_; }
  tensor bias(int64_t n, bool biased) { return biased ? random_floats({n}, seed()) : tensor{}; }

  call& add(int64_t n, std::vector<tensor> operands, const attributes& own) {
    c_.inputs.insert(c_.inputs.end(), operands.begin(), operands.end());
    c_.inputs.emplace_back();
    columns_ = n;
    add_part(c_.attrs, own, std::to_string(products_++));
    return *this;
  }

  kernel_case c_;
  int64_t depth_, products_ = 0, columns_ = 0;
  bool sums_ = false;
  shape rows_;
  std::vector<tensor> angles_;
  uint64_t seed_ = 10;
};

attributes ending(const char* name) {
  return attrs_of({{"activation", std::string(name)}, {"activation_alpha", 1.f}, {"activation_beta", 0.f}});
}

attributes transposed() {
  return attrs_of({{"transB", int64_t{1}}});
}

} // namespace

TEST_CASE("GPU projections after a norm, few rows and many, odd sizes", "[vulkan][slow][projections]") {
  for (const auto& [rows, k] :
       {std::pair<int64_t, int64_t>{1, 64}, {1, 768}, {2, 50}, {3, 129}, {4, 264}, {1, 2055}, {6, 40}}) {
    INFO(rows << " rows of " << k);
    call("LayerNormalization", {1, rows, k}).product(17, {}, true).product(40, transposed()).product(9).check();
    call("RMSNormalization", {rows, k}).product(33, transposed(), true).check();
  }
}

TEST_CASE("GPU projections of four products, as they are and with ends", "[vulkan][projections]") {
  call("RMSNormalization", {2, 48}).product(8).product(31, ending("Gelu")).product(16, {}, true).product(5).check();
  call("", {2, 1, 96}).product(64).product(2, ending("Relu"), true).check();
}

TEST_CASE("GPU projections fill the device whatever the columns are", "[vulkan][slow][projections]") {
  call("LayerNormalization", {1, 1, 64}).product(5000).check(); // enough columns for two each
  call("LayerNormalization", {4, 72}).product(4099, transposed(), true).product(3).check();
}

TEST_CASE("GPU gated projections", "[vulkan][slow][projections]") {
  for (const int64_t rows : {1, 3, 5})
    for (const char* norm : {"", "RMSNormalization", "LayerNormalization"}) {
      INFO(rows << norm);
      call(norm, {1, rows, 88}).product(50, ending("Swish")).product(50, transposed(), true).gated().check();
      call(norm, {rows, 96}).packed(37, 4, 32, 0, ending("Swish")).packed(37, 4, 32, 0).gated().check(4e-2);
    }
}

TEST_CASE("GPU projections add a residual before the activation", "[vulkan][projections]") {
  for (const int64_t rows : {1, 4, 9}) {
    call("LayerNormalization", {rows, 40}).product(24, ending("Relu"), true).residual().check();
    call("", {rows, 128}).packed(24, 4, 16, 1, ending("Relu"), true).residual().check(4e-2);
  }
}

TEST_CASE("GPU projections by packed weights", "[vulkan][slow][projections]") {
  for (const auto& [rows, k, block, bits, zeros] : {std::array<int64_t, 5>{1, 64, 32, 4, 0},
                                                    {2, 100, 16, 4, 1},
                                                    {3, 70, 64, 4, 2},
                                                    {1, 50, 32, 8, 0},
                                                    {4, 130, 16, 8, 1},
                                                    {1, 1030, 128, 8, 2},
                                                    {5, 64, 32, 4, 0},
                                                    {1, 2048, 32, 4, 1}}) {
    INFO(rows << " rows of " << k << " in blocks of " << block << ", " << bits << " bits, zeros " << zeros);
    call("RMSNormalization", {rows, k})
        .packed(40, bits, block, static_cast<int>(zeros))
        .packed(8, bits, block, static_cast<int>(zeros), {}, true)
        .packed(11, bits, block, static_cast<int>(zeros), ending("Gelu"))
        .check(bits == 8 ? 1e-1 : 4e-2);
  }
}

TEST_CASE("GPU projections by whole vectors of codes", "[vulkan][slow][projections]") {
  for (const auto& [rows, k, block, bits, zeros] : {std::array<int64_t, 5>{1, 64, 32, 4, 0},
                                                    {1, 96, 16, 4, 1}, // two blocks a vector
                                                    {2, 90, 16, 4, 2},
                                                    {2, 544, 32, 4, 1},
                                                    {1, 300, 128, 4, 2}, // four vectors a block, the last not full
                                                    {1, 1100, 64, 4, 1},
                                                    {1, 80, 16, 8, 1},
                                                    {2, 500, 32, 8, 2},
                                                    {2, 260, 128, 8, 0},
                                                    {1, 5632, 32, 4, 0}}) { // several subgroups a column
    INFO(rows << " rows of " << k << " in blocks of " << block << ", " << bits << " bits, zeros " << zeros);
    call("", {rows, k})
        .packed(33, bits, block, static_cast<int>(zeros), {}, true)
        .packed(1, bits, block, static_cast<int>(zeros), ending("Relu"))
        .packed(6, bits, block, static_cast<int>(zeros), {}, true)
        .check(bits == 8 ? 2e-1 : 4e-2);
    call("LayerNormalization", {rows, k})
        .packed(7, bits, block, static_cast<int>(zeros), ending("Swish"), true)
        .packed(7, bits, block, static_cast<int>(zeros), {}, true)
        .gated()
        .check(bits == 8 ? 2e-1 : 4e-2);
  }
}

TEST_CASE("GPU projections of many columns by codes", "[vulkan][slow][projections]") {
  call("RMSNormalization", {1, 64}).packed(5003, 4, 32, 1).packed(300, 4, 32, 1, {}, true).check(4e-2);
  call("", {1, 1024}).packed(2600, 4, 32, 2, {}, true).residual().check(4e-2);
}

TEST_CASE("GPU projections of codes and floats, or of different codes, run part by part", "[vulkan][projections]") {
  call("RMSNormalization", {2, 64}).packed(20, 4, 32, 0).product(12).check(4e-2);
  call("RMSNormalization", {2, 64}).packed(20, 4, 32, 0).packed(12, 8, 32, 0).check(1e-1);
  call("RMSNormalization", {2, 64}).packed(20, 4, 32, 0).packed(12, 4, 32, 1).check(4e-2);
}

TEST_CASE("GPU projections keep NaN, infinities and large means", "[vulkan][projections]") {
  tensor x = random_floats({3, 64}, 4);
  x.mutable_data<float>()[5] = NAN;
  x.mutable_data<float>()[64 + 7] = INFINITY;
  for (const char* norm : {"LayerNormalization", "RMSNormalization"})
    call(norm, {3, 64}).product(20, {}, true).input(x).check();
  for (const int zeros : {0, 1, 2})
    call("", {3, 64}).packed(20, 4, 32, zeros).packed(20, 4, 32, zeros, {}, true).input(x).check(4e-2);
  for (const float odd : {NAN, INFINITY, -INFINITY})
    for (const int64_t block : {16, 32, 64}) {
      tensor row = random_floats({1, 128}, 4);
      row.mutable_data<float>()[37] = odd;
      call("", {1, 128}).packed(20, 4, block, 0).packed(20, 4, block, 0, {}, true).input(row).check(4e-2);
      call("", {1, 128}).packed(20, 8, block, 1).packed(20, 8, block, 1, {}, true).input(row).check(1e-1);
      call("", {1, 128}).packed(20, 8, block, 2).input(row).check(1e-1);
    }
  tensor far = random_floats({2, 100}, 5, 99, 101);
  call("LayerNormalization", {2, 100}).product(20).input(far).check(1e-1);
}

TEST_CASE("GPU projections without rows or columns write nothing", "[vulkan][projections]") {
  call("RMSNormalization", {0, 32}).product(20).check();
}

TEST_CASE("GPU projections rotate heads, few rows and many", "[vulkan][slow][projections]") {
  for (const auto& [batch, positions] : {std::pair<int64_t, int64_t>{1, 1}, {2, 2}, {1, 3}, {2, 5}})
    for (const int64_t width : {6, 16}) {
      INFO(batch << " batches of " << positions << " positions, heads of " << width);
      call("RMSNormalization", {batch, positions, 48})
          .product(3 * width, {}, true)
          .product(9)
          .product(2 * width, transposed())
          .rotary({3, 0, 2}, width, batch > 1)
          .check();
      call("", {batch, positions, 64})
          .packed(2 * width, 4, 32, 1, {}, true)
          .packed(width, 4, 32, 1)
          .packed(11, 4, 32, 1)
          .rotary({2, 1, 0}, width)
          .check(4e-2);
    }
}

TEST_CASE("GPU projections rotate parts of heads and neighbours, by position or not", "[vulkan][slow][projections]") {
  for (const bool interleaved : {false, true})
    for (const bool positions : {false, true})
      for (const int64_t rotated : {2, 4, 8}) {
        INFO(interleaved << positions << " " << rotated);
        for (const int64_t batch : {1, 2})
          call("LayerNormalization", {batch, 2, 40})
              .product(24)
              .product(7, {}, true)
              .product(8, ending("Gelu"), true)
              .rotary_embedding({3, 0, 1}, rotated, interleaved, positions)
              .check();
        call("RMSNormalization", {1, 1, 64})
            .packed(24, 4, 32, 0, {}, true)
            .packed(9, 4, 32, 0)
            .packed(8, 4, 32, 0)
            .rotary_embedding({3, 0, 1}, rotated, interleaved, positions)
            .check(4e-2);
      }
  call("", {1, 2, 40}).product(15).rotary_embedding({3}, 4, true, false).check();                // heads of odd width
  call("", {1, 2, 40}).product(24).product(24).rotary_embedding({3, 2}, 8, false, true).check(); // of two widths
}

TEST_CASE("GPU projections rotate two columns of a team", "[vulkan][slow][projections]") {
  call("RMSNormalization", {1, 1, 32}).product(4096).product(1001).product(64).rotary({256, 0, 4}, 16).check();
  call("RMSNormalization", {1, 2, 32})
      .product(4092)
      .product(1030)
      .rotary({682, 0}, 6)
      .check(); // an odd number of pairs
  for (const bool interleaved : {false, true})
    call("", {1, 1, 32}).product(5120).rotary_embedding({320}, 12, interleaved, true).check();
}

TEST_CASE("GPU projections add residuals to rotated products, and keep infinities", "[vulkan][projections]") {
  for (const int64_t rows : {2, 6})
    call("LayerNormalization", {1, rows, 40}).product(24, ending("Relu"), true).residual().rotary({3}, 8).check();
  tensor x = random_floats({1, 2, 40}, 3);
  x.mutable_data<float>()[7] = NAN;
  x.mutable_data<float>()[47] = INFINITY;
  call("", {1, 2, 40}).product(24).rotary({3}, 8).input(x).check();
}

TEST_CASE("GPU projections write float32", "[vulkan][projections]") {
  for (const int64_t rows : {1, 7}) {
    call("RMSNormalization", {1, rows, 40}).product(24).product(17, ending("Relu"), true).product(5).wide().check();
    call("", {1, rows, 64}).packed(20, 4, 32, 1).packed(9, 4, 32, 1).packed(16, 4, 32, 1).wide().check(4e-2);
    call("LayerNormalization", {1, rows, 40}).product(24, {}, true).rotary({3}, 8).wide().check();
    call("", {1, rows, 40}).product(24, ending("Swish")).product(24).gated().wide().check();
  }
}

TEST_CASE("GPU products with a norm behind them, of odd rows and columns", "[vulkan][slow][projections]") {
  for (const auto& [rows, k, n] : {std::array<int64_t, 3>{37, 256, 768},
                                   {5, 640, 1024},
                                   {70, 200, 33},
                                   {3, 300, 4096},
                                   {9, 515, 130},
                                   {6, 256, 8},
                                   {130, 128, 2},
                                   {2, 256, 1}})
    for (const bool sums : {false, true}) {
      INFO(rows << " rows of " << k << " by " << n << ", sums " << sums);
      call("", {1, rows, k}).product(n, {}, true).residual().last_norm("LayerNormalization", sums).check();
      call("", {rows, k}).product(n, transposed()).last_norm("RMSNormalization", sums).check();
    }
}

TEST_CASE("GPU products with a norm after them: rows that no team keeps, an ending, a norm before",
          "[vulkan][slow][projections]") {
  call("", {3, 64}).product(20001).residual().last_norm("LayerNormalization", true).check();
  call("", {2, 11, 256}).product(96, ending("Gelu"), true).residual().last_norm("LayerNormalization", true).check();
  attributes scaled = attrs_of({{"alpha", 0.25f}});
  call("", {40, 256}).product(64, scaled, true).last_norm("RMSNormalization", false).check();
  call("RMSNormalization", {9, 256}).product(64).residual().last_norm("LayerNormalization", true).check();
  call("", {7, 256}).packed(64, 4, 32, 1, {}, true).residual().last_norm("LayerNormalization", true).check(4e-2);
}

TEST_CASE("GPU norms after products keep infinities and NaN in their rows, and large means", "[vulkan][projections]") {
  tensor x = random_floats({6, 256}, 4);
  x.mutable_data<float>()[5] = NAN;
  x.mutable_data<float>()[3 * 256 + 7] = INFINITY;
  for (const char* norm : {"LayerNormalization", "RMSNormalization"})
    call("", {6, 256}).product(40, {}, true).residual().last_norm(norm, true).input(x).check();
  const tensor far = random_floats({5, 128}, 5, 9, 11);
  call("", {5, 128}).product(64, {}, true).last_norm("LayerNormalization", true).input(far).check(1e-1);
}

TEST_CASE("GPU norms after products without rows or depth", "[vulkan][projections]") {
  call("", {0, 32}).product(20).last_norm("LayerNormalization", true).check();
  call("", {4, 0}).product(20, {}, true).residual().last_norm("RMSNormalization", true).check();
}
