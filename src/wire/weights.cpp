#include "wire/weights.hpp"

#include "base/limits.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"

#include <algorithm>

namespace troupe::wire {
namespace {

/// Whether inference may ask for the elements.
bool is_small(const weight& w) {
  return volume(w.dims) <= static_cast<int64_t>(max_known_elements);
}

bool travels(const tensor& leaf) {
  return leaf.type() == dtype::string || leaf.bytes() <= inline_bytes;
}

} // namespace

flat_operator flat_of(const op_def& def) {
  return {std::string(def.domain), std::string(def.name), def.since};
}

const op_def& find_row(const flat_operator& op) {
  const op_def* def = find_op(op.domain, op.name, op.since);
  if (!def || def->since != op.since)
    fail(errc::unsupported,
         "the operator '{}' of domain '{}' and opset {} comes from another host; this one does not "
         "have it: their versions differ",
         op.name, op.domain, op.since);
  return *def;
}

int32_t weight_flattener::add(const weight_ptr& w) {
  std::vector<const weight*> path{w.get()};
  while (!path.empty()) { // operands first; a file decides how many steps stand on each other
    const weight& last = *path.back();
    const size_t depth = path.size();
    if (!added_.contains(last.key) && !is_small(last))
      for (const weight_ptr& operand : last.step_inputs)
        if (operand && !added_.contains(operand->key))
          path.push_back(operand.get());
    if (path.size() > depth)
      continue;
    path.pop_back();
    if (added_.contains(last.key))
      continue;
    table.push_back(flatten(last));
    added_.emplace(last.key, static_cast<int32_t>(table.size() - 1));
  }
  return added_.at(w->key);
}

flat_weight weight_flattener::flatten(const weight& w) const {
  if (is_small(w))
    return flat_leaf{materialise(w)};
  if (!w.step && travels(w.leaf))
    return flat_leaf{w.leaf};
  if (!w.step)
    return large_leaf{w.type, w.dims, content_of_(w)};
  flat_step step{w.type, w.dims, flat_of(*w.step), w.step_attributes, {}, w.step_output, step_outputs(w)};
  for (const weight_ptr& operand : w.step_inputs)
    step.inputs.push_back(operand ? added_.at(operand->key) : -1);
  return step;
}

namespace {

/// Makes weights one after the other, and charges for what computing them takes.
class weight_maker {
public:
  weight_maker(size_t message_bytes, open_leaves& open) : open_(open), bytes_(static_cast<double>(message_bytes)) {}

  void add(flat_leaf&& leaf) {
    if (!leaf.bytes.defined())
      fail(errc::invalid_input, "a weight from another host has no elements");
    made_.push_back(weight::from_tensor(std::move(leaf.bytes)));
  }

  void add(large_leaf&& leaf) {
    if (leaf.type == dtype::string || bytes_of(leaf.type, volume(leaf.dims)) <= inline_bytes)
      fail(errc::invalid_input, "a weight from another host came without its bytes, but it is not large");
    std::shared_ptr<weight>& w = open_[leaf.content];
    if (!w) {
      w = std::make_shared<weight>();
      w->type = leaf.type;
      w->dims = std::move(leaf.dims);
      w->key = leaf.content;
    } else if (w->type != leaf.type || w->dims != leaf.dims) {
      fail(errc::invalid_input, "two weights from another host have one hash, but different types or dims");
    }
    bytes_ += static_cast<double>(bytes_of(w->type, volume(w->dims)));
    made_.push_back(w);
  }

  void add(flat_step&& step) {
    const op_def& def = find_row(step.op);
    std::vector<weight_ptr> inputs;
    for (int32_t i : step.inputs) {
      if (i < -1 || i >= static_cast<int32_t>(made_.size()))
        fail(errc::invalid_input, "a weight from another host is computed from one that does not stand before it");
      inputs.push_back(i < 0 ? nullptr : made_[static_cast<size_t>(i)]);
    }
    const call_outputs all = check_result(def, step, inputs);
    weight_ptr w = make_step(def, std::move(step.attrs), std::move(inputs), step.output, all.types, all.dims);
    if (is_small(*w))
      fail(errc::invalid_input, "a small weight from another host is still to be computed");
    charge(*w);
    made_.push_back(std::move(w));
  }

  std::vector<weight_ptr> take() { return std::move(made_); }

private:
  struct call_outputs {
    std::vector<dtype> types; // undefined where only the run tells the dims
    std::vector<shape> dims;
  };

  /// Returns what inference says of all outputs. A kernel writes that: the type and dims that come with a step must be
  /// these.
  static call_outputs check_result(const op_def& def, const flat_step& step, std::span<const weight_ptr> inputs) {
    if (!def.reference || step.outputs > limits::step_outputs || step.output >= step.outputs)
      fail(errc::invalid_input, "a weight from another host is computed by '{}', which computes none", def.name);
    for (const auto& [name, value] : step.attrs.all())
      if (std::holds_alternative<std::shared_ptr<const graph>>(value))
        fail(errc::invalid_input, "a weight from another host is computed by control flow");
    graph g;
    node n{.op_type = std::string(def.name), .domain = std::string(def.domain), .attrs = step.attrs};
    n.def = &def;
    for (const weight_ptr& w : inputs)
      n.inputs.push_back(w ? g.add_value({.type = w->type, .dims = to_symbolic(w->dims), .constant = w}) : no_value);
    for (uint32_t i = 0; i < step.outputs; ++i)
      n.outputs.push_back(g.add_value({.name = fmt::format("output {}", i)}));
    resolve_node(n, {});
    infer_node(g, n);
    const value& result = g.values[n.outputs[step.output]];
    if (result.type != step.type || !result.dims || !is_constant(*result.dims) || constants(*result.dims) != step.dims)
      fail(errc::invalid_input, "a weight from another host is said to be {} {}, but {} makes another one of it",
           to_string(step.type), to_string(step.dims), describe(n));
    call_outputs all;
    for (const value_id v : n.outputs) {
      const value& out = g.values[v];
      const bool sized = out.dims && is_constant(*out.dims);
      all.types.push_back(sized ? out.type : dtype::undefined);
      all.dims.push_back(sized ? constants(*out.dims) : shape{});
    }
    return all;
  }

  /// As a rewrite does for what a file asks for.
  void charge(const weight& w) const {
    const auto result = static_cast<double>(bytes_of(w.type, volume(w.dims)));
    const double work =
        limits::folding_work + limits::folding_work_a_byte * bytes_ + limits::derived_work_a_byte * result;
    const double largest =
        static_cast<double>(limits::largest_folded_bytes) + limits::largest_folded_bytes_a_byte * bytes_;
    if (!(recipe_work(w) <= work) || result > largest)
      fail(errc::unsupported,
           "a weight from another host takes more to compute than is allowed for a model of its size");
  }

  open_leaves& open_;
  std::vector<weight_ptr> made_;
  double bytes_; // of the message and of the leaves so far
};

} // namespace

std::vector<weight_ptr> make_weights(std::vector<flat_weight> table, size_t message_bytes, open_leaves& open) {
  weight_maker maker(message_bytes, open);
  for (flat_weight& flat : table)
    std::visit([&](auto& w) { maker.add(std::move(w)); }, flat);
  return maker.take();
}

void collect_missing(const weight& w, std::unordered_set<const weight*>& seen, std::vector<hash128>& missing) {
  std::vector<const weight*> pending{&w};
  while (!pending.empty()) {
    const weight& part = *pending.back();
    pending.pop_back();
    if (!seen.insert(&part).second)
      continue;
    if (!part.step && !part.leaf.defined())
      missing.push_back(part.key);
    for (const weight_ptr& operand : part.step_inputs)
      if (operand)
        pending.push_back(operand.get());
  }
}

} // namespace troupe::wire
