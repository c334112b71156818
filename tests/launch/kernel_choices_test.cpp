// Choices of kernels on fabricated devices: the keys by which they are found, and when they hold.
#include "launch/kernel_choices.hpp"

#include "launch/launch_table.hpp"
#include "launch/tiling.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"

#include <set>

using namespace troupe;

namespace {

gpu_features some_gpu(bool matrices = false) {
  return {.max_group_size = 1024,
          .shared_bytes = 49152,
          .max_groups = {1u << 31, 65535, 65535},
          .max_binding_bytes = int64_t{1} << 32,
          .float16 = true,
          .cooperative_matrix = matrices,
          .group_matrices = matrices,
          .units = 132};
}

operand given(shape dims, dtype type = dtype::float32) {
  return {.type = type, .dims = std::move(dims)};
}

operand constant(shape dims, dtype type = dtype::float32) {
  operand o = given(std::move(dims), type);
  auto w = std::make_shared<weight>();
  w->type = type;
  w->dims = o.dims;
  o.constant = std::move(w);
  return o;
}

const op_def& matmul() {
  return *find_op("", "MatMul", 13);
}

/// Some driver and code.
shader_revision revision(uint64_t number) {
  return [=](std::string_view shader) { return hash128{number, shader.size()}; };
}

struct product {
  attributes attrs;
  gpu_features gpu;
  gpu_call call;

  explicit product(dtype type = dtype::float32, bool matrices = false)
      : gpu(some_gpu(matrices)), call{attrs,
                                      {given({100, 256}, type), constant({256, 512}, type)},
                                      {given({100, 512}, type)},
                                      gpu} {}
};

launch_lists all_ways(gpu_call call) {
  call.ways = way_range::all;
  return launches_of(matmul(), call);
}

} // namespace

TEST_CASE("a call is known by everything that its kernel depends on", "[launch][C11]") {
  const product base;
  const hash128 key = key_of_call(matmul(), base.call);
  CHECK(key_of_call(matmul(), product().call) == key);
  const auto changed = [&](auto&& change) {
    gpu_call call = base.call;
    change(call);
    return key_of_call(matmul(), call);
  };
  CHECK(key_of_call(*find_op("troupe", "MatMul", 1), base.call) != key);
  CHECK(changed([](gpu_call& c) { c.inputs[0].dims = {101, 256}; }) != key);
  CHECK(changed([](gpu_call& c) { c.inputs[0].dims = {10, 10, 256}; }) != key);
  CHECK(changed([](gpu_call& c) { c.inputs[0].type = dtype::float16; }) != key);
  CHECK(changed([](gpu_call& c) { c.inputs[0].layout = layout::channels_last; }) != key);
  CHECK(changed([](gpu_call& c) { c.inputs[1].constant = nullptr; }) != key);
  CHECK(changed([](gpu_call& c) { c.inputs.push_back(given({512})); }) != key);
  CHECK(changed([](gpu_call& c) { c.outputs[0].part = {1024, 0, 102400}; }) != key);
  CHECK(changed([](gpu_call& c) {
          c.outputs[0].part = {1024, 512, 102400};
        }) != changed([](gpu_call& c) {
          c.outputs[0].part = {1024, 0, 102400};
        }));
  attributes fused;
  fused.set("activation", std::string("Relu"));
  CHECK(key_of_call(matmul(), {fused, base.call.inputs, base.call.outputs, base.gpu}) != key);
}

TEST_CASE("a kernel is known by its code, its driver and its launches", "[launch][C11]") {
  const product p;
  const launch_lists lists = all_ways(p.call);
  REQUIRE(lists.size() > 4);
  std::set<std::string> keys;
  for (const launch_list& list : lists)
    keys.insert(to_hex(key_of_kernel(list, revision(1))));
  CHECK(keys.size() == lists.size());
  CHECK(key_of_kernel(lists[0], revision(2)) != key_of_kernel(lists[0], revision(1)));
  launch_list other = lists[0];
  other.launches[0].groups[2] += 1;
  CHECK(key_of_kernel(other, revision(1)) != key_of_kernel(lists[0], revision(1)));
}

TEST_CASE("all ways begin with the usual one, and none is hopeless", "[launch][C11]") {
  for (const auto& [type, matrices] :
       {std::pair(dtype::float32, false), {dtype::float16, false}, {dtype::float16, true}}) {
    const product p(type, matrices);
    const launch_lists usual = launches_of(matmul(), p.call), all = all_ways(p.call);
    REQUIRE_FALSE(usual.empty());
    CHECK(all.size() >= 2 * usual.size());
    CHECK(key_of_kernel(usual[0], revision(1)) == key_of_kernel(all.at(0), revision(1)));
    std::map<std::string, double> best;
    for (const launch_list& list : all) {
      CHECK(list.time > 0);
      CHECK_FALSE(list.tile.empty());
      CHECK(list.time <= hopeless_time * best.try_emplace(list.name, list.time).first->second);
    }
    CHECK(best.size() == usual.size());
    for (const launch_list& list : usual)
      CHECK(list.tile.empty()); // costs planning nothing
  }
}

TEST_CASE("a choice holds for its call, device, driver and kernel, else the rules decide", "[launch][C11]") {
  const product p;
  const launch_lists usual = launches_of(matmul(), p.call), all = all_ways(p.call);
  kernel_choices choices(revision(1));
  CHECK_FALSE(choices.find(matmul(), p.call, usual));
  for (const launch_list& wanted : all) {
    const hash128 kernel = key_of_kernel(wanted, revision(1));
    choices.set({{key_of_call(matmul(), p.call), kernel}});
    const auto found = choices.find(matmul(), p.call, usual);
    REQUIRE(found);
    CHECK(key_of_kernel(*found, revision(1)) == kernel);
    gpu_call other = p.call;
    other.inputs[0].dims[0] = other.outputs[0].dims[0] = 99;
    CHECK_FALSE(choices.find(matmul(), other, launches_of(matmul(), other)));
    kernel_choices later(revision(2)); // another driver, or a kernel that was changed
    later.set({{key_of_call(matmul(), p.call), kernel}});
    CHECK_FALSE(later.find(matmul(), p.call, usual));
  }
  choices.set({});
  CHECK_FALSE(choices.find(matmul(), p.call, usual));
}
