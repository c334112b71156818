#include "support/verified_rewrite.hpp"

#include "graph/bodies.hpp"
#include "ops/registry.hpp"
#include "rewrite/passes.hpp"
#include "support/run_graph.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace troupe::test {
namespace {

/// Everything that is known of a value's elements, as a text, for messages.
std::string kind_of(const value& v) {
  return fmt::format("{} {}", to_string(v.type), v.dims ? to_string(*v.dims) : "of any rank");
}

/// Dims that depend on data are named after the value that had them first, whatever it is called now.
bool same_dims(const value& a, const value& b) {
  const auto same = [](const dim& x, const dim& y) { return x == y || (x.depends_on_data() && y.depends_on_data()); };
  return a.dims && b.dims ? std::ranges::equal(*a.dims, *b.dims, same) : a.dims == b.dims;
}

void check_inference(const graph& g) {
  validate(g);
  graph again = g;
  const auto each_output = [&](const node& n, const auto& visit) {
    if (!has_body(n))
      for (const value_id v : n.outputs)
        if (v != no_value)
          visit(v);
  };
  for (const node& n : g.nodes)
    each_output(n, [&](value_id v) { again.values[v] = {.name = g.values[v].name}; });
  for (node& n : again.nodes) {
    if (has_body(n))
      continue;
    infer_node(again, n);
    each_output(n, [&](value_id v) {
      const value &was = g.values[v], &now = again.values[v];
      if (was.constant)
        fail(errc::internal, "{} makes '{}', which is a constant", describe(n), was.name);
      if (was.type != now.type || !same_dims(was, now) || was.elements != now.elements)
        fail(errc::internal, "{} makes '{}' {}, but the graph says {}", describe(n), was.name, kind_of(now),
             kind_of(was));
    });
  }
  for (const value& v : g.values)
    if (v.constant && (v.constant->type != v.type || !v.dims || to_symbolic(v.constant->dims) != *v.dims))
      fail(errc::internal, "constant '{}' is {} {}, but the graph says {}", v.name, to_string(v.constant->type),
           to_string(v.constant->dims), kind_of(v));
}

bool can_run(const graph& g) {
  return std::ranges::none_of(g.nodes, [](const node& n) { return has_body(n) || !is_repeatable(n); });
}

bool quantises(const graph& g) {
  return std::ranges::any_of(g.nodes, [](const node& n) { return n.op_type.find("Quantize") != std::string::npos; });
}

/// Returns whether a node decides by floats or rounds them: with float16, it may decide otherwise.
bool jumps(const graph& g) {
  static const std::set<std::string> rounds{"Ceil", "Floor", "Hardmax", "Mod", "Round", "Sign"};
  const auto is_float = [&](value_id v) { return v != no_value && (types::floats & set_of(g.values[v].type)); };
  const auto is_other = [&](value_id v) { return v != no_value && !is_float(v); };
  return std::ranges::any_of(g.nodes, [&](const node& n) {
    return rounds.contains(n.op_type) || n.op_type.starts_with("TreeEnsemble") ||
           (std::ranges::any_of(n.inputs, is_float) && std::ranges::any_of(n.outputs, is_other));
  });
}

/// Returns whether float16 has digits enough for these floats.
bool fit_float16(const std::map<std::string, tensor>& inputs) {
  return std::ranges::none_of(inputs, [](const auto& input) {
    if (!(types::floats & set_of(input.second.type())))
      return false;
    const auto elements = to_double(input.second.view());
    return std::ranges::any_of(elements, [](double x) { return std::abs(x) > 1000; });
  });
}

/// Returns how two results differ by more than they may, empty if they do not.
std::string difference(const tensor& was, const tensor& is, double tolerance, bool may_step) {
  if (was.type() != is.type() || was.dims() != is.dims())
    return fmt::format("is {} {}, was {} {}", to_string(is.type()), to_string(is.dims()), to_string(was.type()),
                       to_string(was.dims()));
  if (!(types::numeric & set_of(was.type())))
    return "";
  const auto a = to_double(was.view()), b = to_double(is.view());
  const bool real = types::floats & set_of(was.type());
  double largest = 1;
  for (const double x : a)
    largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
  const double most = real ? tolerance * largest : may_step ? 1 : 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= most) && a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i])))
      return fmt::format("has {} at {}, had {}", b[i], i, a[i]);
  return "";
}

/// Checks one step after the other.
class step_check {
public:
  step_check(const std::vector<std::string>& names, const std::vector<tensor>& inputs, const rewrite_options& options,
             double tolerance)
      : tolerance_(options.precision == precision::fp16 ? 2e-2 : tolerance) {
    for (size_t i = 0; i < names.size(); ++i)
      inputs_.emplace(names[i], inputs.at(i));
  }

  void operator()(std::string_view step, const graph& g) try {
    if (step != "resolve")
      check_inference(g);
    if (step == "resolve")
      begin(g);
    else if (step == "convert_to_float16" && may_jump_)
      runs_ = false; // values jump if float16 rounds otherwise; types and dims have been compared
    else if (runs_)
      advance(g);
  } catch (const error& e) {
    fail(errc::internal, "after {}: {}", step, e.what());
  }

private:
  /// A graph that cannot be run as it is stays unrun.
  void begin(const graph& g) {
    may_step_ = quantises(g);
    may_jump_ = may_step_ || jumps(g) || !fit_float16(inputs_);
    before_ = g;
    try {
      if (can_run(g))
        values_ = run(g);
      runs_ = can_run(g);
    } catch (const error&) {
      runs_ = false;
    }
  }

  void advance(const graph& g) {
    std::vector<tensor> now = run(g);
    compare(g, now);
    values_ = std::move(now);
    before_ = g;
  }

  std::vector<tensor> run(const graph& g) const {
    std::vector<tensor> given;
    for (const value_id v : g.inputs)
      given.push_back(inputs_.at(g.values[v].name));
    return run_values(g, given);
  }

  void compare(const graph& g, const std::vector<tensor>& now) const {
    const auto check = [&](value_id was, value_id is) {
      if (!values_[was].defined() || !now[is].defined())
        return;
      // Precision changes types on purpose; those of outputs stay.
      const std::string found = difference(values_[was], now[is], tolerance_, may_step_);
      if (!found.empty())
        fail(errc::internal, "'{}' {}", g.values[is].name, found);
    };
    const size_t both = std::min(before_.values.size(), g.values.size());
    for (value_id v = 0; v < static_cast<value_id>(both); ++v) // ids last, until dead values go
      if (before_.values[v].name == g.values[v].name && same_type(v, now))
        check(v, v);
    for (size_t i = 0; i < g.outputs.size(); ++i)
      check(before_.outputs.at(i), g.outputs[i]);
  }

  bool same_type(value_id v, const std::vector<tensor>& now) const {
    return values_[v].defined() && now[v].defined() && values_[v].type() == now[v].type();
  }

  const double tolerance_;
  std::map<std::string, tensor> inputs_;
  graph before_;
  std::vector<tensor> values_; // of `before_`
  bool runs_ = false, may_step_ = false, may_jump_ = false;
};

} // namespace

graph verified_rewrite(const graph& g, const std::vector<tensor>& inputs, const rewrite_options& options,
                       double tolerance) {
  std::vector<std::string> names;
  for (const value_id v : g.inputs)
    names.push_back(g.values[v].name);
  step_check check(names, inputs, options, tolerance);
  return rewrite_observed(g, options, [&](std::string_view step, const graph& after) { check(step, after); });
}

} // namespace troupe::test
