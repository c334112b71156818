// Shape inference and constant folding in one walk: folding a node may make the shapes of later nodes known.
//
// A node whose inputs are all constants becomes constants. Small results are computed at once; big ones become weight
// recipes, which the device that uses them computes from the mapped file, so that a rewrite hardly touches a big
// weight. What would cost more than the limits of base/limits.hpp stays a node. A node that is a composition
// (ops/expansion.hpp) gives way to its calls, once its operands are inferred; what it asks of these is kept. A node
// that inference cannot follow, since what decides its shapes is computed, becomes a deferred call
// (ops/composed/deferred.hpp). A node whose outputs are all host-known (shape arithmetic) loses its outputs' producer;
// binding makes their bytes.
#include "base/checked.hpp"
#include "graph/bodies.hpp"
#include "graph/dim_budget.hpp"
#include "ops/composed/deferred.hpp"
#include "ops/evaluate.hpp"
#include "ops/expansion.hpp"
#include "ops/registry.hpp"
#include "rewrite/control_flow.hpp"
#include "rewrite/quantized_values.hpp"

namespace troupe {
namespace {

/// Sequences and optionals are not folded: they have no place in a file, and making them takes little time.
bool foldable(const graph& g, const node& n) {
  const auto is_constant = [&](value_id v) { return v == no_value || g.values[v].constant; };
  const auto is_tensor = [&](value_id v) { return v == no_value || !is_container(g.values[v].type); };
  return n.def->reference && is_repeatable(n) && std::all_of(n.inputs.begin(), n.inputs.end(), is_constant) &&
         std::all_of(n.outputs.begin(), n.outputs.end(), is_tensor);
}

/// The outputs of a node over constants, as folding sees them.
struct folded_outputs {
  std::vector<dtype> types; // undefined if the output is absent
  std::vector<shape> dims;
  int64_t bytes = 0, largest = 0, count = 0;
  /// Whether one's size is not known: its dims come from the data, or it holds strings.
  bool open = false;
};

folded_outputs outputs_of(const graph& g, const node& n) {
  folded_outputs found;
  for (value_id v : n.outputs) {
    const bool sized = v != no_value && g.values[v].dims && is_constant(*g.values[v].dims);
    found.types.push_back(sized ? g.values[v].type : dtype::undefined);
    found.dims.push_back(sized ? constants(*g.values[v].dims) : shape{});
    if (v == no_value)
      continue;
    const int64_t bytes = bytes_of(found.types.back(), volume(found.dims.back()));
    found.bytes = checked_add(found.bytes, bytes);
    found.largest = std::max(found.largest, bytes);
    found.open |= !sized || g.values[v].type == dtype::string;
    ++found.count;
  }
  return found;
}

/// Returns the bytes of a tensor, those of its strings included.
int64_t bytes_in(const tensor& t) {
  int64_t bytes = t.bytes();
  if (t.type() == dtype::string)
    for (const std::string& text : t.values<std::string>())
      bytes += static_cast<int64_t>(text.size());
  return bytes;
}

/// Returns the bytes of a node's operands; those of strings are counted if there are few.
int64_t read_bytes(const graph& g, const node& n) {
  int64_t sum = 0;
  for (value_id v : n.inputs) {
    if (v == no_value)
      continue;
    const weight& w = *g.values[v].constant;
    const int64_t bytes = bytes_of(w.type, volume(w.dims));
    const bool count_strings = w.type == dtype::string && !w.step && bytes <= limits::open_input_bytes;
    sum = checked_add(sum, count_strings ? bytes_in(w.leaf) : bytes);
  }
  return sum;
}

enum class folding : uint8_t { none, now, later };

/// Decides how to fold a node over constants, and charges for it.
folding choose_folding(const graph& g, const node& n, std::span<const weight_ptr> inputs, rewrite_context& context) {
  const folded_outputs out = outputs_of(g, n);
  const int64_t read = read_bytes(g, n);
  folding choice = folding::none;
  if (out.open)
    choice = read <= limits::open_input_bytes && out.bytes <= limits::open_input_bytes ? folding::now : folding::none;
  else if (out.bytes <= limits::tiny_bytes || (out.bytes <= limits::eager_bytes && read <= limits::eager_input_bytes))
    choice = folding::now;
  else if (out.largest <= context.largest_folded && n.outputs.size() <= limits::step_outputs)
    choice = folding::later;
  const double work = folding_work(*n.def, n.attrs, inputs, out.types, out.dims) *
                      static_cast<double>(choice == folding::later ? out.count : 1);
  if (choice == folding::now && context.options.fuse && is_kept_recipe(g, n))
    choice = folding::later;
  if (choice == folding::none || !(work <= context.folding_work_left))
    return folding::none;
  context.folding_work_left -= work;
  return choice;
}

/// Charges for a constant that is computed while rewriting.
void charge(rewrite_context& context, const tensor& computed) {
  if ((context.folded_bytes_left -= bytes_in(computed)) < 0)
    fail(errc::unsupported,
         "what the model computes from constants takes more memory than is allowed while a model of its "
         "size is loaded");
}

void fold_now(graph& g, const node& n, std::span<const weight_ptr> operands, rewrite_context& context) {
  std::vector<tensor> inputs;
  for (const weight_ptr& w : operands)
    inputs.push_back(w ? materialise(*w) : tensor{});
  const auto results = evaluate(*n.def, n.attrs, inputs, n.outputs.size());
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (n.outputs[i] == no_value)
      continue;
    value& out = g.values[n.outputs[i]];
    charge(context, results[i]);
    out.constant = weight::from_tensor(results[i]);
    out.dims = to_symbolic(results[i].dims());
    out.known.reset(); // `constant` says it all
  }
}

void fold_later(graph& g, const node& n, const std::vector<weight_ptr>& inputs) {
  const folded_outputs all = outputs_of(g, n);
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (n.outputs[i] == no_value)
      continue;
    g.values[n.outputs[i]].constant = make_step(*n.def, n.attrs, inputs, static_cast<uint32_t>(i), all.types, all.dims);
  }
}

/// Folds a node over constants, unless that costs too much; returns whether it did.
bool fold(graph& g, const node& n, rewrite_context& context) {
  std::vector<weight_ptr> inputs;
  for (value_id v : n.inputs)
    inputs.push_back(v == no_value ? nullptr : g.values[v].constant);
  try {
    const folding choice = choose_folding(g, n, inputs, context);
    if (choice == folding::now)
      fold_now(g, n, inputs, context);
    else if (choice == folding::later)
      fold_later(g, n, inputs);
    return choice != folding::none;
  } catch (const error& e) {
    fail(e.code(), "{}: {}", describe(n), e.what());
  }
}

/// A Constant node's tensor becomes the value without being copied.
bool fold_literal(graph& g, const node& n, rewrite_context& context) {
  const tensor* literal = literal_of(n);
  if (!literal)
    return false;
  value& out = g.values[n.outputs.at(0)];
  out.type = literal->type();
  out.dims = to_symbolic(literal->dims());
  weight_ptr& made = context.literals[literal->data()];
  if (!made || made->type != literal->type() || made->dims != literal->dims())
    made = weight::from_tensor(*literal);
  out.constant = made;
  return true;
}

/// Turns a value whose elements are all plain integers into a constant.
void settle(value& v, rewrite_context& context) {
  if (v.constant || !v.known || !is_constant(*v.known) || !v.dims || !is_constant(*v.dims))
    return;
  const auto elements = constants(*v.known);
  tensor bytes(v.type, constants(*v.dims));
  if (bytes.size() != static_cast<int64_t>(elements.size()))
    fail(errc::internal, "value '{}' has {} elements but {} are known", v.name, bytes.size(), elements.size());
  if (v.type == dtype::boolean)
    std::copy(elements.begin(), elements.end(), bytes.mutable_data<bool>());
  else
    visit_integer(v.type, [&]<class T>(type_tag<T>) {
      std::transform(elements.begin(), elements.end(), bytes.mutable_data<T>(),
                     [](int64_t x) { return static_cast<T>(x); });
    });
  charge(context, bytes);
  v.constant = weight::from_tensor(std::move(bytes));
  v.known.reset();
}

bool all_known(const graph& g, const node& n) {
  return std::all_of(n.outputs.begin(), n.outputs.end(),
                     [&](value_id v) { return v == no_value || g.values[v].known; });
}

bool mentions_symbols(const value& v) {
  const auto symbolic = [](const auto& dims) { return dims && !is_constant(*dims); };
  return symbolic(v.dims) || symbolic(v.known);
}

/// Adds a composition, without its bodies, to `asked` if it can only tell when dims are bound whether its operands fit.
void keep_asking(const graph& g, const node& n, graph& asked) {
  if (std::none_of(n.inputs.begin(), n.inputs.end(),
                   [&](value_id v) { return v != no_value && mentions_symbols(g.values[v]); }))
    return;
  node call = n;
  call.inputs.resize(n.formal_inputs());
  call.captures = 0;
  for (const node_body& body : bodies_of(n))
    call.attrs.erase(body.name);
  if (call.name.empty())
    call.name = call.op_type;
  for (value_id& v : call.inputs) {
    if (v == no_value)
      continue;
    if (const auto& known = g.values[v].known)
      dim_budget::spend(static_cast<int64_t>(known->size() * sizeof(dim)));
    v = asked.add_value(g.values[v]);
  }
  for (value_id& v : call.outputs)
    if (v != no_value)
      v = asked.add_value({.name = g.values[v].name});
  asked.add_node(std::move(call));
}

/// Calls `infer`, which infers `n`; returns the form of `n` whose shapes its run decides if inference cannot follow.
template <class Infer>
std::optional<node> deferred_unless(graph& g, const node& n, Infer&& infer) {
  try {
    infer();
  } catch (const error& e) {
    if (e.code() != errc::unsupported)
      throw;
    dim_budget::spend(0); // throws if the budget is what is short: then no later node could be inferred either
    std::optional<node> late = defer(g, n);
    if (!late)
      throw;
    return late;
  }
  return std::nullopt;
}

/// Infers one node; returns whether it is still needed.
bool visit(graph& g, node& n, rewrite_context& context) {
  if (fold_literal(g, n, context))
    return false;
  if (auto late = deferred_unless(g, n, [&] { infer_node(g, n); }))
    n = *std::move(late);
  if (foldable(g, n) && fold(g, n, context))
    return false;
  if (n.outputs.empty() || !all_known(g, n))
    return true;
  for (value_id v : n.outputs)
    if (v != no_value)
      settle(g.values[v], context);
  return false;
}

} // namespace

void infer_and_fold(graph& g, rewrite_context& context) {
  nodes_ahead ahead{{std::make_move_iterator(g.nodes.rbegin()), std::make_move_iterator(g.nodes.rend())}, {}};
  std::vector<node>& pending = ahead.pending;
  g.nodes.clear();
  std::vector<node> kept;
  kept.reserve(pending.size());
  size_t bodies = 0;
  graph asked = g.asked ? *g.asked : graph{};
  while (!pending.empty()) {
    node n = std::move(pending.back());
    pending.pop_back();
    if (has_body(n))
      if (auto instead = rewrite_control_flow(g, n, ahead, context)) {
        if (n.def->expand)
          keep_asking(g, n, asked);
        std::move(instead->rbegin(), instead->rend(), std::back_inserter(pending));
        continue;
      }
    if (n.def->expand) {
      std::vector<node> instead;
      auto late = deferred_unless(
          g, n, [&] { instead = expand(g, n, [&](const std::string& name) { return take_name(context, name); }); });
      if (late)
        instead.push_back(*std::move(late));
      else
        keep_asking(g, n, asked);
      std::move(instead.rbegin(), instead.rend(), std::back_inserter(pending));
      continue;
    }
    if (!visit(g, n, context))
      continue;
    if (has_body(n) && ++bodies > limits::max_control_nodes)
      fail(errc::unsupported, "the model has more than {} control-flow nodes that the run decides",
           limits::max_control_nodes);
    kept.push_back(std::move(n));
  }
  g.nodes = std::move(kept);
  if (!asked.nodes.empty())
    g.asked = std::make_shared<const graph>(std::move(asked));
}

} // namespace troupe
