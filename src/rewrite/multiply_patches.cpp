// Convolutions that cut an image of few channels into patches (the first layer of vision transformers) become products
// of the patches by the filters: im2col, of patches that do not overlap. A GPU's convolution gathers each of the three
// channels of a pixel alone; a copy that lays the patches out as rows costs a fraction of that, and the product leaves
// its rows as what follows wants them: the Reshape and Transpose of a transformer's tokens vanish.
//
//   Conv(x [N, C, H, W], w [O, C, h, w]) with strides h and w, no padding
//     = Reshape(Transpose(MatMul(patches [N, H/h · W/w, C · h · w], wᵀ)), [N, O, H/h, W/w])
#include "base/checked.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

constexpr int64_t most_channels = 4; // of what counts as an image
constexpr int64_t fewest_taps = 32;  // of a filter: a product of shorter rows is not worth a copy

/// What the axes of an image and of its patches are; one element for each of H, W ….
struct patches {
  dim batch;
  int64_t channels, filters, taps; // taps: elements of a filter
  shape kernel, counts;            // a patch's sizes, and how many patches there are
};

bool all_are(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

/// Nullopt if node `n` is not such a convolution.
std::optional<patches> patches_of(const graph_editor& e, const node& n) {
  const weight_ptr w = is_op(n, "Conv") ? e.val(n.inputs[1]).constant : nullptr;
  const auto& dims = e.val(n.inputs[0]).dims;
  if (!w || !may_derive(*w) || !dims || dims->size() < 3 || !is_constant(std::span(*dims).subspan(1)) ||
      w->dims.size() != dims->size() || n.attrs.integer("group", 1) != 1)
    return std::nullopt;
  patches p{.batch = dims->front(), .channels = (*dims)[1].constant(), .filters = w->dims[0]};
  const std::string padding = n.attrs.text("auto_pad", "NOTSET");
  const bool padded = (padding != "NOTSET" && padding != "VALID") || !all_are(n.attrs.integers("pads", {}), 0);
  p.kernel = shape(w->dims.begin() + 2, w->dims.end());
  if (padded || w->dims[1] != p.channels || !all_are(n.attrs.integers("dilations", {}), 1) ||
      n.attrs.integers("strides", std::vector<int64_t>(p.kernel.size(), 1)) != p.kernel)
    return std::nullopt;
  p.taps = checked_mul(p.channels, volume(p.kernel));
  if (p.channels > most_channels || p.taps < fewest_taps || p.filters == 0)
    return std::nullopt;
  for (size_t axis = 0; axis < p.kernel.size(); ++axis) {
    const int64_t size = (*dims)[axis + 2].constant();
    if (size == 0 || size % p.kernel[axis] != 0)
      return std::nullopt;
    p.counts.push_back(size / p.kernel[axis]);
  }
  return p;
}

/// Whether one node alone reads `v`, and lays it out anew.
bool is_laid_out(const graph_editor& e, value_id v) {
  const node_id reader = e.only_consumer(v);
  return reader >= 0 &&
         (is_op(e.at(reader), "Reshape") || is_op(e.at(reader), "Flatten") || is_op(e.at(reader), "Transpose"));
}

/// The patches of `image` as rows, [batch, patches, taps].
value_id add_rows(graph_editor& e, const std::string& name, value_id image, const patches& p) {
  symbolic_shape cut{p.batch, p.channels};
  std::vector<int64_t> perm{0}, inside{1};
  for (size_t axis = 0; axis < p.kernel.size(); ++axis) {
    perm.push_back(std::ssize(cut));
    cut.emplace_back(p.counts[axis]);
    inside.push_back(std::ssize(cut));
    cut.emplace_back(p.kernel[axis]);
  }
  perm.insert(perm.end(), inside.begin(), inside.end());
  const value_id apart = add_inferred(e, make_reshape(e, name + "/cut", image, cut, no_value), name);
  const value_id moved =
      add_inferred(e, make_node(name + "/patches", "", "Transpose", {apart}, {}, perm_attribute(perm)), name);
  return add_inferred(e, make_reshape(e, name + "/rows", moved, {p.batch, volume(p.counts), p.taps}, no_value), name);
}

bool multiply(graph_editor& e, node_id index) {
  const auto p = patches_of(e, e.at(index));
  const node conv = e.at(index);
  if (!p || !is_laid_out(e, conv.outputs[0]))
    return false;
  const std::string name = e.val(conv.outputs[0]).name;
  const weight_ptr flat = derive_reshape(e.val(conv.inputs[1]).constant, {p->filters, p->taps});
  const value_id filters = e.add_constant(name + "/filters", derive("Transpose", {flat}, perm_attribute({1, 0})));
  const value_id rows = add_rows(e, name, conv.inputs[0], *p);
  value_id product = add_inferred(e, make_node(name + "/product", "", "MatMul", {rows, filters}, {}), name);
  if (const value_id bias = input_of(conv, 2); bias != no_value)
    product = add_inferred(e, make_node(name + "/bias", "", "Add", {product, bias}, {}), name);
  const value_id planes =
      add_inferred(e, make_node(name + "/planes", "", "Transpose", {product}, {}, perm_attribute({0, 2, 1})), name);
  return e.replace(index, make_reshape(e, name, planes, *e.val(conv.outputs[0]).dims, conv.outputs[0]));
}

} // namespace

bool multiply_patches(graph_editor& e) {
  return each_present_node(e, [&](node_id n) { return multiply(e, n); });
}

} // namespace troupe
