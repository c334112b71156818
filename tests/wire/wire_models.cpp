#include "wire/wire_models.hpp"

#include "fuzz/small_protos.hpp"
#include "rewrite/rewrite.hpp"
#include "support/control_models.hpp"

namespace troupe::test {
namespace {

/// A product with weights that are too large to travel inline, used twice, once transposed: a recipe.
graph large_product() {
  graph_builder b;
  const value_id x = b.input("x", {dim::symbol("n"), 200});
  const value_id w = b.constant("w", random_tensor({200, 200}, 1));
  attributes turned;
  turned.set("perm", std::vector<int64_t>{1, 0});
  const value_id y = b.op("MatMul", {b.op("Relu", {b.op("MatMul", {x, w})}), b.op("Transpose", {w}, turned)});
  b.output(b.op("Sigmoid", {y}));
  b.output(b.op("Concat", {x, y}, attrs_of({{"axis", int64_t{0}}})));
  return b.g;
}

/// An image through convolutions, of which the second has large weights, and a head.
graph convolutions() {
  graph_builder b;
  value_id x = b.input("x", {dim::symbol("batch"), 3, 16, 16});
  const int64_t channels[] = {3, 32, 64};
  for (int i = 0; i < 2; ++i) {
    const value_id w = b.constant(fmt::format("w{}", i), random_tensor({channels[i + 1], channels[i], 3, 3}, 7));
    const attributes pads = attrs_of({{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
    x = b.op("Relu",
             {b.op("Conv", {x, w, b.constant(fmt::format("b{}", i), random_tensor({channels[i + 1]}, 8))}, pads)});
  }
  const value_id pooled = b.op("GlobalAveragePool", {x});
  const value_id rows = b.op("Reshape", {pooled, b.integers({0, -1})});
  b.output(b.op("Softmax", {rows}));
  return b.g;
}

/// Strings, and dims that depend on data in two steps.
graph data_dependent() {
  graph_builder b;
  const value_id x = b.input("x", {dim::symbol("n"), 4});
  const value_id found = b.op("NonZero", {b.op("Relu", {x})});
  const value_id first = b.op("Gather", {found, b.integer(0)});
  const value_id again = b.op("NonZero", {b.op("Unsqueeze", {first, b.integers({1})})});
  b.output(
      b.op("Cast", {b.op("Concat", {found, again}, attrs_of({{"axis", int64_t{1}}}))}, attrs_of({{"to", int64_t{1}}})));
  b.output(b.op("Shape", {again}));
  return b.g;
}

/// Dims that are divided, rounded and joined.
graph dim_arithmetic() {
  graph_builder b;
  const value_id x = b.input("x", {dim::symbol("n"), dim::symbol("m"), 6});
  const value_id flat = b.op("Reshape", {x, b.integers({-1, 4})});
  const value_id pooled = b.op("Slice", {flat, b.integers({1}), b.integers({1000}), b.integers({0}), b.integers({3})});
  b.output(b.op("Concat", {pooled, flat}, attrs_of({{"axis", int64_t{0}}})));
  b.output(b.op("Add", {x, b.input("y", {dim::symbol("k"), 1, 6})}));
  b.output(b.op("Expand", {b.scalar(1), b.op("Shape", {flat})}));
  return b.g;
}

/// A product of bytes without zero points, and an elementwise chain of a float and a dequantised operand.
graph quantised() {
  graph_builder b;
  const value_id scale = b.scalar(0.0625f);
  const auto rounded = [&](value_id x) {
    return b.op("DequantizeLinear", {b.op("QuantizeLinear", {x, scale}), scale});
  };
  const value_id x = b.input("x", {dim::symbol("n"), 64});
  const value_id w = b.constant("w", tensor::of<int8_t>({64, 8}, std::vector<int8_t>(512, 3)));
  b.output(b.op("Relu", {b.op("MatMul", {rounded(x), b.op("DequantizeLinear", {w, scale})})}));
  b.output(b.op("Sigmoid", {b.op("Mul", {rounded(b.input("y", {dim::symbol("n"), 64})), x})}));
  return b.g;
}

/// Products by parts of one constant, which are computed later.
graph parts_of_a_constant() {
  graph_builder b;
  const auto parts = b.call("Split", {b.constant("w", random_tensor({96, 768}, 4))}, {"a", "b", "c"},
                            attrs_of({{"axis", int64_t{1}}}));
  const value_id x = b.input("x", {dim::symbol("n"), 96});
  b.output(b.op("Sub", {b.op("MatMul", {x, parts[0]}), b.op("MatMul", {x, parts[2]})}));
  return b.g;
}

} // namespace

const std::map<std::string, std::shared_ptr<const graph>>& wire_programs() {
  static const auto programs = [] {
    std::map<std::string, std::shared_ptr<const graph>> all;
    const auto add = [&](const std::string& name, const graph& g) {
      all[name] = std::make_shared<const graph>(rewrite(g, {}));
      all[name + " unfused"] = std::make_shared<const graph>(rewrite(g, {.fuse = false}));
    };
    for (const auto& [name, m] : small_protos())
      try {
        add(name, load(m));
      } catch (const error&) { // some need a file beside them, or fusion
      }
    add("product", large_product());
    add("convolutions", convolutions());
    add("data", data_dependent());
    add("dims", dim_arithmetic());
    add("quantised", quantised());
    all["quantised"] = std::make_shared<const graph>(rewrite(quantised(), {}));
    add("loop", growing_loop());
    add("parts", parts_of_a_constant());
    return all;
  }();
  return programs;
}

std::shared_ptr<const graph> random_program(std::mt19937_64& random) {
  graph_builder b;
  std::vector<value_id> rows{b.input("x", {dim::symbol("n"), 8}), b.input("y", {dim::symbol("n"), 8})};
  const auto pick = [&] { return rows[rows.size() - 1 - random() % std::min<size_t>(rows.size(), 5)]; };
  for (size_t i = 0, count = 3 + random() % 25; i < count; ++i) {
    const value_id v = pick();
    switch (random() % 9) {
      case 0: rows.push_back(b.op("Add", {v, pick()})); break;
      case 1: rows.push_back(b.op("Mul", {v, pick()})); break;
      case 2:
        rows.push_back(
            b.op("MatMul", {v, b.constant(fmt::format("w{}", i), random_tensor({8, 8}, static_cast<uint32_t>(i)))}));
        break;
      case 3:
        rows.push_back(b.op("Reshape", {b.op("Reshape", {v, b.integers({-1, 2, 4})}), b.integers({-1, 8})}));
        break;
      case 4: rows.push_back(b.op("Softmax", {v})); break;
      case 5:
        if (random() % 3 == 0) { // as many rows as elements that are not 0
          const value_id turned =
              b.op("Transpose", {b.op("NonZero", {v})}, attrs_of({{"perm", std::vector<int64_t>{1, 0}}}));
          b.output(b.op("Cast", {turned}, attrs_of({{"to", int64_t{1}}})));
        }
        [[fallthrough]];
      case 6: rows.push_back(b.op("Sigmoid", {v})); break;
      default: rows.push_back(b.op("Relu", {v}));
    }
  }
  b.output(rows.back());
  if (random() % 2)
    b.output(pick());
  return std::make_shared<const graph>(rewrite(b.g, {.fuse = random() % 2 == 0}));
}

std::vector<std::vector<device_info>> wire_device_sets() {
  const auto cpu = [](const std::string& name, const std::string& host) {
    return device_info{.name = name, .host = host, .memory_bytes = int64_t{1} << 40};
  };
  const auto gpu = [](const std::string& name, const std::string& host) {
    gpu_features features{.int64 = true, .subgroup_arithmetic = true};
    return device_info{.name = name,
                       .host = host,
                       .kind = device_kind::vulkan,
                       .memory_bytes = int64_t{1} << 40,
                       .host_memory = false,
                       .prefers_channels_last = true,
                       .gpu = features,
                       .transfers = transfer_path::staged,
                       .copies_beside_work = true};
  };
  device_info fallback = cpu("cpu", "");
  fallback.fallback = true;
  device_info blocked = cpu("cpu", "");
  blocked.prefers_channels_last = true;
  return {{blocked},
          {cpu("cpu", ""), cpu("a/cpu", "a")},
          {gpu("vulkan:0", ""), gpu("a/vulkan:0", "a"), gpu("b/vulkan:0", "b"), fallback}};
}

} // namespace troupe::test
