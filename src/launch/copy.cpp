// GPU launch rules of the operators that are strided copies: Transpose, Slice, Expand, Tile, Split, DepthToSpace,
// SpaceToDepth, BitCast, troupe.Reorder; and of Concat and troupe.Append, whose pieces are read by one launch that
// writes the output densely.
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "ops/head_layout.hpp"
#include "ops/movement.hpp"
#include "ops/operand_walk.hpp"

#include <algorithm>

namespace troupe {
namespace {

using copy_rule = std::vector<operand_copy> (*)(kernel_context&);

launch_lists launch_copies_by(const gpu_call& call, std::string_view name, copy_rule rule) {
  dry_call dry(call);
  return copy_launches(call, name, rule(dry.context()));
}

/// Inputs that one launch of shaders/concat.comp reads.
constexpr size_t concat_width = 8;

/// A concatenation as lines: line o of the output is line o of every input, one after the other.
struct line_concat {
  int64_t lines = 1;
  std::vector<int64_t> parts; // words of a line of each input
  int64_t width = 0;          // words of a line of the output
  int bits = 0;               // of a word
};

/// How many elements of a line belong to one index of the concatenated axis; 0 if a layout is not in lines.
int64_t line_step(const gpu_call& call, size_t axis) {
  const operand& out = call.outputs[0];
  const auto same_layout = [&](const operand& in) {
    return in.layout == out.layout || same_in_both_layouts(in.dims) || in.size() == 0;
  };
  if (!std::all_of(call.inputs.begin(), call.inputs.end(), same_layout))
    return 0;
  if (out.layout == layout::channels_last && !same_in_both_layouts(out.dims))
    return axis == 1 ? 1 : 0;
  return product(out.dims, axis + 1, out.dims.size());
}

std::optional<line_concat> lines_of(const gpu_call& call) {
  const operand& out = call.outputs[0];
  const size_t axis = normalize_axis(call.attrs.integer("axis", 1), out.dims.size());
  const auto bits = element_bits(out.type);
  const int64_t step = line_step(call, axis);
  if (!bits || (step == 0 && out.size() > 0))
    return std::nullopt;
  line_concat c{.bits = *bits};
  for (const operand& in : call.inputs) {
    c.parts.push_back(in.dims.at(axis) * step);
    c.width += c.parts.back();
  }
  if (c.width != out.dims[axis] * step)
    fail(errc::invalid_input, "the inputs of Concat do not fill its output {}", to_string(out.dims));
  c.lines = c.width == 0 ? 0 : out.size() / c.width;
  for (size_t i = 0; i < c.parts.size(); ++i)
    if (call.inputs[i].size() != c.lines * c.parts[i])
      fail(errc::invalid_input, "input {} of Concat does not fit its output {}", i, to_string(out.dims));
  const auto is_even = [](int64_t n) { return n % 2 == 0; };
  while (c.width > 0 && c.bits < 128 && std::all_of(c.parts.begin(), c.parts.end(), is_even)) {
    c.bits *= 2;
    c.width /= 2;
    for (int64_t& part : c.parts)
      part /= 2;
  }
  return c;
}

/// Launches that copy inputs [first, last) to their place in every line.
void add_concat(launch_builder& b, const gpu_call& call, const line_concat& c, const std::string& variant, size_t first,
                size_t last, int64_t begin) {
  shader::concat block{.width = c.width, .begin = begin};
  std::vector<launch_binding> bindings;
  int64_t end = 0;
  for (size_t i = 0; i < concat_width; ++i) {
    const size_t input = std::min(first + i, last - 1);
    if (first + i < last)
      end += c.parts[input];
    block.ends[i / 4][i % 4] = end;
    bindings.push_back(b.in(input));
  }
  bindings.push_back(b.out(0));
  block.line = end;
  block.count = c.lines * end;
  b.add("concat." + variant, flat_groups(c.lines * end, 256, call.gpu), std::move(bindings)).params = words_of(block);
}

/// The same as copies, for operands that one binding cannot reach.
launch_lists copy_pieces(const gpu_call& call, const line_concat& c) {
  const int64_t elements = c.bits / *element_bits(call.outputs[0].type); // of a word
  std::vector<operand_copy> copies;
  int64_t begin = 0;
  for (size_t i = 0; i < c.parts.size(); ++i) {
    const int64_t part = c.parts[i] * elements;
    copies.push_back({.input = i, .to = begin, .axes = {{c.lines, part, c.width * elements}, {part, 1, 1}}});
    begin += part;
  }
  return copy_launches(call, "concat", copies);
}

launch_lists concat_launches(const gpu_call& call) {
  const auto c = lines_of(call);
  if (c && call.outputs[0].bytes() > call.gpu.max_binding_bytes)
    return copy_pieces(call, *c);
  const auto variant = c ? word_variant(c->bits, call.gpu) : std::nullopt;
  if (!variant)
    return {};
  launch_builder b(call, "concat");
  int64_t begin = 0;
  for (size_t first = 0; first < c->parts.size(); first += concat_width) {
    const size_t last = std::min(first + concat_width, c->parts.size());
    int64_t words = 0;
    for (size_t i = first; i < last; ++i)
      words += c->parts[i];
    if (words > 0 && c->lines > 0) {
      add_concat(b, call, *c, *variant, first, last, begin);
      b.next_step(); // the next launch writes other words of the same range
    }
    begin += words;
  }
  return single_list(b);
}

launch_lists append_launches(const gpu_call& call) {
  shape rows = call.inputs[1].dims;
  if (rows.size() != 4)
    fail(errc::invalid_input, "Append of new rows {}", to_string(rows));
  if (is_bshd(call.attrs, "new_layout")) {
    if (rows[1] != 1 && rows[2] != 1)
      return launch_copies_by(call, "append", append_copies);
    std::swap(rows[1], rows[2]); // one position, or one head: the same bytes
  }
  attributes along;
  along.set("axis", int64_t{2});
  gpu_call joined{along, call.inputs, call.outputs, call.gpu};
  joined.inputs[1].dims = std::move(rows);
  return concat_launches(joined);
}

launch_lists reorder_launches(const gpu_call& call) {
  const operand &in = call.inputs[0], &out = call.outputs[0];
  const shape from = layout_strides(in), to = layout_strides(out);
  operand_copy copy;
  for (size_t i = 0; i < in.dims.size(); ++i)
    copy.axes.push_back({in.dims[i], from[i], to[i]});
  return copy_launches(call, "reorder", {std::move(copy)});
}

/// Booleans are left to the CPU: they are 0 or 1, whatever the bits were.
launch_lists bit_cast_launches(const gpu_call& call) {
  if (call.outputs[0].type == dtype::boolean)
    return {};
  return copy_launches(call, "bit_cast", {{.axes = {{call.outputs[0].size(), 1, 1}}}});
}

launch_lists depth_to_space_launches(const gpu_call& call) {
  return launch_copies_by(call, "depth_to_space", depth_to_space_copies);
}

launch_lists space_to_depth_launches(const gpu_call& call) {
  return launch_copies_by(call, "space_to_depth", space_to_depth_copies);
}

} // namespace

extern constinit const launch_rows copy_rules = {
    {"", "BitCast", bit_cast_launches},
    {"", "Concat", concat_launches},
    {"", "DepthToSpace", depth_to_space_launches},
    {"", "Expand", [](const gpu_call& c) { return launch_copies_by(c, "expand", expand_copies); }},
    {"", "Slice", [](const gpu_call& c) { return launch_copies_by(c, "slice", slice_copies); }},
    {"", "SpaceToDepth", space_to_depth_launches},
    {"", "Split", [](const gpu_call& c) { return launch_copies_by(c, "split", split_copies); }},
    {"", "Tile", [](const gpu_call& c) { return launch_copies_by(c, "tile", tile_copies); }},
    {"", "Transpose", [](const gpu_call& c) { return launch_copies_by(c, "transpose", transpose_copies); }},
    {"troupe", "Append", append_launches},
    {"troupe", "Reorder", reorder_launches},
};

} // namespace troupe
