// Attention reads queries, keys and values where a projection wrote them: an operand that is copied out of a larger
// value becomes that value, and attributes that say which of its heads it is (troupe.Attention,
// ops/composed/fused_attention.cpp).
//
// The operand is [B, S, H, D] and, but for Reshapes, whole columns of the value: what a Gather of one index, a Slice or
// an output of a Split takes of an axis, after which everything belongs to one position. Once, last: products of few
// rows have become one for each part by then (split_products.cpp).
#include "base/checked.hpp"
#include "ops/head_layout.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Elements [first, first + count) of an axis.
struct axis_range {
  size_t axis;
  int64_t first, count;
};

std::optional<axis_range> range_of_gather(const graph_editor& e, const node& gather, const symbolic_shape& dims) {
  const auto& index = e.val(gather.inputs.at(1)).dims;
  const auto chosen = known_integers(e, gather.inputs[1]);
  const size_t axis = normalize_axis(gather.attrs.integer("axis", 0), dims.size());
  if (!index || !index->empty() || !chosen || !dims[axis].is_constant())
    return std::nullopt;
  return axis_range{axis, chosen->at(0) < 0 ? chosen->at(0) + dims[axis].constant() : chosen->at(0), 1};
}

std::optional<axis_range> range_of_slice(const graph_editor& e, const node& slice, const symbolic_shape& dims) {
  const auto starts = known_integers(e, input_of(slice, 1)), axes = known_integers(e, input_of(slice, 3));
  if (!starts || !axes || starts->size() != 1 || axes->size() != 1 ||
      (input_of(slice, 4) != no_value && known_integers(e, slice.inputs[4]) != std::vector<int64_t>{1}))
    return std::nullopt;
  const size_t axis = normalize_axis(axes->at(0), dims.size());
  const dim& count = (*e.val(slice.outputs[0]).dims)[axis];
  if (!dims[axis].is_constant() || !count.is_constant())
    return std::nullopt;
  const int64_t all = dims[axis].constant(), start = starts->at(0) < 0 ? starts->at(0) + all : starts->at(0);
  return axis_range{axis, std::clamp<int64_t>(start, 0, all), count.constant()};
}

std::optional<axis_range> range_of_split(const graph_editor& e, const node& split, value_id part,
                                         const symbolic_shape& dims) {
  axis_range range{normalize_axis(split.attrs.integer("axis", 0), dims.size()), 0, 0};
  for (const value_id out : split.outputs) {
    if (out == no_value || !e.val(out).dims || !(*e.val(out).dims)[range.axis].is_constant())
      return std::nullopt;
    range.count = (*e.val(out).dims)[range.axis].constant();
    if (out == part)
      return range;
    range.first += range.count;
  }
  return std::nullopt;
}

/// An operand as columns of the rows of a larger value.
struct packed_part {
  value_id source;
  node_id copier; // takes it out
  int64_t columns, first, count;
};

/// Columns `range` of `source`, if everything from the axis on is known.
std::optional<packed_part> columns_of(const graph_editor& e, value_id source, node_id copier, const axis_range& range) {
  const symbolic_shape& dims = *e.val(source).dims;
  int64_t width = 1;
  for (size_t i = range.axis + 1; i < dims.size(); ++i) {
    if (!dims[i].is_constant())
      return std::nullopt;
    width = checked_mul(width, dims[i].constant());
  }
  return packed_part{source, copier, checked_mul(dims[range.axis].constant(), width), checked_mul(range.first, width),
                     checked_mul(range.count, width)};
}

/// What `operand` is copied from, if nothing else reads the copy.
std::optional<packed_part> part_of(const graph_editor& e, value_id operand) {
  value_id copy = operand;
  node_id n = e.producer(copy);
  for (; n >= 0 && e.used_once(copy) && is_op(e.at(n), "Reshape"); n = e.producer(copy))
    copy = e.at(n).inputs[0];
  if (n < 0 || !e.used_once(copy) || e.at(n).inputs.empty() || e.at(n).inputs[0] == no_value || !e.val(copy).dims)
    return std::nullopt;
  const value_id source = e.at(n).inputs[0];
  const auto& dims = e.val(source).dims;
  if (!dims || dims->empty())
    return std::nullopt;
  std::optional<axis_range> range;
  if (is_op(e.at(n), "Gather"))
    range = range_of_gather(e, e.at(n), *dims);
  else if (is_op(e.at(n), "Slice"))
    range = range_of_slice(e, e.at(n), *dims);
  else if (is_op(e.at(n), "Split"))
    range = range_of_split(e, e.at(n), copy, *dims);
  if (!range || !(*dims)[range->axis].is_constant() || range->first < 0 ||
      range->first > (*dims)[range->axis].constant() - range->count)
    return std::nullopt;
  return columns_of(e, source, n, *range);
}

/// Whether a part is whole heads of an operand, and so is all that is beside it.
bool is_whole_heads(const packed_part& p, const symbolic_shape& operand) {
  const dim &heads = operand[2], &width = operand[3];
  if (!heads.is_constant() || !width.is_constant() || width.constant() < 1 || p.count < 1)
    return false;
  return p.count == checked_mul(heads.constant(), width.constant()) && p.columns % width.constant() == 0 &&
         p.first % width.constant() == 0;
}

/// Returns `source`, from before what only reshapes it, as rows of heads.
value_id heads_of(graph_editor& e, value_id source, const symbolic_shape& dims) {
  for (node_id n = produced_by(e, source, "Reshape"); n >= 0; n = produced_by(e, source, "Reshape"))
    source = e.at(n).inputs[0];
  if (e.val(source).dims && *e.val(source).dims == dims)
    return source;
  const value_id view = e.add_result(e.val(source).name + "/heads" + std::to_string(e.node_count()));
  e.add_node(make_reshape(e, e.val(view).name, source, dims, view));
  return view;
}

constexpr std::array<const char*, 3> layouts{"q_layout", "kv_layout", "kv_layout"};

/// The parts that operands of an attention are; none for those whose copies would be made all the same.
std::array<std::optional<packed_part>, 3> parts_of(const graph_editor& e, const node& attention) {
  std::array<std::optional<packed_part>, 3> parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& dims = e.val(attention.inputs[i]).dims;
    if (!dims || dims->size() != 4 || !is_bshd(attention.attrs, layouts[i]) || attention.attrs.has(head_attributes[i]))
      continue;
    parts[i] = part_of(e, attention.inputs[i]);
    if (parts[i] && !is_whole_heads(*parts[i], *dims))
      parts[i].reset();
  }
  for (auto& part : parts) {
    if (!part)
      continue;
    const auto& outputs = e.at(part->copier).outputs;
    const auto read =
        std::count_if(outputs.begin(), outputs.end(), [&](value_id v) { return v != no_value && e.uses(v) > 0; });
    const auto taken =
        std::count_if(parts.begin(), parts.end(), [&](const auto& p) { return p && p->copier == part->copier; });
    if (read != taken)
      part.reset();
  }
  return parts;
}

bool read_packed(graph_editor& e, node_id n) {
  const node attention = e.at(n);
  if (input_of(attention, past_key_input) != no_value)
    return false;
  const auto parts = parts_of(e, attention);
  node reading = attention;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i])
      continue;
    symbolic_shape dims = *e.val(attention.inputs[i]).dims;
    const int64_t width = dims[3].constant(), heads = dims[2].constant();
    dims[2] = dim(parts[i]->columns / width);
    value_id packed = no_value;
    for (size_t before = 0; before < i && packed == no_value; ++before)
      if (parts[before] && parts[before]->source == parts[i]->source && *e.val(reading.inputs[before]).dims == dims)
        packed = reading.inputs[before];
    reading.inputs[i] = packed != no_value ? packed : heads_of(e, parts[i]->source, dims);
    reading.attrs.set(std::string(head_attributes[i]), std::vector<int64_t>{parts[i]->first / width, heads});
  }
  if (reading.inputs == attention.inputs)
    return false;
  return e.replace(n, std::move(reading));
}

} // namespace

bool read_packed_heads(graph_editor& e) {
  return each_present_node(e, [&](node_id n) { return is_own(e.at(n), "Attention") && read_packed(e, n); });
}

} // namespace troupe
