// DepthToSpace and SpaceToDepth: blocks of channels become blocks of pixels and back. Both are a transposition of the
// input seen as [N, …] with channels and both spatial axes split in two.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/movement.hpp"
#include "ops/operand_copy.hpp"

namespace troupe {
namespace {

int64_t block_of(const attributes& attrs) {
  const int64_t block = attrs.integer("blocksize");
  if (block < 1 || block > 1 << 16)
    fail(errc::invalid_model, "blocksize is {}", block);
  return block;
}

/// Whether channel blocks come first (DCR) or last (CRD, opset 11).
bool depth_first(const attributes& attrs) {
  return word_of(attrs, "mode", "DCR", {"DCR", "CRD"}) == "DCR";
}

dim divided(const dim& d, int64_t by) {
  dim quotient = floor_div(d, by);
  if (d.is_constant() && !(quotient * dim(by) == d))
    fail(errc::invalid_model, "a dim of {} is not a multiple of {}", d.constant(), by);
  return quotient;
}

void check_rank(size_t rank) {
  if (rank != 4)
    fail(errc::invalid_model, "expected rank 4 [N, C, H, W], found rank {}", rank);
}

void infer_depth_to_space(infer_context& c) {
  const symbolic_shape& in = c.dims(0);
  check_rank(in.size());
  depth_first(c.attrs());
  const int64_t b = block_of(c.attrs());
  c.set_output(0, c.type(0), {in[0], divided(in[1], b * b), in[2] * dim(b), in[3] * dim(b)});
}

void infer_space_to_depth(infer_context& c) {
  const symbolic_shape& in = c.dims(0);
  check_rank(in.size());
  const int64_t b = block_of(c.attrs());
  c.set_output(0, c.type(0), {in[0], in[1] * dim(b * b), divided(in[2], b), divided(in[3], b)});
}

void check_volume(const kernel_context& c) {
  if (c.input(0).size() != c.output(0).size())
    fail(errc::invalid_input, "shape {} is not a multiple of the block size", to_string(c.input(0).dims));
}

} // namespace

std::vector<operand_copy> depth_to_space_copies(kernel_context& c) {
  check_volume(c);
  const const_view& in = c.input(0);
  const mutable_view& out = c.output(0);
  const int64_t b = block_of(c.attrs()), depth = out.dims[1], h = in.dims[2], w = in.dims[3];
  const bool dcr = depth_first(c.attrs());
  // Channel = (row, column, depth) or (depth, row, column); steps of the source:
  const int64_t plane = h * w, d_step = dcr ? plane : b * b * plane, c_step = dcr ? depth * plane : plane;
  const int64_t r_step = b * c_step, row = w * b;
  return {{.axes = {{in.dims[0], in.dims[1] * plane, in.dims[1] * plane},
                    {depth, d_step, plane * b * b},
                    {h, w, b * row},
                    {b, r_step, row},
                    {w, 1, b},
                    {b, c_step, 1}}}};
}

std::vector<operand_copy> space_to_depth_copies(kernel_context& c) {
  check_volume(c);
  const const_view& in = c.input(0);
  const mutable_view& out = c.output(0);
  const int64_t b = block_of(c.attrs()), depth = in.dims[1], h = out.dims[2], w = out.dims[3];
  const int64_t plane = h * w, image = out.dims[1] * plane, row = w * b;
  return {{.axes = {{in.dims[0], image, image},
                    {b, row, b * depth * plane},
                    {b, 1, depth * plane},
                    {depth, plane * b * b, plane},
                    {h, b * row, w},
                    {w, b, 1}}}};
}

namespace {

void depth_to_space_kernel(kernel_context& c) {
  run_copies(c, depth_to_space_copies(c));
}

void space_to_depth_kernel(kernel_context& c) {
  run_copies(c, space_to_depth_copies(c));
}

/// A place becomes a block of places, or the other way round; channels mix.
void depth_to_space_axes(call_axes& a) {
  const dim block = block_of(a.call().attrs());
  a.batches();
  for (const size_t axis : {2, 3})
    a.map({{0, axis}}, {{0, axis, block}});
}

void space_to_depth_axes(call_axes& a) {
  const dim block = block_of(a.call().attrs());
  a.batches();
  for (const size_t axis : {2, 3})
    a.map({{0, axis, block}}, {{0, axis}});
}

constexpr auto space_depth_rows = std::to_array<op_def>({
    op_row("DepthToSpace", 1, infer_depth_to_space, depth_to_space_kernel,
           {.types = movable_types, .axes = depth_to_space_axes}),
    op_row("SpaceToDepth", 1, infer_space_to_depth, space_to_depth_kernel,
           {.types = movable_types, .axes = space_to_depth_axes}),
});

} // namespace

extern constinit const op_table onnx_space_depth_ops = space_depth_rows;

} // namespace troupe
