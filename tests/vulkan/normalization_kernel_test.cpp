#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/graph_builder.hpp"
#include "support/kernel_case.hpp"
#include "support/run_inline.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

kernel_case batch_norm(const shape& dims) {
  const int64_t channels = dims.size() > 1 ? dims[1] : 1;
  return {.op = "BatchNormalization",
          .inputs = {random_floats(dims, 1), random_floats({channels}, 2), random_floats({channels}, 3),
                     random_floats({channels}, 4), random_floats({channels}, 5, 0.5f, 2.f)}};
}

kernel_case group_norm(const shape& dims, int64_t groups, int64_t opset = 21) {
  const int64_t vectors = opset < 21 ? groups : dims[1];
  kernel_case c{.op = "GroupNormalization",
                .inputs = {random_floats(dims, 1, 2, 4), random_floats({vectors}, 2), random_floats({vectors}, 3)},
                .opset = opset,
                .atol = 2e-5};
  c.attrs.set("num_groups", groups);
  return c;
}

kernel_case instance_norm(const shape& dims) {
  kernel_case c = group_norm(dims, dims[1]);
  c.op = "InstanceNormalization";
  c.attrs = {};
  return c;
}

/// Runs the case after a BatchNormalization, so that its operand is channels-last, and returns whether it was.
bool check_channels_last(const kernel_case& c, bool half) {
  const kernel_case before = batch_norm(c.inputs[0].dims());
  graph_builder b(c.opset);
  const auto add = [&](const kernel_case& k, value_id x) {
    std::vector<value_id> inputs{x};
    for (size_t i = 1; i < k.inputs.size(); ++i)
      inputs.push_back(b.constant(fmt::format("{}{}", k.op, i), half ? to_half(k.inputs[i]) : k.inputs[i]));
    return b.op(k.op, inputs, k.attrs);
  };
  const tensor x = half ? to_half(c.inputs[0]) : c.inputs[0];
  b.output(add(c, add(before, b.input("x", to_symbolic(x.dims()), x.type()))));
  const auto program = inferred_program(b.g);
  tensor wanted = x;
  for (const node& n : program->nodes) {
    std::vector<tensor> inputs{wanted};
    for (size_t i = 1; i < n.inputs.size(); ++i)
      inputs.push_back(program->values[n.inputs[i]].constant->leaf);
    wanted = evaluate(*n.def, n.attrs, inputs, 1).at(0);
  }
  const auto gpu = open_gpu({.poison = true});
  const auto p = make_plan(program, {gpu->info()}, {});
  inline_runner runner(p, {gpu.get()});
  const tensor got = runner.run(std::span(&x, 1)).at(0);
  check_close(got, wanted, half ? 0x1p-8 : 1e-4, half ? 4e-3 : 2e-5);
  CHECK(new_gpu_messages() == "");
  for (const node& n : p->program->nodes)
    if (n.op_type == c.op)
      return p->program->values[n.inputs[0]].layout == layout::channels_last;
  return false;
}

} // namespace

TEST_CASE("GPU batch norms", "[vulkan]") {
  for (const shape& dims : {shape{2, 5, 7, 3}, {3, 1030}, {0, 3, 4, 4}})
    check_gpu_kernels(batch_norm(dims), dims[0] == 2);
  kernel_case old = batch_norm({2, 3, 4});
  for (size_t i = 1; i < 5; ++i)
    old.inputs[i] = random_floats({12}, i, 0.5f, 2.f);
  old.opset = 7;
  old.attrs.set("spatial", int64_t{0});
  check_gpu_kernels(old);
}

TEST_CASE("GPU group norms in one part and in several", "[vulkan]") {
  check_gpu_kernels(group_norm({2, 6, 5, 7}, 3));
  check_gpu_kernels(group_norm({1, 8, 64, 64}, 2), true); // in parts
}

TEST_CASE("GPU group and instance norms of other sizes", "[vulkan][slow]") {
  check_gpu_kernels(instance_norm({2, 3, 5, 4}));
  check_gpu_kernels(group_norm({1, 6, 4}, 2, 18));
  for (bool half : {false, true}) {
    for (const auto& [dims, groups] : {std::pair<shape, int64_t>{{2, 6, 1}, 6},
                                       {{3, 12, 31, 33}, 4},
                                       {{1, 4, 100, 101}, 1},
                                       {{0, 4, 3, 3}, 2},
                                       {{40, 32, 2, 2}, 8}})
      check_gpu_kernels(group_norm(dims, groups), half);
    check_gpu_kernels(instance_norm({1, 3, 128, 128}), half);
  }
}

TEST_CASE("GPU norms of channels read channels-last operands as they are", "[vulkan]") {
  CHECK(check_channels_last(group_norm({2, 12, 5, 7}, 3), false));
  CHECK(check_channels_last(group_norm({1, 6, 64, 64}, 1), true)); // in parts
  CHECK(check_channels_last(instance_norm({2, 5, 6, 7}), false));
}
