// Tile: x repeated along every axis, as a strided copy in which each axis is a pair (repeat, element).
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/movement.hpp"
#include "ops/operand_copy.hpp"

namespace troupe {
namespace {

void infer_tile(infer_context& c) {
  const std::vector<dim> repeats = c.require_known(1);
  symbolic_shape out = c.dims(0);
  if (repeats.size() != out.size())
    fail(errc::invalid_model, "Tile has {} repeats for an input of rank {}", repeats.size(), out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (repeats[i].is_constant() && repeats[i].constant() < 0)
      fail(errc::invalid_model, "Tile repeats an axis {} times", repeats[i].constant());
    out[i] = out[i] * repeats[i];
  }
  set_moved(c, {std::move(out)});
}

/// Opset 1: the number of tiles along one axis; both are scalar inputs.
void infer_tile_1(infer_context& c) {
  const auto tiles = c.require_constants(1), axis = c.require_constants(2);
  if (tiles.size() != 1 || axis.size() != 1 || tiles[0] < 0)
    fail(errc::invalid_model, "Tile takes one count of tiles, not negative, and one axis");
  symbolic_shape out = c.dims(0);
  dim& d = out[normalize_axis(axis[0], out.size())];
  d = d * dim(tiles[0]);
  set_moved(c, {std::move(out)});
}

} // namespace

std::vector<operand_copy> tile_copies(kernel_context& c) {
  const const_view& in = c.input(0);
  const mutable_view& out = c.output(0);
  if (out.size() == 0)
    return {};
  const shape from = strides_of(in.dims), to = strides_of(out.dims);
  operand_copy copy;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    if (in.dims[i] == 0 || out.dims[i] % in.dims[i] != 0)
      fail(errc::invalid_input, "Tile of {} does not give {}", to_string(in.dims), to_string(out.dims));
    copy.axes.push_back({out.dims[i] / in.dims[i], 0, in.dims[i] * to[i]});
    copy.axes.push_back({in.dims[i], from[i], to[i]});
  }
  return {std::move(copy)};
}

namespace {

void tile_kernel(kernel_context& c) {
  run_copies(c, tile_copies(c));
}

void tile_1_axes(call_axes& a) {
  const size_t axis = normalize_axis(a.call().require_constants(2).at(0), a.call().rank(0));
  a.keep(axis, axis + 1);
}

void tile_axes(call_axes& a) {
  const std::vector<dim> repeats = a.call().require_known(1);
  for (size_t axis = 0; axis < repeats.size(); ++axis)
    if (repeats[axis].is(1))
      a.map({{0, axis}}, axis);
    else if (a.call().dims(0)[axis].is(1))
      a.map({}, axis).sizes = {{1, axis}};
}

constexpr auto tile_rows = std::to_array<op_def>({
    op_row("Tile", 1, infer_tile_1, tile_kernel,
           {.inputs = {3, 3}, .types = movable_types, .host_inputs = 0b110, .axes = tile_1_axes, .mixes = "repeats"}),
    op_row("Tile", 6, infer_tile, tile_kernel,
           {.inputs = {2, 2}, .types = movable_types, .host_inputs = 0b10, .axes = tile_axes, .mixes = "repeats"}),
});

} // namespace

extern constinit const op_table onnx_tile_ops = tile_rows;

} // namespace troupe
