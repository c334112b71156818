// Elementwise nodes that feed each other become one troupe.Elementwise.
//
// Groups grow backwards from their last node: a producer joins when all its readers are in the group, its dims are the
// group's, and the program stays within its limits. So nothing is computed twice and no intermediate that others read
// is lost. But a sum or product of operands that all broadcast (angles: positions times frequencies) is computed by
// each of a few groups that read it, which read less than its elements.
#include "ops/composed/fused_elementwise.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

#include <bit>
#include <cmath>

namespace troupe {
namespace {

constexpr size_t max_group_inputs = 8;
constexpr size_t max_constants = 16;
constexpr size_t max_outer_readers = 4;
/// A step has at most three operands: a value that is read more often has readers outside of the group.
constexpr size_t max_group_uses = 3 * max_elementwise_steps;
constexpr dtype_set element_types = set_of(dtype::float32, dtype::float16, dtype::float64);

/// One node as a step: its code, the operands that are values, and the immediate ones after them.
struct translated {
  scalar_code code;
  std::vector<value_id> values;
  std::vector<float> immediates;
};

std::optional<translated> translate(const graph_editor& e, const node& n) {
  if (n.outputs.size() != 1 || n.captures > 0)
    return std::nullopt;
  const auto call = scalar_call_of(e, n);
  if (!call || !joins_chains(call->code))
    return std::nullopt;
  if (call->code == scalar_code::pow && is_scalar(e, n.inputs[1], 2))
    return translated{scalar_code::multiply, {n.inputs[0], n.inputs[0]}, {}};
  return translated{call->code, {n.inputs.begin(), n.inputs.begin() + call->values}, call->numbers};
}

/// Returns whether node `n` is a step over operands of the group's type; Add, Mul … of opset < 7 broadcast in another
/// way.
std::optional<translated> step_of(const graph_editor& e, node_id n) {
  if (n < 0)
    return std::nullopt;
  const node& call = e.at(n);
  if (call.def->since < 7 && call.attrs.has("broadcast"))
    return std::nullopt;
  auto t = translate(e, call);
  if (!t || !e.val(call.outputs[0]).dims)
    return std::nullopt;
  for (value_id v : t->values)
    if (v == no_value || e.val(v).type != e.val(call.outputs[0]).type || !(element_types & set_of(e.val(v).type)) ||
        !e.val(v).dims)
      return std::nullopt;
  return t;
}

/// Returns the immediate that a scalar constant can be, nullopt if a float does not hold it.
std::optional<float> immediate_of(const graph_editor& e, value_id v, size_t rank) {
  const auto scalar = scalar_constant(e, v);
  if (!scalar || e.val(v).dims->size() > rank)
    return std::nullopt;
  const auto narrow = static_cast<float>(*scalar);
  return static_cast<double>(narrow) == *scalar || std::isnan(narrow) ? std::optional(narrow) : std::nullopt;
}

/// A group under construction.
class group {
public:
  group(const graph_editor& e, node_id root) : e_(e), root_(root) { members_.push_back(root); }

  /// Adds producers until none fits.
  void grow() {
    for (bool grown = true; grown;) {
      grown = false;
      for (value_id v : operands())
        if (members_.size() < max_elementwise_steps && joins(v)) {
          members_.push_back(e_.producer(v));
          if (fits()) {
            grown = true;
            break;
          }
          members_.pop_back();
          refused_.push_back(e_.producer(v));
        }
    }
    std::sort(members_.begin(), members_.end());
  }

  size_t size() const { return members_.size(); }

  /// Builds the fused node.
  node build() const {
    elementwise_program program;
    const std::vector<value_id> inputs = operands();
    const size_t rank = e_.val(root_output()).dims->size();
    std::vector<value_id> real;
    for (value_id v : inputs)
      if (!immediate_of(e_, v, rank))
        real.push_back(v);
    const auto constant = [&](float c) {
      auto& all = program.constants;
      const auto same = [&](float x) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(c); }; // keeps -0
      const auto it = std::find_if(all.begin(), all.end(), same);
      if (it != all.end())
        return static_cast<int32_t>(-1 - (it - all.begin()));
      all.push_back(c);
      return -static_cast<int32_t>(all.size());
    };
    const auto operand = [&](value_id v) -> int32_t {
      if (const auto it = std::find(real.begin(), real.end(), v); it != real.end())
        return static_cast<int32_t>(it - real.begin());
      for (size_t k = 0; k < members_.size(); ++k)
        if (e_.at(members_[k]).outputs[0] == v)
          return static_cast<int32_t>(real.size() + k);
      return constant(*immediate_of(e_, v, rank));
    };
    for (node_id n : members_) {
      const translated t = *step_of(e_, n);
      std::vector<int32_t> args;
      for (value_id v : t.values)
        args.push_back(operand(v));
      for (float c : t.immediates)
        args.push_back(constant(c));
      args.resize(3, 0);
      program.steps.push_back({t.code, args[0], args[1], args[2]});
    }
    std::string name = e_.at(members_.front()).name;
    for (size_t i = 1; i < members_.size() && i < 4; ++i)
      name += "+" + e_.at(members_[i]).op_type;
    return make_node(name + (members_.size() > 4 ? "+…" : ""), "troupe", "Elementwise", real, {root_output()},
                     to_attributes(program));
  }

private:
  value_id root_output() const { return e_.at(root_).outputs[0]; }
  bool has(node_id n) const { return std::find(members_.begin(), members_.end(), n) != members_.end(); }

  /// Values that come from outside, each once.
  std::vector<value_id> operands() const {
    std::vector<value_id> found;
    for (node_id n : members_) {
      const translated t = *step_of(e_, n);
      for (value_id v : t.values)
        if (!has(e_.producer(v)) && std::find(found.begin(), found.end(), v) == found.end())
          found.push_back(v);
    }
    return found;
  }

  bool joins(value_id v) const {
    const node_id n = e_.producer(v);
    if (n < 0 || e_.is_output(v) || !same_dims(e_, v, root_output()) || !step_of(e_, n) ||
        std::find(refused_.begin(), refused_.end(), n) != refused_.end() || e_.uses(v) > max_group_uses)
      return false;
    const auto readers = e_.consumers(v);
    return std::ranges::all_of(readers, [&](node_id reader) { return has(reader); }) ||
           (readers.size() <= max_outer_readers && is_outer(n) &&
            std::ranges::all_of(readers, [&](node_id reader) { return step_of(e_, reader).has_value(); }));
  }

  /// Whether `n` is a sum or product of operands of fewer elements than the group's.
  bool is_outer(node_id n) const {
    const translated t = *step_of(e_, n);
    const bool cheap = t.code == scalar_code::multiply || t.code == scalar_code::add || t.code == scalar_code::subtract;
    return cheap && std::ranges::none_of(t.values, [&](value_id v) { return same_dims(e_, v, root_output()); });
  }

  /// Whether the program's limits hold.
  bool fits() const {
    const size_t rank = e_.val(root_output()).dims->size();
    size_t real = 0, constants = 0;
    for (value_id v : operands())
      (immediate_of(e_, v, rank) ? constants : real) += 1;
    for (node_id n : members_)
      constants += step_of(e_, n)->immediates.size();
    return real <= max_group_inputs && real > 0 && constants <= max_constants;
  }

  const graph_editor& e_;
  node_id root_;
  std::vector<node_id> members_, refused_;
};

} // namespace

bool fuse_elementwise(graph_editor& e) {
  bool changed = false;
  for (auto n = static_cast<node_id>(e.node_count()) - 1; n >= 0; --n) {
    if (!e.alive(n) || !step_of(e, n))
      continue;
    group g(e, n);
    g.grow();
    if (g.size() < 2)
      continue;
    changed |= e.replace(n, g.build());
  }
  return changed;
}

} // namespace troupe
