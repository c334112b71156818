#include "support/axis_checks.hpp"

#include "graph/bodies.hpp"
#include "ops/axes.hpp"
#include "ops/conformance_case.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "strategy/row_tensors.hpp"
#include "support/run_graph.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::test {
namespace {

/// Indices [first, end) of an axis.
struct part {
  int64_t first, end;
};

int64_t indices_of(const tensor& t, const axis_place& place) {
  return t.dims().at(place.axis) / place.unit.constant();
}

tensor cut(const tensor& t, const axis_place& place, part p) {
  const int64_t unit = place.unit.constant();
  return rows_of(t, place.axis, p.first * unit, (p.end - p.first) * unit);
}

/// The indices of a tensor in reverse.
tensor reversed(const tensor& t, const axis_place& place) {
  std::vector<tensor> parts;
  for (int64_t i = indices_of(t, place); i-- > 0;)
    parts.push_back(cut(t, place, {i, i + 1}));
  return join_rows(parts, place.axis);
}

class checker {
public:
  checker(const op_def& def, const attributes& attrs, const std::vector<tensor>& inputs, size_t outputs)
      : def_(def), attrs_(attrs), inputs_(inputs), whole_(evaluate(def, attrs, inputs, outputs)) {}

  std::string check(const call_axis& axis, axis_counts& counts) {
    const int64_t count = length_of(axis);
    if (count < 2)
      return {};
    const part low{0, count / 3 + 1}, high{count / 3 + 1, count};
    switch (axis.kind) {
      case axis_kind::mapped: {
        ++counts.mapped;
        std::string wrong = same(
            run(
                axis, [&](auto& t, auto& place) { return reversed(t, place); }, nullptr),
            [&](auto& t, auto& place) { return place ? reversed(t, *place) : t; }, axis);
        for (const part& p : {low, high})
          if (wrong.empty())
            wrong = same(
                run(
                    axis, [&](auto& t, auto& place) { return cut(t, place, p); }, &p),
                [&](auto& t, auto& place) { return place ? cut(t, *place, p) : t; }, axis);
        return wrong;
      }
      case axis_kind::reduced: {
        ++counts.reduced;
        const auto of_part = [&](part p) {
          return run(
              axis, [&](auto& t, auto& place) { return cut(t, place, p); }, &p);
        };
        const auto a = of_part(low), b = of_part(high);
        const op_def& combine = *combining_call(axis.combined, a[0].type()).def;
        return same(
            evaluate(combine, {}, std::vector{a[0], b[0]}), [](auto& t, auto&) { return t; }, axis);
      }
      case axis_kind::windowed: {
        ++counts.windowed;
        std::string wrong;
        for (const part& p : {low, high})
          if (wrong.empty())
            wrong = same(
                run_window(axis, p), [&](auto& t, auto& place) { return place ? cut(t, *place, p) : t; }, axis);
        return wrong;
      }
    }
    return {};
  }

  const std::vector<tensor>& results() const { return whole_; }

private:
  /// How many indices an axis has: of the result if it is windowed.
  int64_t length_of(const call_axis& axis) const {
    if (axis.kind != axis_kind::windowed)
      for (size_t i = 0; i < inputs_.size(); ++i)
        if (axis.inputs[i] && inputs_[i].defined())
          return indices_of(inputs_[i], *axis.inputs[i]);
    for (size_t i = 0; i < whole_.size(); ++i)
      if (axis.outputs[i] && whole_[i].defined())
        return indices_of(whole_[i], *axis.outputs[i]);
    return 0;
  }

  /// Runs the call with operands as `change` makes those on an axis; `p` says how long results are.
  template <class F>
  std::vector<tensor> run(const call_axis& axis, F&& change, const part* p) const {
    std::vector<tensor> inputs = inputs_;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined() && axis.inputs[i])
        inputs[i] = change(inputs[i], *axis.inputs[i]);
    for (const auto& [operand, element] : axis.sizes)
      if (p && operand < inputs.size() && inputs[operand].defined()) {
        const auto numbers = inputs_[operand].template values<int64_t>();
        std::vector<int64_t> sizes(numbers.begin(), numbers.end());
        sizes.at(element) = (p->end - p->first) * axis.outputs[0]->unit.constant();
        inputs[operand] = tensor::of<int64_t>(inputs_[operand].dims(), sizes);
      }
    return evaluate(def_, attrs_, inputs, whole_.size());
  }

  /// Runs what makes the indices `p` of the result: with the part of the operand that their windows need.
  std::vector<tensor> run_window(const call_axis& axis, part p) const {
    const axis_window& w = axis.window;
    const axis_place& place = *axis.inputs[0];
    const int64_t length = inputs_[0].dims()[place.axis];
    const int64_t from = p.first * w.stride - w.begin,
                  to = (p.end - 1) * w.stride - w.begin + (w.size - 1) * w.dilation + 1;
    const part needed{std::clamp<int64_t>(from, 0, length), std::clamp<int64_t>(to, 0, length)};
    const size_t spatial = inputs_[0].dims().size() - 2, at = place.axis - 2;
    auto pads = attrs_.integers("pads", {});
    pads.resize(2 * spatial);
    pads[at] = std::max<int64_t>(0, -from);
    pads[at + spatial] = std::max<int64_t>(0, to - length);
    std::vector<tensor> inputs = inputs_;
    inputs[0] = cut(inputs_[0], place, needed);
    for (size_t i = 1; i < inputs.size(); ++i)
      if (inputs[i].defined() && axis.inputs[i])
        inputs[i] = cut(inputs_[i], *axis.inputs[i], p);
    attributes attrs = attrs_;
    attrs.set("pads", pads);
    attrs.set("auto_pad", std::string("NOTSET"));
    return evaluate(def_, attrs, inputs, whole_.size());
  }

  /// Says in words where results differ from what `expected` makes of those of the whole call.
  template <class F>
  std::string same(const std::vector<tensor>& results, F&& expected, const call_axis& axis) const {
    for (size_t i = 0; i < results.size(); ++i)
      if (const double tolerance = bits_of(whole_[i].type()) == 16 ? 2e-2 : 1e-4; whole_[i].defined())
        if (const std::string wrong =
                testing::difference(results[i], expected(whole_[i], axis.outputs[i]), tolerance, tolerance);
            !wrong.empty())
          return fmt::format("result {}: {}", i, wrong);
    return {};
  }

  const op_def& def_;
  const attributes& attrs_;
  const std::vector<tensor>& inputs_;
  std::vector<tensor> whole_;
};

std::string text_of(const call_axis& axis) {
  static constexpr std::array<const char*, 3> kinds{"mapped", "reduced", "windowed"};
  std::string text = kinds[static_cast<size_t>(axis.kind)];
  for (size_t i = 0; i < axis.inputs.size(); ++i)
    if (axis.inputs[i])
      text += fmt::format(", operand {} dim {} unit {}", i, axis.inputs[i]->axis, axis.inputs[i]->unit.to_string());
  for (size_t i = 0; i < axis.outputs.size(); ++i)
    if (axis.outputs[i])
      text += fmt::format(", result {} dim {} unit {}", i, axis.outputs[i]->axis, axis.outputs[i]->unit.to_string());
  return text;
}

bool shares_bytes(const tensor& t) {
  return t.defined() && (types::packed & set_of(t.type()));
}

} // namespace

std::string check_axes(const op_def& def, const attributes& attrs, const std::vector<tensor>& inputs, size_t outputs,
                       axis_counts& counts) {
  if (def.expand || !def.reference || std::ranges::any_of(inputs, shares_bytes))
    return {};
  graph_builder b;
  node n{.name = "call", .op_type = std::string(def.name), .domain = std::string(def.domain), .attrs = attrs};
  n.def = &def;
  for (const tensor& t : inputs)
    n.inputs.push_back(t.defined() ? b.constant(fmt::format("x{}", n.inputs.size()), t) : no_value);
  for (size_t i = 0; i < outputs; ++i)
    n.outputs.push_back(b.g.add_value({.name = fmt::format("y{}", i)}));
  infer_node(b.g, n);
  std::optional<call_axes> axes;
  const infer_context context(b.g, n);
  try {
    axes.emplace(axes_of(context));
  } catch (const error& e) {
    return e.code() == errc::unsupported ? "" : e.what();
  }
  checker whole(def, attrs, inputs, outputs);
  if (std::ranges::any_of(whole.results(), shares_bytes))
    return {};
  for (const call_axis& axis : std::as_const(*axes).all())
    try {
      if (const std::string wrong = whole.check(axis, counts); !wrong.empty())
        return text_of(axis) + ": " + wrong;
    } catch (const std::exception& e) {
      return text_of(axis) + ": " + e.what();
    }
  return {};
}

std::string check_axes(const graph& g, const std::vector<tensor>& inputs, axis_counts& counts) {
  if (std::ranges::any_of(g.nodes, [](const node& n) { return has_body(n) || !is_repeatable(n); }))
    return {};
  std::vector<tensor> values;
  try {
    values = run_values(g, inputs);
  } catch (const error&) {
    return {};
  }
  for (const node& n : g.nodes) {
    std::vector<tensor> operands;
    for (const value_id v : n.inputs)
      operands.push_back(v == no_value ? tensor{} : values[v]);
    if (const std::string wrong = check_axes(*n.def, n.attrs, operands, n.outputs.size(), counts); !wrong.empty())
      return describe(n) + ": " + wrong;
  }
  return {};
}

} // namespace troupe::test
