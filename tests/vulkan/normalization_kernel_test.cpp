#include "launch/launch_table.hpp"
#include "ops/activation.hpp"
#include "ops/evaluate.hpp"
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

/// The fused form of a case.
kernel_case ended(kernel_case c, const activation& act) {
  c.domain = "troupe";
  set_activation(c.attrs, act);
  return c;
}

/// An operand whose mean is a thousand times its deviation.
kernel_case far_from_zero(kernel_case c) {
  c.inputs[0] = random_floats(c.inputs[0].dims(), 7, 1998, 2002);
  c.rtol = 1e-6;
  c.atol = 1e-5;
  return c;
}

/// Kept open, as those of check_gpu_kernels are.
device& gpu_of(uint32_t alternative) {
  static auto& open = *new std::map<uint32_t, std::unique_ptr<device>>;
  auto& made = open[alternative];
  if (!made)
    made = open_gpu({.poison = true, .alternative = alternative});
  return *made;
}

/// Runs the case after a pooling of single pixels, so that its operand is channels-last, by each alternative. Returns
/// the kernels that did so, in their order.
std::vector<std::string> check_channels_last(const kernel_case& c, bool half = false) {
  graph_builder b(c.opset);
  b.g.opsets["troupe"] = 1;
  const auto given = [&](size_t i) { return half ? to_half(c.inputs[i]) : c.inputs[i]; };
  const tensor x = given(0);
  attributes pixel;
  pixel.set("kernel_shape", std::vector<int64_t>(x.dims().size() - 2, 1));
  const value_id last = b.op("MaxPool", {b.input("x", to_symbolic(x.dims()), x.type())}, pixel);
  b.output(
      b.call(c.op, {last, b.constant("scale", given(1)), b.constant("bias", given(2))}, {"y"}, c.attrs, c.domain)[0]);
  const auto program = inferred_program(std::move(b.g));
  const node& norm = program->nodes.back();
  const tensor wanted = evaluate(*norm.def, norm.attrs, std::vector{x, given(1), given(2)}, 1).at(0);
  std::vector<std::string> names;
  for (uint32_t alternative = 0, count = 1; alternative < count; ++alternative) {
    const auto p = make_plan(program, {gpu_of(alternative).info()}, {});
    for (const node& n : p->program->nodes)
      if (n.op_type == c.op && p->program->values[n.inputs[0]].layout == layout::channels_last)
        for (const launch_list& l :
             launches_of(*n.def, make_gpu_call(*bind_segment(p, 0, {}), n, *gpu_of(0).info().gpu)))
          if (alternative == 0)
            names.push_back(l.name);
    count = static_cast<uint32_t>(names.size());
    INFO(c.op << to_string(x.dims()) << ", alternative " << alternative);
    const tensor got = inline_runner(p, {&gpu_of(alternative)}).run(std::span(&x, 1)).at(0);
    check_close(got, wanted, half ? 0x1p-8 : c.rtol, half ? 4e-3 : c.atol);
  }
  CHECK(new_gpu_messages() == "");
  return names;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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

TEST_CASE("GPU norms of channels end with an activation", "[vulkan][A4]") {
  using enum scalar_code;
  check_gpu_kernels(ended(group_norm({2, 6, 5, 7}, 3), {swish, 1, 0}), true);
  check_gpu_kernels(ended(group_norm({1, 6, 64, 64}, 2, 18), {leaky_relu, 0.1f, 0})); // a scale a group
  check_gpu_kernels(ended(instance_norm({1, 3, 70, 70}), {clip, -0.5f, 0.75f}));
}

TEST_CASE("GPU norms keep their digits far from zero", "[vulkan]") {
  check_gpu_kernels(far_from_zero(group_norm({1, 4, 9, 9}, 2)));
  check_gpu_kernels(far_from_zero(group_norm({1, 4, 128, 65}, 2)));
  check_channels_last(far_from_zero(group_norm({1, 8, 40, 41}, 2)));
}

TEST_CASE("GPU norms of channels read channels-last operands as they are", "[vulkan]") {
  const auto small = check_channels_last(group_norm({2, 12, 5, 7}, 3));
  CHECK(has(small, "group_norm"));
  CHECK(has(small, "normalization"));
  CHECK(has(check_channels_last(ended(group_norm({1, 16, 64, 64}, 2), {scalar_code::swish, 1, 0}), true),
            "group_norm.parts"));
  CHECK(has(check_channels_last(instance_norm({2, 5, 6, 7})), "group_norm"));
}

TEST_CASE("GPU norms of channels-last operands of other sizes", "[vulkan][slow]") {
  using enum scalar_code;
  for (bool half : {false, true}) {
    for (const auto& [dims, groups] : {std::pair<shape, int64_t>{{1, 20, 33, 35}, 2}, // groups of 10: no whole vectors
                                       {{3, 24, 31, 33}, 3},
                                       {{1, 7, 60, 61}, 1},
                                       {{2, 96, 17, 9}, 24},
                                       {{1, 640, 6, 5}, 32},
                                       {{0, 8, 3, 3}, 2},
                                       {{40, 32, 2, 2}, 8},
                                       {{1, 12, 300, 301}, 3}}) { // more parts than members
      check_channels_last(group_norm(dims, groups), half);
      check_channels_last(ended(group_norm(dims, groups, 18), {relu}), half);
    }
    check_channels_last(ended(instance_norm({1, 30, 65, 66}), {hard_swish}), half);
  }
  check_gpu_kernels(group_norm({2, 8, 0, 3}, 2));
  // A pixel's channels of one slice are more than a workgroup: only the kernel of whole slices is left.
  CHECK(!has(check_channels_last(group_norm({1, 1031, 3, 3}, 1)), "group_norm"));
}

TEST_CASE("GPU norms make NaN of a slice with an infinity, and of no other", "[vulkan]") {
  for (const int64_t at : {0, 100}) { // the slice's first element, and another
    kernel_case c = group_norm({1, 8, 50, 50}, 2);
    c.inputs[0].mutable_data<float>()[at] = INFINITY;
    check_gpu_kernels(c);
    check_channels_last(c);
  }
}
