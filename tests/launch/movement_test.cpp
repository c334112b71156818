// Launch rules of copies on fabricated devices, run word by word on the host. Results of kernels are tested on a
// device.
#include "launch/launch_table.hpp"
#include "ops/movement_calls.hpp"
#include "support/catch.hpp"

#include <cstring>
#include <numeric>

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Bindings reach 512 bytes: everything here must be cut.
gpu_features short_reach() {
  return {.max_group_size = 256, .max_binding_bytes = 512, .binding_alignment = 64, .float16 = true, .int8 = true};
}

tensor counted(shape dims) {
  tensor t(dtype::float32, std::move(dims));
  std::iota(t.mutable_data<float>(), t.mutable_data<float>() + t.size(), 0.f);
  return t;
}

/// Does the same as shaders/strided_copy.comp, and checks every access.
void run_strided_copy(const launch& l, const std::vector<tensor>& inputs, tensor& out) {
  const launch_binding &from = l.bindings.at(0), &to = l.bindings.at(1);
  const size_t bytes = std::stoul(l.shader.substr(l.shader.find('w') + 1)) / 8;
  REQUIRE(from.offset + from.bytes <= inputs.at(from.index).bytes());
  REQUIRE(to.offset + to.bytes <= out.bytes());
  for (uint32_t index = 0; index < l.params[0]; ++index) {
    uint32_t rest = index, f = l.params[2], t = l.params[3];
    for (uint32_t i = 0; i < l.params[1]; ++i) {
      const uint32_t* axis = &l.params[4 + 4 * i];
      f += rest % axis[0] * axis[1];
      t += rest % axis[0] * axis[2];
      rest /= axis[0];
    }
    REQUIRE((int64_t{f} + 1) * static_cast<int64_t>(bytes) <= from.bytes);
    REQUIRE((int64_t{t} + 1) * static_cast<int64_t>(bytes) <= to.bytes);
    std::memcpy(static_cast<char*>(out.mutable_data()) + to.offset + t * bytes,
                static_cast<const char*>(inputs[from.index].data()) + from.offset + f * bytes, bytes);
  }
}

/// Runs the last alternative, which is made of strided copies alone, and compares it with the reference kernel.
void check_cut(const char* op, const std::vector<tensor>& inputs, const attributes& attrs) {
  INFO(op);
  const op_def* def = find_op("", op, 19);
  const tensor wanted = evaluate(*def, attrs, inputs, 1).at(0);
  const gpu_features gpu = short_reach();
  gpu_call call{attrs, {}, {{.type = wanted.type(), .dims = wanted.dims()}}, gpu};
  for (const tensor& t : inputs)
    call.inputs.push_back({.type = t.type(), .dims = t.dims(), .known = t});
  const launch_lists lists = launches_of(*def, call);
  REQUIRE(!lists.empty());
  REQUIRE(lists.back().launches.size() > 1);
  tensor out(wanted.type(), wanted.dims());
  std::memset(out.mutable_data(), 0xff, static_cast<size_t>(out.bytes()));
  for (const launch& l : lists.back().launches)
    run_strided_copy(l, inputs, out);
  CHECK(std::memcmp(out.data(), wanted.data(), static_cast<size_t>(out.bytes())) == 0);
}

} // namespace

TEST_CASE("Copies are cut if a binding does not reach", "[ops]") {
  check_cut("Transpose", {counted({20, 30})}, {});
  check_cut("Transpose", {counted({2, 6, 7, 16})}, with("perm", std::vector<int64_t>{0, 2, 1, 3}));
  check_cut("Concat", {counted({3, 40}), counted({3, 77}), counted({3, 30})}, with("axis", int64_t{1}));
  check_cut("Expand", {counted({5, 1}), ints({3}, {4, 5, 40})}, {});
  check_cut("Slice",
            {counted({40, 30}), ints({2}, {-1, 3}), ints({2}, {-41, 30}), ints({2}, {0, 1}), ints({2}, {-1, 2})}, {});
}
