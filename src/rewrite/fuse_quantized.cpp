// Products of dequantised operands become products of bytes: DequantizeLinear of both operands of a Conv, MatMul or
// Gemm goes into troupe.QuantizedConv or troupe.QuantizedMatMul, then bias, activation and QuantizeLinear after it. The
// same for ConvInteger and MatMulInteger with the Cast and the factors that follow them where models quantise as they
// run; and for averages of small planes, which are convolutions by ones.
#include "rewrite/epilogue.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"
#include "rewrite/quantized_values.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr size_t b_scale = 3, b_zero = 5, bias = 6, y_scale = 7, y_zero = 8;

bool is_conv(const node& n) {
  return n.op_type.find("Conv") != std::string::npos;
}

/// Returns the number of columns (filters) of product `n`, 0 where it is not known.
int64_t columns_of(const graph_editor& e, const node& n) {
  const auto& dims = e.val(n.outputs[0]).dims;
  if (!dims || dims->size() < 2)
    return 0;
  const dim& columns = is_conv(n) ? (*dims)[1] : dims->back();
  return columns.is_constant() ? columns.constant() : 0;
}

/// Returns the elements of float `v`, which meets product `n` element by element, as one value or one for each column;
/// no_value if it is something else.
value_id by_column(graph_editor& e, const node& n, value_id v) {
  const value& operand = e.val(v);
  const int64_t columns = columns_of(e, n);
  if (operand.type != dtype::float32 || !operand.dims || !is_constant(*operand.dims) || columns == 0)
    return no_value;
  const shape dims = constants(*operand.dims);
  const size_t rank = e.val(n.outputs[0]).dims->size();
  if (dims.size() > rank || (volume(dims) != 1 && volume(dims) != columns))
    return no_value;
  if (volume(dims) == 1 || dims.size() == 1)
    return volume(dims) == 1 || !is_conv(n) ? v : no_value;
  // [C, 1, …] or [1, C, 1, …] for filters, [1, …, N] for columns.
  const size_t behind = is_conv(n) ? rank - 2 : 0;
  if (!operand.constant || dims.size() <= behind || dims[dims.size() - 1 - behind] != columns)
    return no_value;
  return e.add_constant(operand.name + "/columns", derive_reshape(operand.constant, {columns}));
}

value_id one(graph_editor& e, const std::string& name) {
  tensor number(dtype::float32, {});
  *number.mutable_data<float>() = 1.f;
  return e.add_constant(name + "/one", std::move(number));
}

/// Whether a constant's bytes are known to be zero.
bool is_zero(const weight& w) {
  const auto* bytes = static_cast<const uint8_t*>(w.leaf.data());
  return w.leaf.defined() && std::all_of(bytes, bytes + w.leaf.bytes(), [](uint8_t b) { return b == 0; });
}

/// Returns zero points as a value; no_value if they are all zero, so that kernels need not take them off.
value_id zero_points(graph_editor& e, const std::string& name, const weight_ptr& w) {
  return w && !is_zero(*w) ? e.add_constant(name, w) : no_value;
}

/// Returns Gemm's C as a bias; nullopt if it is there and is none.
std::optional<value_id> gemm_bias(graph_editor& e, const node& n) {
  const value_id c = input_of(n, 2);
  if (c == no_value)
    return no_value;
  const value_id found = by_column(e, n, c);
  if (found == no_value || e.val(found).dims->size() != 1 || !(*e.val(found).dims)[0].is(columns_of(e, n)))
    return std::nullopt;
  return found;
}

/// Conv, MatMul or Gemm `n` of dequantised operands.
bool fuse_product(graph_editor& e, node_id index) {
  const node& n = e.at(index);
  const bool conv = is_op(n, "Conv"), gemm = is_op(n, "Gemm"), matmul = is_op(n, "MatMul");
  const value_id right = input_of(n, 1);
  if ((!conv && !gemm && !matmul) || right == no_value || columns_of(e, n) == 0)
    return false;
  const bool plain_gemm =
      n.attrs.integer("transA", 0) == 0 && n.attrs.real("alpha", 1) == 1 && n.attrs.real("beta", 1) == 1;
  const auto x = dequantised_tensor(e, n.inputs[0]);
  if (!x || (gemm && !plain_gemm) || e.val(n.inputs[0]).dims->size() < 2)
    return false;
  node fused =
      make_node(n.name, "troupe", conv ? "QuantizedConv" : "QuantizedMatMul",
                {x->elements, no_value, x->scale, no_value, x->zero}, {n.outputs[0]}, conv ? n.attrs : attributes());
  fused.inputs.resize(7, no_value);
  const bool transposed = gemm && n.attrs.integer("transB", 0) != 0;
  if (auto w = dequantised_weight(e, right, conv ? 0 : transposed ? 0 : 1, !conv)) {
    if (transposed)
      w->elements = derive("Transpose", {w->elements});
    fused.inputs[1] = e.add_constant(n.name + "/weight", w->elements);
    fused.inputs[b_scale] = e.add_constant(n.name + "/weight_scale", w->scale);
    fused.inputs[b_zero] = zero_points(e, n.name + "/weight_zero", w->zero);
  } else if (const auto b = dequantised_tensor(e, right); b && matmul && e.val(right).dims->size() >= 2) {
    fused.inputs[1] = b->elements;
    fused.inputs[b_scale] = b->scale;
    fused.inputs[b_zero] = b->zero;
  } else {
    return false;
  }
  if (conv)
    fused.inputs[bias] = input_of(n, 2);
  if (gemm) {
    const auto c = gemm_bias(e, n);
    if (!c)
      return false;
    fused.inputs[bias] = *c;
  }
  return e.replace(index, std::move(fused));
}

/// Whether sums of `plane` bytes times `share`, one over that as a float, are what divisions give wherever these are
/// exact: there the average may be at a tie when it is quantised. Others are no floats, so that it is beside none.
bool divides_exactly(float share, int64_t plane) {
  int64_t odd = plane; // sums that are no multiples of it have no exact quotient
  while (odd % 2 == 0)
    odd /= 2;
  for (int64_t sum = odd; sum <= 255 * plane; sum += odd)
    if (static_cast<float>(sum) * share != static_cast<float>(sum) / static_cast<float>(plane))
      return false;
  return true;
}

/// GlobalAveragePool `n` of dequantised planes of known size: each channel's convolution by ones, whose scale is one
/// over their number.
bool fuse_average(graph_editor& e, node_id index) {
  constexpr int64_t largest_plane = 121; // taps that GPUs unroll
  const node& n = e.at(index);
  const auto x = is_op(n, "GlobalAveragePool") ? dequantised_tensor(e, n.inputs[0]) : std::nullopt;
  if (!x)
    return false;
  const std::span<const dim> dims = *e.val(n.inputs[0]).dims;
  if (dims.size() < 3 || dims.size() > 5 || !is_constant(dims.subspan(1)))
    return false;
  shape filters = constants(dims.subspan(1));
  const int64_t channels = filters[0], plane = volume(std::span(filters).subspan(1));
  if (channels == 0 || plane == 0 || plane > largest_plane)
    return false;
  const float share = 1 / static_cast<float>(plane);
  if (!divides_exactly(share, plane))
    return false;
  filters.insert(filters.begin() + 1, 1);
  const weight_ptr one = weight::from_tensor(tensor::of<int8_t>({}, std::vector<int8_t>{1})),
                   sizes = weight::from_tensor(tensor::of<int64_t>({std::ssize(filters)}, filters));
  node fused = make_node(n.name, "troupe", "QuantizedConv",
                         {x->elements, e.add_constant(n.name + "/ones", derive("Expand", {one, sizes})), x->scale,
                          e.add_constant(n.name + "/share", tensor::scalar(share)), x->zero, no_value, no_value},
                         {n.outputs[0]});
  fused.attrs.set("group", channels);
  return e.replace(index, std::move(fused));
}

/// Returns the other operand of commutative `op_type` `n` beside `v`, with the output's dims those of `v`; else
/// no_value.
value_id beside(const graph_editor& e, node_id n, std::string_view op_type, value_id v) {
  if (n < 0 || !is_op(e.at(n), op_type) || e.at(n).inputs[0] == e.at(n).inputs[1] ||
      !same_dims(e, v, e.at(n).outputs[0]))
    return no_value;
  return e.at(n).inputs[e.at(n).inputs[0] == v ? 1 : 0];
}

/// MatMulInteger or ConvInteger `n`, then Cast, then Mul.
bool fuse_integer_product(graph_editor& e, node_id index) {
  const node& n = e.at(index);
  if (!is_op(n, "MatMulInteger") && !is_op(n, "ConvInteger"))
    return false;
  const value_id sums = n.outputs[0];
  const node_id cast = e.used_once(sums) ? consumed_by(e, sums, "Cast") : -1;
  if (cast < 0 || e.val(e.at(cast).outputs[0]).type != dtype::float32 || !e.used_once(e.at(cast).outputs[0]))
    return false;
  const value_id real = e.at(cast).outputs[0];
  const node_id product = e.only_consumer(real);
  const value_id factor = beside(e, product, "Mul", real);
  const value_id scale = factor == no_value ? no_value : by_column(e, n, factor);
  const bool ranks = e.val(n.inputs[0]).dims->size() >= 2 && e.val(n.inputs[1]).dims->size() >= 2;
  const auto single_zero = [&](size_t i, int64_t most) {
    const value_id v = input_of(n, i);
    return v == no_value ||
           (e.val(v).dims && (volume(*e.val(v).dims).is(1) || (most > 1 && volume(*e.val(v).dims).is(most))));
  };
  if (scale == no_value || !ranks || !single_zero(2, 1) || !single_zero(3, columns_of(e, n)))
    return false;
  const bool single = volume(*e.val(scale).dims).is(1);
  const value_id other = one(e, n.name);
  node fused = make_node(
      n.name, "troupe", is_op(n, "ConvInteger") ? "QuantizedConv" : "QuantizedMatMul",
      {n.inputs[0], n.inputs[1], single ? scale : other, single ? other : scale, input_of(n, 2), input_of(n, 3)},
      {e.at(product).outputs[0]}, n.attrs);
  return e.replace(product, std::move(fused));
}

/// Puts product `n`, with input `slot` set to `v`, in the place of `last`.
bool extend(graph_editor& e, node_id n, node_id last, size_t slot, value_id v, const std::string& suffix) {
  node fused = e.at(n);
  fused.name += suffix;
  if (fused.inputs.size() <= slot)
    fused.inputs.resize(slot + 1, no_value);
  fused.inputs[slot] = v;
  fused.outputs = {e.at(last).outputs[0]};
  return e.replace(last, std::move(fused));
}

/// Takes in a factor if B's scale is still 1.
bool take_factor(graph_editor& e, node_id n, node_id next) {
  const value_id factor = beside(e, next, "Mul", e.at(n).outputs[0]);
  const bool free = scalar_constant(e, e.at(n).inputs[b_scale]) == 1.0 && input_of(e.at(n), bias) == no_value;
  const value_id scale = factor == no_value || !free ? no_value : by_column(e, e.at(n), factor);
  if (scale == no_value)
    return false;
  return extend(e, n, next, b_scale, scale, "");
}

bool take_bias(graph_editor& e, node_id n, node_id next) {
  const value_id term = beside(e, next, "Add", e.at(n).outputs[0]);
  if (term == no_value || input_of(e.at(n), bias) != no_value)
    return false;
  value_id added = by_column(e, e.at(n), term);
  const int64_t columns = columns_of(e, e.at(n));
  if (added == no_value || !volume(*e.val(added).dims).is(columns) || e.val(added).dims->size() != 1)
    return false;
  return extend(e, n, next, bias, added, "+bias");
}

/// Takes in QuantizeLinear with one scale.
bool take_quantization(graph_editor& e, node_id n, node_id next) {
  const auto q = quantisation_of(e, next);
  if (!q)
    return false;
  node fused = e.at(n);
  fused.name += "+quantize";
  fused.inputs.resize(9, no_value);
  fused.inputs[y_scale] = q->scale;
  fused.inputs[y_zero] = q->zero;
  fused.outputs = {e.at(next).outputs[0]};
  return e.replace(next, std::move(fused));
}

/// Takes in one follower of product `n`; returns where the product is now, −1 where nothing follows that fits.
node_id step(graph_editor& e, node_id n) {
  const value_id y = e.at(n).outputs[0];
  if (!e.used_once(y) || input_of(e.at(n), y_scale) != no_value)
    return -1;
  const node_id next = e.only_consumer(y);
  const bool open = !e.at(n).attrs.has("activation");
  if (open && (take_factor(e, n, next) || take_bias(e, n, next)))
    return next;
  if (const auto act = open ? activation_of(e, next, y) : std::nullopt) {
    node fused = e.at(n);
    fused.name += suffix_of(*act);
    set_activation(fused.attrs, *act);
    fused.outputs = {e.at(next).outputs[0]};
    return e.replace(next, std::move(fused)) ? next : -1;
  }
  return take_quantization(e, n, next) ? next : -1;
}

} // namespace

bool fuse_quantized(graph_editor& e) {
  bool changed = false;
  for (node_id n = 0; n < static_cast<node_id>(e.node_count()); ++n) {
    if (!e.alive(n))
      continue;
    changed |= fuse_product(e, n) || fuse_integer_product(e, n) || fuse_average(e, n);
    if (!e.alive(n) || !is_quantized_product(e.at(n)))
      continue;
    for (node_id at = step(e, n); at >= 0; at = step(e, at))
      changed = true;
  }
  return changed;
}

} // namespace troupe
