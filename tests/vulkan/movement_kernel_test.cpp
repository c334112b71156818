#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/kernel_case.hpp"
#include "support/run_graph.hpp"
#include "support/run_inline.hpp"

#include <cstring>

using namespace troupe;
using namespace troupe::test;

namespace {

attributes with(std::string name, attribute value) {
  attributes attrs;
  attrs.set(std::move(name), std::move(value));
  return attrs;
}

tensor ints(std::vector<int64_t> values) {
  return tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

struct gpu_run {
  std::vector<tensor> results;
  std::shared_ptr<const plan> made;
};

gpu_run run_on_gpu(graph g, const std::vector<tensor>& inputs) {
  const auto gpu = open_gpu({.poison = true});
  const auto p = make_plan(inferred_program(std::move(g)), {gpu->info()}, {});
  inline_runner runner(p, {gpu.get()});
  std::vector<tensor> results = runner.run(inputs);
  CHECK(new_gpu_messages() == "");
  return {std::move(results), p};
}

/// One type of each width.
constexpr dtype widths[] = {dtype::uint8, dtype::float16, dtype::float32, dtype::int64};

tensor numbers(dtype type, const shape& dims) {
  if (type == dtype::float32)
    return random_floats(dims, 1);
  if (type != dtype::float16)
    return random_integers(type, dims, 1, 0, 100);
  const tensor integers = random_integers(dtype::int16, dims, 1, 0, 15000); // bits of finite float16 numbers
  tensor half(dtype::float16, dims);
  std::memcpy(half.mutable_data(), integers.data(), static_cast<size_t>(half.bytes()));
  return half;
}

} // namespace

TEST_CASE("GPU Transpose permutes axes, tiled and not", "[vulkan]") {
  const std::pair<shape, std::vector<int64_t>> cases[] = {
      {{33, 70}, {1, 0}},
      {{2, 40, 3, 35}, {0, 2, 3, 1}},
      {{2, 5, 4, 8}, {0, 2, 1, 3}},
      {{2, 17, 20}, {2, 1, 0}},
      {{2, 3, 4, 5, 6}, {4, 0, 3, 1, 2}},
      {{1, 64, 16, 16}, {0, 2, 3, 1}},
      {{0, 4}, {1, 0}},
      {{7}, {0}},
  };
  for (dtype type : widths)
    for (const auto& [dims, perm] : cases)
      check_gpu_kernels({.op = "Transpose", .inputs = {numbers(type, dims)}, .attrs = with("perm", perm)});
  check_gpu_kernels({.op = "Transpose", .inputs = {tensor::scalar(3.f)}});
}

TEST_CASE("GPU convolutions reorder their operands", "[vulkan]") {
  for (bool half : {false, true})
    check_gpu_kernels({.op = "Conv",
                       .inputs = {random_floats({2, 24, 9, 11}, 1), random_floats({40, 24, 1, 1}, 2)},
                       .atol = half ? 1e-2 : 1e-5,
                       .constants = 0b10},
                      half);
}

TEST_CASE("GPU Concat joins inputs of all widths", "[vulkan]") {
  for (dtype type : widths)
    for (int64_t axis : {0, 1, -1})
      for (int64_t size : {1, 3, 8}) {
        shape a{2, 4, 6}, b = a;
        b[axis < 0 ? 2 : static_cast<size_t>(axis)] = size;
        check_gpu_kernels({.op = "Concat",
                           .inputs = {numbers(type, a), numbers(type, b), numbers(type, a)},
                           .attrs = with("axis", axis)});
      }
  std::vector<tensor> many;
  for (int64_t i = 0; i < 19; ++i)
    many.push_back(random_floats({3, i % 4, 5}, static_cast<uint64_t>(i)));
  check_gpu_kernels({.op = "Concat", .inputs = many, .attrs = with("axis", int64_t{1})});
}

TEST_CASE("GPU Append puts new rows after those of a cache", "[vulkan]") {
  for (dtype type : widths)
    for (const auto& [batch, heads, past, rows] :
         {std::array<int64_t, 4>{2, 3, 7, 5}, {1, 4, 33, 1}, {3, 1, 2, 6}, {1, 2, 0, 3}, {2, 2, 3, 0}})
      for (const char* layout : {"bhsd", "bshd"}) {
        const shape fresh = layout == std::string("bshd") ? shape{batch, rows, heads, 6} : shape{batch, heads, rows, 6};
        check_gpu_kernels({.op = "Append",
                           .inputs = {numbers(type, {batch, heads, past, 6}), numbers(type, fresh)},
                           .attrs = with("new_layout", std::string(layout)),
                           .domain = "troupe"});
      }
}

TEST_CASE("GPU Concat joins channels-last images along their channels", "[vulkan]") {
  const tensor x = random_floats({2, 8, 5, 6}, 1);
  graph_builder b(21);
  const value_id in = b.input("x", to_symbolic(x.dims()));
  std::vector<value_id> parts;
  for (int64_t channels : {8, 12, 5})
    parts.push_back(
        b.op("Conv", {in, b.constant(fmt::format("w{}", channels), random_floats({channels, 8, 1, 1}, 2))}));
  const value_id joined = b.op("Concat", parts, with("axis", int64_t{1}));
  b.output(b.op("Conv", {joined, b.constant("w", random_floats({4, 25, 1, 1}, 3))}));
  const tensor wanted = run_graph(inferred(b.g), {x}).at(0);
  const gpu_run run = run_on_gpu(std::move(b.g), {x});
  check_close(run.results.at(0), wanted, 1e-4, 1e-4);
  for (const node& n : run.made->program->nodes)
    if (n.op_type == "Concat")
      CHECK(run.made->program->values[n.outputs[0]].layout == layout::channels_last);
}

TEST_CASE("GPU Split, Slice, Expand, Tile, DepthToSpace and SpaceToDepth copy", "[vulkan]") {
  for (dtype type : widths) {
    check_gpu_kernels({.op = "Split",
                       .inputs = {numbers(type, {4, 9, 2}), ints({2, 0, 7})},
                       .attrs = with("axis", int64_t{1}),
                       .outputs = 3});
    check_gpu_kernels(
        {.op = "Slice",
         .inputs = {numbers(type, {5, 7, 8}), ints({-1, 1}), ints({-10, 6}), ints({0, 1}), ints({-2, 3})}});
    check_gpu_kernels({.op = "Slice", .inputs = {numbers(type, {5, 16}), ints({4}), ints({12}), ints({1})}});
    check_gpu_kernels({.op = "Expand", .inputs = {numbers(type, {3, 1, 4}), ints({2, 3, 5, 4})}});
    check_gpu_kernels({.op = "Tile", .inputs = {numbers(type, {2, 3, 4}), ints({2, 1, 3})}});
    for (const char* mode : {"DCR", "CRD"}) {
      attributes attrs = with("blocksize", int64_t{2});
      attrs.set("mode", std::string(mode));
      check_gpu_kernels({.op = "DepthToSpace", .inputs = {numbers(type, {2, 8, 3, 5})}, .attrs = attrs});
    }
    check_gpu_kernels(
        {.op = "SpaceToDepth", .inputs = {numbers(type, {2, 3, 4, 6})}, .attrs = with("blocksize", int64_t{2})});
  }
}

TEST_CASE("GPU BitCast keeps the bits", "[vulkan]") {
  const auto bit_cast = [](dtype from, dtype to) {
    return kernel_case{
        .op = "BitCast", .inputs = {numbers(from, {3, 7})}, .attrs = with("to", static_cast<int64_t>(to)), .opset = 26};
  };
  for (const auto& [from, to] : {std::pair{dtype::uint8, dtype::int8},
                                 {dtype::float16, dtype::uint16},
                                 {dtype::float32, dtype::int32},
                                 {dtype::int64, dtype::uint64}})
    check_gpu_kernels(bit_cast(from, to));
  CHECK_FALSE(has_gpu_kernel(bit_cast(dtype::uint8, dtype::boolean)));
}

TEST_CASE("GPU Pad fills, repeats, mirrors, wraps and crops", "[vulkan]") {
  for (dtype type : widths)
    for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
      const tensor x = numbers(type, {2, 3, 4, 5});
      for (const std::vector<int64_t>& pads : {std::vector<int64_t>{0, 0, 1, 2, 0, 0, 3, 1},
                                               {0, 1, -1, 4, 1, 0, 0, -2},
                                               {0, 0, 9, 11, 0, 0, 12, 7},
                                               {1, -1, -2, 7, 2, 5, 5, -3}})
        check_gpu_kernels({.op = "Pad", .inputs = {x, ints(pads)}, .attrs = with("mode", std::string(mode))});
    }
  check_gpu_kernels({.op = "Pad", .inputs = {random_floats({3, 4}, 1), ints({1, 1, 1, 1}), tensor::scalar(-2.5f)}});
  check_gpu_kernels({.op = "Pad", .inputs = {random_floats({0, 4}, 1), ints({1, 1, 1, 1}), tensor::scalar(7.f)}});
  attributes old = with("pads", std::vector<int64_t>{1, 0, 0, 2});
  old.set("value", 1.5f);
  check_gpu_kernels({.op = "Pad", .inputs = {random_floats({3, 4}, 1)}, .attrs = old, .opset = 2});
}

TEST_CASE("GPU Gather picks rows by int32 and int64 indices", "[vulkan]") {
  for (dtype type : widths)
    for (dtype index : {dtype::int32, dtype::int64})
      for (int64_t axis : {0, 1, 2})
        for (int64_t inner : {8, 5})
          check_gpu_kernels({.op = "Gather",
                             .inputs = {numbers(type, {6, 7, inner}), random_integers(index, {3, 20}, 2, -5, 5)},
                             .attrs = with("axis", axis)});
}

TEST_CASE("GPU GatherElements and GatherND pick elements and runs", "[vulkan]") {
  for (dtype type : widths)
    for (dtype index : {dtype::int32, dtype::int64}) {
      for (int64_t axis : {0, 1, -1})
        check_gpu_kernels({.op = "GatherElements",
                           .inputs = {numbers(type, {4, 5, 6}), random_integers(index, {3, 4, 5}, 2, -4, 4)},
                           .attrs = with("axis", axis)});
      if (index == dtype::int32)
        continue;
      for (int64_t tuple : {0, 1, 2, 3})
        check_gpu_kernels(
            {.op = "GatherND", .inputs = {numbers(type, {3, 4, 8}), random_integers(index, {5, tuple}, 2, -3, 3)}});
      check_gpu_kernels({.op = "GatherND",
                         .inputs = {numbers(type, {2, 3, 4, 8}), random_integers(index, {2, 5, 1}, 2, -3, 3)},
                         .attrs = with("batch_dims", int64_t{1})});
    }
}

namespace {

/// 0 … n - 1 in another order for each row, `rows` times.
tensor permutations(int64_t rows, int64_t n) {
  tensor t(dtype::int64, {rows, n});
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<int64_t>()[i] = (i % n * 3 + i / n) % n - (i % 2 == 0 ? n : 0);
  return t;
}

} // namespace

TEST_CASE("GPU ScatterElements and ScatterND replace and reduce", "[vulkan]") {
  for (dtype type : widths) {
    check_gpu_kernels({.op = "ScatterElements",
                       .inputs = {numbers(type, {4, 7}), permutations(3, 7), numbers(type, {3, 7})},
                       .attrs = with("axis", int64_t{1})});
    check_gpu_kernels(
        {.op = "ScatterND",
         .inputs = {numbers(type, {7, 4}), tensor::of<int64_t>({3, 1}, {{5, -7, 2}}), numbers(type, {3, 4})}});
  }
  for (const char* reduction : {"add", "mul", "min", "max"})
    for (dtype type : {dtype::float32, dtype::float64, dtype::int32, dtype::int16, dtype::uint8, dtype::int8}) {
      const auto values = [&](shape dims) {
        return types::floats & set_of(type) ? to_type(random_floats(dims, 3), type)
                                            : random_integers(type, dims, 3, 1, 5);
      };
      attributes attrs = with("reduction", std::string(reduction));
      check_gpu_kernels(
          {.op = "ScatterND",
           .inputs = {values({3, 4, 5}), random_integers(dtype::int64, {40, 2}, 2, -3, 3), values({40, 5})},
           .attrs = attrs});
      attrs.set("axis", int64_t{1});
      check_gpu_kernels(
          {.op = "ScatterElements",
           .inputs = {values({3, 4, 5}), random_integers(dtype::int32, {2, 30, 4}, 2, -4, 4), values({2, 30, 4})},
           .attrs = attrs},
          type == dtype::float32);
    }
}

TEST_CASE("GPU TensorScatter updates a cache, linear and circular", "[vulkan]") {
  for (dtype type : widths)
    for (const char* mode : {"linear", "circular"})
      for (bool given : {false, true}) {
        kernel_case c{.op = "TensorScatter",
                      .inputs = {numbers(type, {3, 2, 6, 4}), numbers(type, {3, 2, 4, 4})},
                      .attrs = with("mode", std::string(mode)),
                      .opset = 24};
        if (given)
          c.inputs.push_back(*mode == 'l' ? ints({0, 2, 1}) : ints({0, 5, 3}));
        check_gpu_kernels(c);
        c.attrs.set("clear_after", int64_t{1});
        check_gpu_kernels(c);
      }
  check_gpu_kernels({.op = "TensorScatter",
                     .inputs = {random_floats({2, 5, 3}, 1), random_floats({2, 0, 3}, 2), ints({0, 3})},
                     .opset = 24});
}

TEST_CASE("GPU indices out of range read and write inside", "[vulkan]") {
  // The validation layer would not see it, but the poisoned neighbours would show: every result is an element of the
  // data.
  const tensor data = random_floats({5, 4}, 1);
  const auto run = [&](const char* op, const std::vector<tensor>& inputs) {
    graph_builder b(21);
    std::vector<value_id> ids;
    for (const tensor& t : inputs)
      ids.push_back(b.input(fmt::format("in{}", ids.size()), to_symbolic(t.dims()), t.type()));
    b.output(b.op(op, ids));
    return run_on_gpu(std::move(b.g), inputs).results.at(0);
  };
  const tensor rows = run("Gather", {data, ints({99, -99, int64_t{1} << 33})});
  for (int64_t i = 0; i < 12; ++i) {
    const int64_t row = i / 4 == 0 ? 4 : 0; // the low word of 2^33 is 0
    CHECK(rows.data<float>()[i] == data.data<float>()[row * 4 + i % 4]);
  }
  const tensor put = run("ScatterND", {data, tensor::of<int64_t>({1, 1}, {{1000}}), random_floats({1, 4}, 2)});
  for (int64_t i = 0; i < 16; ++i)
    CHECK(put.data<float>()[i] == data.data<float>()[i]);
}

TEST_CASE("GPU OneHot, Trilu and ReverseSequence choose elements", "[vulkan]") {
  for (dtype type : {dtype::float32, dtype::int64, dtype::uint8})
    for (int64_t axis : {0, 1, -1})
      for (const tensor& indices :
           {random_integers(dtype::int64, {3, 4}, 2, -8, 8), random_integers(dtype::int32, {3, 4}, 2, -8, 8),
            random_floats({3, 4}, 2, -8, 8), tensor::of<int64_t>({1, 2}, {{int64_t{1} << 32, INT64_MIN}})})
        check_gpu_kernels(
            {.op = "OneHot", .inputs = {indices, ints({6}), numbers(type, {2})}, .attrs = with("axis", axis)});
  for (dtype type : widths)
    for (int64_t upper : {0, 1})
      for (int64_t k : {int64_t{0}, int64_t{2}, int64_t{-3}, int64_t{1} << 40, -(int64_t{1} << 40)})
        check_gpu_kernels(
            {.op = "Trilu", .inputs = {numbers(type, {2, 4, 5}), tensor::scalar(k)}, .attrs = with("upper", upper)});
  check_gpu_kernels({.op = "Trilu", .inputs = {random_floats({5, 3}, 1)}});
  for (dtype type : widths)
    for (int64_t time : {0, 1}) {
      attributes attrs = with("time_axis", time);
      attrs.set("batch_axis", 1 - time);
      check_gpu_kernels(
          {.op = "ReverseSequence", .inputs = {numbers(type, {4, 4, 3}), ints({0, 1, 3, 4})}, .attrs = attrs});
    }
}

TEST_CASE("GPU Range, EyeLike and ConstantOfShape make elements", "[vulkan]") {
  const auto range = [](auto start, auto limit, auto delta) {
    check_gpu_kernels({.op = "Range", .inputs = {tensor::scalar(start), tensor::scalar(limit), tensor::scalar(delta)}});
  };
  range(int64_t{5} << 31, (int64_t{5} << 31) - 3000, int64_t{-1});
  range(int64_t{-7}, int64_t{1} << 44, (int64_t{1} << 32) + 3);
  range(int32_t{3}, int32_t{9000}, int32_t{7});
  range(1.5f, -300.f, -0.25f);
  for (dtype type : widths)
    for (int64_t k : {0, 2, -3, 100})
      check_gpu_kernels({.op = "EyeLike", .inputs = {numbers(type, {4, 5})}, .attrs = with("k", k)});
  check_gpu_kernels(
      {.op = "ConstantOfShape", .inputs = {ints({40, 50})}, .attrs = with("value", ints({int64_t{3} << 40}))});
  check_gpu_kernels({.op = "ConstantOfShape", .inputs = {ints({40, 50})}});
}
