// Random graphs: whatever is fused, removed or moved about, the results stay.
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

#include <random>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Builds a graph call by call over values of rank 3; operands are drawn from the values made last, so that chains are
/// long.
class random_graph {
public:
  explicit random_graph(uint32_t seed) : engine_(seed) {
    for (int i = 0; i < 3; ++i)
      values_.push_back(b.input("x" + std::to_string(i), {2, 3, 4})), dims_.push_back({2, 3, 4});
    for (int i = 0; i < 24; ++i)
      add_call();
    for (int i = 0; i < 3; ++i)
      b.output(b.op("Identity", {values_[draw(values_.size())]}, {}, "y" + std::to_string(i)));
    b.output(values_.back());
  }

  graph_builder b;

private:
  size_t draw(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(engine_); }
  size_t recent() { return values_.size() - 1 - draw(std::min<size_t>(values_.size(), 6)); }

  void keep(value_id v, shape dims) {
    values_.push_back(v);
    dims_.push_back(std::move(dims));
  }

  void add_call() {
    const size_t x = recent(), y = recent();
    const value_id a = values_[x];
    const shape d = dims_[x];
    switch (draw(11)) {
      case 0:
      case 1: {
        const std::array names{"Relu", "Sigmoid", "Neg", "Identity", "Tanh", "Abs", "Erf"};
        return keep(b.op(names[draw(names.size())], {a}), d);
      }
      case 2:
      case 3: {
        const std::array names{"Add", "Mul", "Sub", "Max"};
        const std::string name = names[draw(names.size())];
        return dims_[y] == d ? keep(b.op(name, {a, values_[y]}), d) : keep(b.op(name, {b.scalar(0.5f), a}), d);
      }
      case 4:
        return keep(b.op("Add", {a, b.constant("row" + std::to_string(b.g.values.size()), random_tensor({d[2]}, 7))}),
                    d);
      case 5:
      case 6: {
        std::vector<int64_t> perm{0, 1, 2};
        std::shuffle(perm.begin(), perm.end(), engine_);
        const shape turned{d[static_cast<size_t>(perm[0])], d[static_cast<size_t>(perm[1])],
                           d[static_cast<size_t>(perm[2])]};
        return keep(b.op("Transpose", {a}, attrs_of({{"perm", perm}})), turned);
      }
      case 7: {
        const shape joined{d[1], 1, d[0] * d[2]}, other{d[0] * d[1], d[2], 1};
        const shape& to = draw(2) ? joined : other;
        return keep(b.op("Reshape", {a, b.integers(to)}), to);
      }
      case 8: {
        const tensor w = random_tensor({d[2], 4}, 9);
        return keep(b.op("MatMul", {a, b.constant("w" + std::to_string(b.g.values.size()), w)}), {d[0], d[1], 4});
      }
      case 9: {
        const tensor scale = random_tensor({d[2]}, 11);
        return keep(b.op("LayerNormalization", {a, b.constant("s" + std::to_string(b.g.values.size()), scale)}), d);
      }
      default: {
        const value_id half = b.op("Mul", {a, b.scalar(0.25f)});
        return keep(b.op("Mul", {half, b.op("Sigmoid", {half})}), d);
      }
    }
  }

  std::mt19937 engine_;
  std::vector<value_id> values_;
  std::vector<shape> dims_;
};

} // namespace

TEST_CASE("rewriting random graphs keeps their results", "[rewrite][A4]") {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    const random_graph r(seed);
    std::vector<tensor> inputs;
    for (uint32_t i = 0; i < 3; ++i)
      inputs.push_back(random_tensor({2, 3, 4}, seed * 3 + i));
    check_fusion(r.b.g, inputs, 1e-3);
  }
}
