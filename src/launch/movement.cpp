#include "launch/movement.hpp"

#include "launch/parameters.hpp"
#include "ops/evaluate.hpp"
#include "ops/movement.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr int64_t movement_group = 256, tile = 32;
/// A transposition is tiled if both sides of its matrices are at least this long: less leaves most of a tile idle.
constexpr int64_t least_tiled = 16;

/// A copy in words of `bits`, axes outermost first, merged.
struct word_copy {
  operand_copy copy;
  int bits;
  int64_t count = 1; // words to move
};

/// Drops axes of size 1, sorts by the step in the output, so that writes are dense, and merges neighbours.
void simplify(std::vector<copy_axis>& axes) {
  std::erase_if(axes, [](const copy_axis& a) { return a.size == 1; });
  std::stable_sort(axes.begin(), axes.end(), [](const copy_axis& a, const copy_axis& b) { return a.to > b.to; });
  std::vector<copy_axis> merged;
  for (const copy_axis& axis : axes) {
    const bool joins =
        !merged.empty() && merged.back().from == axis.size * axis.from && merged.back().to == axis.size * axis.to;
    if (joins)
      merged.back() = {merged.back().size * axis.size, axis.from, axis.to};
    else
      merged.push_back(axis);
  }
  axes = std::move(merged);
}

/// Twice as wide words, while a run that is dense on both sides and all other steps allow it.
void widen(word_copy& w) {
  operand_copy& c = w.copy;
  const auto is_even = [](int64_t n) { return n % 2 == 0; };
  while (w.bits < 128 && !c.axes.empty() && c.axes.back().from == 1 && c.axes.back().to == 1) {
    const bool whole = is_even(c.axes.back().size) && is_even(c.from) && is_even(c.to) &&
                       std::all_of(c.axes.begin(), c.axes.end() - 1,
                                   [&](const copy_axis& a) { return is_even(a.from) && is_even(a.to); });
    if (!whole)
      return;
    w.bits *= 2;
    c.from /= 2;
    c.to /= 2;
    c.axes.back().size /= 2;
    for (auto a = c.axes.begin(); a != c.axes.end() - 1; ++a) {
      a->from /= 2;
      a->to /= 2;
    }
  }
}

std::optional<word_copy> in_words(const gpu_call& call, const operand_copy& copy) {
  const auto bits = element_bits(call.outputs.at(copy.output).type);
  if (!bits)
    return std::nullopt;
  word_copy w{copy, *bits};
  for (const copy_axis& axis : copy.axes)
    w.count *= axis.size;
  if (w.count == 0)
    return w;
  simplify(w.copy.axes);
  widen(w);
  w.count = w.count * *bits / w.bits;
  if (w.copy.axes.size() > max_copy_axes)
    return std::nullopt;
  return w;
}

/// The words that a copy touches on one side: [first, end).
struct extent {
  int64_t first, end;
};

extent extent_of(const operand_copy& c, int64_t first, int64_t copy_axis::*step) {
  extent e{first, first + 1};
  for (const copy_axis& axis : c.axes)
    (axis.*step < 0 ? e.first : e.end) += (axis.size - 1) * axis.*step;
  return e;
}

/// Halves copies until no binding of theirs is too long.
void add_fitting(std::vector<word_copy>& fitting, const word_copy& w, const gpu_features& gpu) {
  const extent from = extent_of(w.copy, w.copy.from, &copy_axis::from),
               to = extent_of(w.copy, w.copy.to, &copy_axis::to);
  const int64_t most = (gpu.max_binding_bytes - gpu.binding_alignment) * 8 / w.bits;
  const bool writes_fit = to.end - to.first <= most;
  if (w.count <= 1 || (writes_fit && from.end - from.first <= most)) {
    fitting.push_back(w);
    return;
  }
  const auto length = [&](const copy_axis& a) { return (a.size - 1) * std::abs(writes_fit ? a.from : a.to); };
  const auto longest = std::max_element(w.copy.axes.begin(), w.copy.axes.end(),
                                        [&](const copy_axis& a, const copy_axis& b) { return length(a) < length(b); });
  const auto at = static_cast<size_t>(longest - w.copy.axes.begin());
  const int64_t half = longest->size / 2;
  word_copy front = w, back = w;
  front.copy.axes[at].size = half;
  front.count = w.count / longest->size * half;
  back.copy.axes[at].size -= half;
  back.count = w.count - front.count;
  back.copy.from += half * longest->from;
  back.copy.to += half * longest->to;
  add_fitting(fitting, front, gpu);
  add_fitting(fitting, back, gpu);
}

/// The part of a whole operand that holds `e`; `base`, an offset into the operand, becomes one into the part.
launch_binding bind_extent(const launch_binding& whole, const extent& e, int bits, int64_t& base,
                           const gpu_features& gpu) {
  const int64_t alignment = std::max<int64_t>(gpu.binding_alignment, 16);
  const int64_t first = e.first * bits / 8 / alignment * alignment;
  base -= first * 8 / bits;
  return part_of(whole, first, e.end * bits / 8 - first);
}

/// Binds what a copy reads and writes and makes its offsets relative to that.
std::vector<launch_binding> bind(const launch_builder& b, word_copy& w, const gpu_features& gpu) {
  operand_copy& c = w.copy;
  const extent from = extent_of(c, c.from, &copy_axis::from), to = extent_of(c, c.to, &copy_axis::to);
  const launch_binding read = bind_extent(b.in(c.input), from, w.bits, c.from, gpu);
  return {read, bind_extent(b.out(c.output), to, w.bits, c.to, gpu)};
}

/// Writes axes innermost first.
void set_axes(std::span<shader::uvec4, max_copy_axes> block, std::span<const copy_axis> axes) {
  std::transform(axes.rbegin(), axes.rend(), block.begin(), [](const copy_axis& a) {
    return shader::uvec4{a.size, a.from, a.to};
  });
}

bool add_strided(launch_builder& b, const gpu_call& call, word_copy w) {
  const auto variant = word_variant(w.bits, call.gpu);
  if (!variant)
    return false;
  launch& l = b.add("strided_copy." + *variant, flat_groups(w.count, movement_group, call.gpu), bind(b, w, call.gpu));
  shader::strided_copy block{
      .count = w.count, .rank = w.copy.axes.size(), .from_base = w.copy.from, .to_base = w.copy.to};
  set_axes(block.axes, w.copy.axes);
  l.params = words_of(block);
  return true;
}

/// The axis that is dense in the source; the last one, which is dense in the output, if there is none to be tiled with.
size_t dense_axis(const operand_copy& c) {
  const auto found = std::find_if(c.axes.begin(), c.axes.end(),
                                  [](const copy_axis& a) { return a.from == 1 && a.size >= least_tiled; });
  return found == c.axes.end() ? c.axes.size() - 1 : static_cast<size_t>(found - c.axes.begin());
}

bool is_tiled(const word_copy& w) {
  const auto& axes = w.copy.axes;
  if (w.bits > 64 || w.count == 0 || axes.size() < 2 || axes.back().to != 1 || axes.back().size < least_tiled)
    return false;
  return dense_axis(w.copy) != axes.size() - 1;
}

bool add_tiled(launch_builder& b, const gpu_call& call, word_copy w) {
  const auto variant = word_variant(w.bits, call.gpu);
  if (!variant)
    return false;
  const size_t dense = dense_axis(w.copy);
  std::vector<copy_axis> outer(w.copy.axes.begin(), w.copy.axes.end() - 1);
  const copy_axis row = w.copy.axes.back(), line = outer[dense];
  outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(dense));
  const int64_t lines = (line.size + tile - 1) / tile, rows = (row.size + tile - 1) / tile;
  int64_t groups = lines * rows;
  for (const copy_axis& axis : outer)
    groups *= axis.size;
  launch& l = b.add("transpose." + *variant, flat_groups(groups, 1, call.gpu), bind(b, w, call.gpu));
  shader::transpose block{.groups = groups,
                          .rank = outer.size(),
                          .from_base = w.copy.from,
                          .to_base = w.copy.to,
                          .line = line.size,
                          .row = row.size,
                          .line_to = line.to,
                          .row_from = row.from,
                          .line_tiles = lines,
                          .row_tiles = rows};
  set_axes(block.axes, outer);
  l.params = words_of(block);
  return true;
}

/// Whether several copies write to one output: bound ranges may then overlap if the words written do not.
bool writes_twice(const std::vector<word_copy>& words) {
  for (size_t i = 1; i < words.size(); ++i)
    if (words[i].copy.output == words[i - 1].copy.output)
      return true;
  return false;
}

} // namespace

dry_call::dry_call(const gpu_call& call)
    : inputs_(call.inputs.size()), outputs_(call.outputs.size()), context_(call.attrs, inputs_, outputs_) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const operand& o = call.inputs[i];
    known_.push_back(known_elements(o));
    inputs_[i] = {o.type, o.dims, known_.back().defined() ? known_.back().data() : nullptr};
  }
  for (size_t i = 0; i < outputs_.size(); ++i)
    outputs_[i] = {call.outputs[i].type, call.outputs[i].dims, nullptr};
}

tensor known_elements(const operand& o) {
  if (o.known.defined())
    return o.known;
  const bool small = o.constant && types::fixed_size & set_of(o.type) && o.size() <= max_read_elements;
  if (!small)
    return {};
  return o.constant->leaf.defined() ? o.constant->leaf : materialise(*o.constant);
}

std::optional<int> element_bits(dtype type) {
  if (type == dtype::string || type == dtype::undefined || bits_of(type) < 8)
    return std::nullopt;
  return bits_of(type);
}

std::optional<std::string> word_variant(int bits, const gpu_features& gpu) {
  if ((bits == 8 && !gpu.int8) || (bits == 16 && !gpu.float16))
    return std::nullopt;
  return fmt::format("w{}", bits);
}

int64_t elements_per_word(int bits, std::initializer_list<int64_t> extents) {
  int64_t elements = 1;
  const auto fits = [&](int64_t extent) { return extent % (2 * elements) == 0; };
  while (bits * elements < 128 && std::all_of(extents.begin(), extents.end(), fits))
    elements *= 2;
  return elements;
}

std::optional<uint32_t> index_words(const operand& indices) {
  if (indices.type == dtype::int64)
    return 2;
  return indices.type == dtype::int32 ? std::optional<uint32_t>(1) : std::nullopt;
}

bool is_countable(int64_t bound, int64_t picks) {
  return bound <= INT32_MAX && (bound > 0 || picks == 0);
}

void check_known_indices(const operand& indices, int64_t bound) {
  const tensor known = known_elements(indices);
  if (known.defined())
    for (int64_t index : to_int64(known.view()))
      checked_index(index, bound);
}

launch_lists copy_launches(const gpu_call& call, std::string_view name, const std::vector<operand_copy>& copies) {
  std::vector<word_copy> words;
  for (const operand_copy& copy : copies) {
    auto w = in_words(call, copy);
    if (!w)
      return {};
    if (w->count > 0)
      add_fitting(words, *w, call.gpu);
  }
  const bool one_by_one = writes_twice(words);
  launch_lists lists;
  const auto offer = [&](std::string_view way, bool tiled) {
    launch_builder b(call, fmt::format("{}.{}", name, way));
    for (const word_copy& w : words) {
      if (!(tiled && is_tiled(w) ? add_tiled(b, call, w) : add_strided(b, call, w)))
        return;
      if (one_by_one)
        b.next_step();
    }
    if (auto list = b.finish())
      lists.push_back(std::move(*list));
  };
  if (std::any_of(words.begin(), words.end(), is_tiled))
    offer("tiled", true);
  offer("copy", false);
  return lists;
}

bool add_copy(launch_builder& b, const gpu_call& call, const operand_copy& copy) {
  const auto w = in_words(call, copy);
  if (!w)
    return false;
  std::vector<word_copy> fitting;
  if (w->count > 0)
    add_fitting(fitting, *w, call.gpu);
  return std::ranges::all_of(fitting, [&](const word_copy& part) { return add_strided(b, call, part); });
}

bool add_whole_copy(launch_builder& b, const gpu_call& call, size_t input, size_t output) {
  const auto w = in_words(call, {.input = input, .output = output, .axes = {{call.outputs.at(output).size(), 1, 1}}});
  return w && (w->count == 0 || add_strided(b, call, *w));
}

} // namespace troupe
