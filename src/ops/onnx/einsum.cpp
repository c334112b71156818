// Einsum: sums of products over labelled axes, e.g. "bij,bjk->bik".
//
// Every letter is an axis; letters that the output lacks are summed over; a letter twice in one term takes the
// diagonal; "..." means broadcast axes. Without "->" the output has the ellipsis, then the letters that occur once, in
// alphabetical order.
#include "ops/onnx/einsum.hpp"

#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <cctype>
#include <deque>
#include <set>

namespace troupe {
namespace {

/// Parses one term; `rank` is the operand's rank, or the ellipsis' number of axes if `rank_is_ellipsis`.
einsum_axes parse_term(std::string_view text, size_t rank, bool rank_is_ellipsis) {
  einsum_axes axes;
  const size_t dots = text.find("...");
  const size_t letters = text.size() - (dots == text.npos ? 0 : 3);
  if (!rank_is_ellipsis && (letters > rank || (dots == text.npos && letters != rank)))
    fail(errc::invalid_model, "equation term '{}' does not fit an operand of rank {}", text, rank);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == dots) {
      for (size_t k = rank_is_ellipsis ? rank : rank - letters; k > 0; --k)
        axes.push_back(-static_cast<int>(k));
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      axes.push_back(text[i]);
    } else {
      fail(errc::invalid_model, "equation term '{}' holds '{}'", text, text[i]);
    }
  }
  return axes;
}

/// Returns the output that an equation without "->" means.
einsum_axes implicit_output(const std::vector<einsum_axes>& terms) {
  std::map<int, int> uses;
  for (const einsum_axes& term : terms)
    for (int axis : term)
      ++uses[axis];
  einsum_axes output;
  for (const auto& [axis, count] : uses) // ascending: the ellipsis' axes first, outermost first, then letters
    if (axis < 0 || count == 1)
      output.push_back(axis);
  return output;
}

} // namespace

einsum_equation parse_einsum(std::string text, const std::vector<size_t>& ranks) {
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  einsum_equation e;
  size_t ellipsis = 0;
  for (size_t i = 0;; ++i) {
    const size_t comma = left.find(',');
    if (i >= ranks.size() || (comma == left.npos) != (i + 1 == ranks.size()))
      fail(errc::invalid_model, "equation '{}' does not have {} terms", text, ranks.size());
    e.terms.push_back(parse_term(left.substr(0, comma), ranks[i], false));
    ellipsis =
        std::max<size_t>(ellipsis, std::count_if(e.terms[i].begin(), e.terms[i].end(), [](int a) { return a < 0; }));
    if (comma == left.npos)
      break;
    left.remove_prefix(comma + 1);
  }
  e.output = arrow == text.npos ? implicit_output(e.terms)
                                : parse_term(std::string_view(text).substr(arrow + 2), ellipsis, true);
  einsum_axes sorted = e.output;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    fail(errc::invalid_model, "equation '{}' repeats an axis in its output", text);
  return e;
}

namespace {

/// Returns the size of every axis; ellipsis axes and sizes of 1 broadcast.
std::map<int, dim> axis_sizes(const einsum_equation& e, const std::vector<symbolic_shape>& shapes) {
  std::map<int, dim> sizes;
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t a = 0; a < shapes[i].size(); ++a) {
      const auto [it, fresh] = sizes.try_emplace(e.terms[i][a], shapes[i][a]);
      if (!fresh)
        it->second = broadcast(it->second, shapes[i][a]);
    }
  for (int axis : e.output)
    if (!sizes.contains(axis))
      fail(errc::invalid_model, "the equation's output names an axis that no operand has");
  return sizes;
}

void infer_einsum(infer_context& c) {
  std::vector<symbolic_shape> shapes;
  std::vector<size_t> ranks;
  for (size_t i = 0; i < c.input_count(); ++i) {
    shapes.push_back(c.dims(i));
    ranks.push_back(shapes.back().size());
  }
  const einsum_equation e = parse_einsum(c.attrs().text("equation", ""), ranks);
  const auto sizes = axis_sizes(e, shapes);
  symbolic_shape dims;
  for (int axis : e.output)
    dims.push_back(sizes.at(axis));
  c.set_output(0, common_type(c), std::move(dims));
}

} // namespace

einsum_nest nest_of(const einsum_equation& e, const std::vector<symbolic_shape>& shapes) {
  const auto sizes = axis_sizes(e, shapes);
  einsum_axes order = e.output;
  for (const auto& [axis, size] : sizes)
    if (std::find(e.output.begin(), e.output.end(), axis) == e.output.end())
      order.push_back(axis);
  einsum_nest nest{{}, e.output.size(), {}};
  for (int axis : order)
    nest.extents.push_back(sizes.at(axis).constant());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const shape dims = constants(shapes[i]), own = strides_of(dims);
    shape& strides = nest.strides.emplace_back(order.size(), 0);
    for (size_t a = 0; a < dims.size(); ++a)
      if (dims[a] != 1)
        strides[static_cast<size_t>(std::find(order.begin(), order.end(), e.terms[i][a]) - order.begin())] += own[a];
  }
  return nest;
}

namespace {

/// Moves `index` and the operands' `offsets` one step on among axes [first, last); returns false at the end.
bool advance(const einsum_nest& nest, size_t first, size_t last, shape& index, shape& offsets) {
  for (size_t axis = last; axis-- > first;) {
    const bool wraps = ++index[axis] == nest.extents[axis];
    const int64_t step = wraps ? 1 - nest.extents[axis] : 1;
    for (size_t i = 0; i < offsets.size(); ++i)
      offsets[i] += step * nest.strides[i][axis];
    if (!wraps)
      return true;
    index[axis] = 0;
  }
  return false;
}

/// Computes output elements [begin, end).
template <class C>
void sum_products(const einsum_nest& nest, const std::deque<read_as<C>>& operands, int64_t begin, int64_t end, C* y) {
  shape index(nest.extents.size(), 0), offsets(operands.size(), 0);
  int64_t rest = begin;
  for (size_t axis = nest.output_axes; axis-- > 0; rest /= nest.extents[axis]) {
    index[axis] = rest % nest.extents[axis];
    for (size_t i = 0; i < offsets.size(); ++i)
      offsets[i] += index[axis] * nest.strides[i][axis];
  }
  for (int64_t o = begin; o < end; ++o) {
    C sum = 0;
    do {
      C product = 1;
      for (size_t i = 0; i < operands.size(); ++i)
        product *= operands[i][offsets[i]];
      sum += product;
    } while (advance(nest, nest.output_axes, nest.extents.size(), index, offsets));
    y[o] = sum;
    advance(nest, 0, nest.output_axes, index, offsets);
  }
}

void einsum(kernel_context& c) {
  std::vector<symbolic_shape> shapes;
  std::vector<size_t> ranks;
  for (size_t i = 0; i < c.input_count(); ++i) {
    shapes.push_back(to_symbolic(c.input(i).dims));
    ranks.push_back(shapes.back().size());
  }
  const einsum_nest nest = nest_of(parse_einsum(c.attrs().text("equation", ""), ranks), shapes);
  const int64_t summed = volume(std::span(nest.extents).subspan(nest.output_axes));
  const auto run = [&]<class C>(type_tag<C>) {
    std::deque<read_as<C>> operands; // they do not move
    for (size_t i = 0; i < c.input_count(); ++i)
      operands.emplace_back(c.input(i));
    write_as<C> y(c.output(0));
    if (summed == 0)
      std::fill_n(y.data(), c.output(0).size(), C(0));
    else
      parallel_for(c.output(0).size(), std::max<int64_t>(1, 4096 / summed),
                   [&](int64_t begin, int64_t end) { sum_products(nest, operands, begin, end, y.data()); });
    y.commit();
  };
  if (types::floats & set_of(c.input(0).type))
    visit_compute(c.input(0).type, run);
  else if (bits_of(c.input(0).type) == 64)
    run(type_tag<uint64_t>{});
  else
    run(type_tag<uint32_t>{});
}

/// A product of all operands and a sum for each combination of indices.
/// The dims may be guesses that do not fit each other: the larger one counts.
op_cost einsum_cost(const attributes& attrs, const call_shapes& call) {
  std::vector<size_t> ranks;
  for (const shape& s : call.inputs)
    ranks.push_back(s.size());
  const einsum_equation e = parse_einsum(attrs.text("equation", ""), ranks);
  std::map<int, int64_t> sizes;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    for (size_t a = 0; a < call.inputs[i].size(); ++a)
      sizes[e.terms[i][a]] = std::max(sizes[e.terms[i][a]], call.inputs[i][a]);
  double combinations = 1;
  for (const auto& [axis, size] : sizes)
    combinations *= static_cast<double>(size);
  return {combinations * static_cast<double>(call.inputs.size()), operand_bytes(call)};
}

/// A letter of the result is mapped, another one is summed over; one that an operand has twice mixes there.
void einsum_axes_of(call_axes& a) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < a.call().input_count(); ++i)
    ranks.push_back(a.call().rank(i));
  const einsum_equation e = parse_einsum(a.call().attrs().text("equation", ""), ranks);
  std::set<int> letters;
  for (const einsum_axes& term : e.terms)
    letters.insert(term.begin(), term.end());
  for (const int letter : letters) {
    const auto is_twice = [&](const einsum_axes& term) { return std::ranges::count(term, letter) > 1; };
    if (std::ranges::any_of(e.terms, is_twice))
      continue;
    const auto result = std::ranges::find(e.output, letter);
    call_axis& made = result == e.output.end() ? a.reduce({}, combination::sum)
                                               : a.map({}, static_cast<size_t>(result - e.output.begin()));
    for (size_t i = 0; i < e.terms.size(); ++i)
      if (const auto found = std::ranges::find(e.terms[i], letter); found != e.terms[i].end())
        a.join(made, {i, static_cast<size_t>(found - e.terms[i].begin())});
  }
}

constexpr auto einsum_rows = std::to_array<op_def>({
    op_row("Einsum", 12, infer_einsum, einsum,
           {.inputs = {1, 255}, .types = types::numeric, .cost = einsum_cost, .axes = einsum_axes_of}),
});

} // namespace

extern constinit const op_table onnx_einsum_ops = einsum_rows;

} // namespace troupe
