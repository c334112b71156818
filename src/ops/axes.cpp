#include "ops/axes.hpp"

#include "ops/registry.hpp"
#include "ops/window.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Returns a / b where that is exact and not 0, else nullopt.
std::optional<dim> exact_ratio(const dim& a, const dim& b) {
  if (a.is(0) || b.is(0))
    return std::nullopt;
  dim ratio = floor_div(a, b);
  return ratio * b == a ? std::optional(std::move(ratio)) : std::nullopt;
}

/// The dims of a shape that are not 1, with the products of those before each.
struct outer_products {
  std::vector<size_t> axes;
  std::vector<dim> before; // one more than `axes`

  explicit outer_products(std::span<const dim> dims) : before{1} {
    for (size_t i = 0; i < dims.size(); ++i)
      if (!dims[i].is(1)) {
        axes.push_back(i);
        before.push_back(before.back() * dims[i]);
      }
  }
};

} // namespace

call_axis& call_axes::add(axis_kind kind) {
  call_axis& axis = axes_.emplace_back();
  axis.kind = kind;
  axis.inputs.resize(call_.input_count());
  axis.outputs.resize(call_.output_count());
  return axis;
}

void call_axes::join(call_axis& axis, const place& p) const {
  if (p.axis != nowhere && call_.has_input(p.of) && p.axis < call_.rank(p.of))
    axis.inputs[p.of] = {p.axis, p.unit};
}

call_axis& call_axes::map(std::initializer_list<place> operands, std::initializer_list<place> results) {
  call_axis& axis = add(axis_kind::mapped);
  for (const place& p : operands)
    join(axis, p);
  for (const place& p : results)
    if (p.of < axis.outputs.size())
      axis.outputs[p.of] = {p.axis, p.unit};
  return axis;
}

call_axis& call_axes::map(std::initializer_list<place> operands, size_t axis) {
  call_axis& made = map(operands, {});
  std::ranges::fill(made.outputs, axis_place{axis});
  return made;
}

call_axis& call_axes::reduce(std::initializer_list<place> operands, combination combined) {
  call_axis& axis = map(operands, {});
  axis.kind = axis_kind::reduced;
  axis.combined = combined;
  return axis;
}

call_axis& call_axes::slide(size_t axis, axis_window window) {
  call_axis& made = map({{0, axis}}, {{0, axis}});
  made.kind = axis_kind::windowed;
  made.window = window;
  return made;
}

void call_axes::keep(size_t first, size_t end, std::initializer_list<size_t> beside) {
  const size_t rank = call_.rank(0);
  for (size_t axis = 0; axis < rank; ++axis) {
    if (axis >= first && axis < end)
      continue;
    call_axis& made = map({{0, axis}}, axis);
    for (const size_t i : beside)
      join(made, fit(i, axis, rank));
  }
}

void call_axes::batches(std::initializer_list<size_t> beside) {
  call_axis& axis = map({{0, 0}}, 0);
  for (const size_t i : beside)
    join(axis, {i, 0});
}

call_axes::place call_axes::fit(size_t i, size_t axis, size_t rank) const {
  const size_t missing = rank - std::min(rank, call_.has_input(i) ? call_.rank(i) : 0);
  return {i, axis < missing || call_.dims(i)[axis - missing].is(1) ? nowhere : axis - missing};
}

const symbolic_shape& call_axes::result_dims() const {
  if (!call_.has_output_dims(0))
    refuse("has a result of unknown rank");
  return call_.output_dims(0);
}

void call_axes::refuse(std::string_view why) const {
  fail(errc::unsupported, "{}", why);
}

call_axes axes_of(const infer_context& call) {
  const op_def& def = *call.call().def;
  if (const std::string_view why = why_no_axes(def); !why.empty())
    fail(errc::unsupported, "{}", why);
  call_axes a(call);
  for (size_t i = 0; i < call.input_count(); ++i)
    if (call.has_input(i) && is_container(call.type(i)))
      a.refuse(in_containers);
  def.axes ? def.axes(a) : axes::broadcast(a);
  for (call_axis& axis : a.all()) // scales may stand in the place of sizes
    std::erase_if(axis.sizes, [&](const auto& size) { return !call.has_input(size.first); });
  return a;
}

node combining_call(combination by, dtype type) {
  static constexpr std::array<std::string_view, 4> numbers{"Add", "Mul", "Min", "Max"},
      truths{"Or", "And", "And", "Or"};
  const op_def& def =
      *find_op("", (type == dtype::boolean ? truths : numbers).at(static_cast<size_t>(by)), newest_opset(""));
  node call{.op_type = std::string(def.name)};
  call.outputs = {no_value};
  call.def = &def;
  return call;
}

std::string_view why_no_axes(const op_def& def) {
  if (def.draws)
    return "draws one number after another";
  const bool broadcasts = is_elementwise(def.layouts) || def.limited_broadcast;
  if (def.axes || def.expand || (broadcasts && def.mixes.empty()))
    return "";
  return def.mixes.empty() ? "does not say what it does along any axis" : def.mixes;
}

namespace axes {

void broadcast(call_axes& a) {
  const infer_context& c = a.call();
  const size_t rank = a.result_dims().size();
  if (c.call().def->limited_broadcast && c.rank(1) != rank)
    a.refuse("broadcasts as opsets before 7 did");
  for (size_t axis = 0; axis < rank; ++axis) {
    call_axis& made = a.map({}, axis);
    for (size_t i = 0; i < c.input_count(); ++i)
      a.join(made, a.fit(i, axis, rank));
  }
}

void elements(call_axes& a) {
  a.keep(0, 0);
}

void planes(call_axes& a) {
  a.batches();
  a.map({{0, 1}}, 1);
}

void regions(call_axes& a) {
  a.map({{1, 0}, {2, 0}}, 0);
  a.map({{0, 1}}, 1);
}

void view(call_axes& a) {
  const symbolic_shape &from = a.call().dims(0), &to = a.result_dims();
  const outer_products x(from), y(to);
  for (size_t i = 0; i < x.axes.size(); ++i)
    for (size_t j = 0; j < y.axes.size(); ++j) {
      if (!(x.before[i] == y.before[j]))
        continue;
      // As much is before the two dims: indices of the longer one are blocks of the other.
      const dim &n = from[x.axes[i]], &m = to[y.axes[j]];
      const auto wide = exact_ratio(n, m), high = exact_ratio(m, n);
      if (!wide && !high)
        continue;
      call_axis& made = a.map({{0, x.axes[i], wide.value_or(1)}}, {{0, y.axes[j], wide ? dim(1) : *high}});
      if (a.call().call().def->name == "Reshape")
        made.sizes = {{1, y.axes[j]}};
    }
}

void product(call_axes& a, size_t right, bool transposed_left, bool transposed_right, bool sums,
             std::initializer_list<size_t> beside) {
  const infer_context& c = a.call();
  const size_t x = c.rank(0), y = c.rank(right), batches = std::max({x, y, size_t{2}}) - 2;
  const size_t rank = batches + (x > 1) + (y > 1);
  const auto add = [&](std::initializer_list<call_axes::place> operands, size_t axis) {
    call_axis& made = a.map(operands, axis);
    for (const size_t i : beside)
      a.join(made, a.fit(i, axis, rank));
  };
  for (size_t axis = 0; axis < batches; ++axis)
    add({a.fit(0, axis, batches + 2), a.fit(right, axis, batches + 2)}, axis);
  if (x > 1)
    add({{0, x - (transposed_left ? 1 : 2)}}, batches);
  if (y > 1)
    add({{right, y - (transposed_right ? 2 : 1)}}, rank - 1);
  const call_axes::place left_sum{0, x < 2 ? 0 : x - (transposed_left ? 2 : 1)};
  const call_axes::place right_sum{right, y < 2 ? 0 : y - (transposed_right ? 1 : 2)};
  if (sums && beside.size() == 0)
    a.reduce({left_sum, right_sum}, combination::sum);
}

void parameters(call_axes& a, size_t factor, size_t own, std::initializer_list<size_t> which) {
  for (call_axis& axis : a.all())
    for (const size_t i : which)
      if (const auto& place = axis.inputs[factor]; place && a.call().has_input(i)) {
        if (a.call().rank(i) == a.call().rank(factor))
          a.join(axis, a.fit(i, place->axis, a.call().rank(i)));
        else if (place->axis == own)
          a.join(axis, a.fit(i, 0, 1));
      }
}

void filters(call_axes& a, size_t filters, size_t own, std::initializer_list<size_t> each, size_t residual) {
  a.batches({residual});
  if (a.call().attrs().integer("group", 1) == 1) {
    call_axis& made = a.map({{filters, own}, {residual, 1}}, 1);
    for (const size_t i : each)
      a.join(made, a.fit(i, 0, 1));
  }
}

void windows(call_axes& a, const window_spec& spec, size_t residual) {
  if (spec.ceil || (spec.mode != auto_pad::notset && spec.mode != auto_pad::valid))
    return;
  for (size_t i = 0; i < spec.rank(); ++i)
    a.join(a.slide(i + 2, {.size = spec.kernel[i],
                           .stride = spec.strides[i],
                           .dilation = spec.dilations[i],
                           .begin = spec.mode == auto_pad::notset ? spec.pads[i] : 0}),
           {residual, i + 2});
}

} // namespace axes

} // namespace troupe
