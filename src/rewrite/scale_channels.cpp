// A BatchNormalization that no convolution has taken in (the first node of a DenseNet's layers) becomes a product and a sum with constants, which
// chains of scalar functions take in: with the activation behind it, one pass over the elements.
#include "rewrite/batch_norm.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

/// Not in 16 bits, where factors might leave the range.
bool scale_by_constants(graph_editor& e, node_id n) {
  const node norm = e.at(n);
  const value& x = e.val(norm.inputs[0]);
  if (!(set_of(dtype::float32, dtype::float64) & set_of(x.type)) || !x.dims || x.dims->size() < 2 ||
      !(*x.dims)[1].is_constant())
    return false;
  const int64_t channels = (*x.dims)[1].constant();
  const auto scaling = scaling_of(e, norm, channels, x.type);
  if (!scaling)
    return false;
  shape column(x.dims->size() - 1, 1);
  column[0] = channels;
  const weight_ptr moved = derive("Sub", {scaling->shift, derive("Mul", {scaling->mean, scaling->factor})});
  const value_id factor = e.add_constant(norm.name + "/factor", derive_reshape(scaling->factor, column));
  const value_id shift = e.add_constant(norm.name + "/shift", derive_reshape(moved, column));
  const value_id scaled =
      add_inferred(e, make_node(norm.name + "/scaled", "", "Mul", {norm.inputs[0], factor}, {}), norm.name);
  e.replace(n, make_node(norm.name, "", "Add", {scaled, shift}, {norm.outputs[0]}));
  return true;
}

} // namespace

bool scale_channels(graph_editor& e) {
  bool changed = false;
  const auto count = static_cast<node_id>(e.node_count()); // those that are added are none
  for (node_id n = 0; n < count; ++n)
    changed |= e.alive(n) && is_op(e.at(n), "BatchNormalization") && scale_by_constants(e, n);
  return changed;
}

} // namespace troupe
