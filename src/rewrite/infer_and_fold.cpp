// Shape inference and constant folding in one walk: folding a node may make the shapes of later nodes known.
//
// A node whose inputs are all constants becomes constants. Small results are computed at once; big ones become weight recipes,
// which the device that uses them computes from the mapped file, so that a rewrite never touches a big weight.
// A node whose outputs are all host-known (shape arithmetic) loses its outputs' producer; binding makes their bytes.
#include "graph/bodies.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "rewrite/control_flow.hpp"

namespace troupe {
namespace {

/// Results up to this size are computed at rewrite time.
constexpr int64_t eager_bytes = 64 * 1024;
/// Operands up to this size may be read at rewrite time.
constexpr int64_t eager_input_bytes = 1024 * 1024;

bool foldable(const graph& g, const node& n) {
  if (n.def->nondeterministic || !n.def->reference)
    return false;
  return std::all_of(n.inputs.begin(), n.inputs.end(),
                     [&](value_id v) { return v == no_value || g.values[v].constant; });
}

bool is_eager(const graph& g, const node& n) {
  for (value_id v : n.outputs) {
    if (v == no_value)
      continue;
    const value& out = g.values[v];
    if (out.type == dtype::string || !out.dims || !is_constant(*out.dims))
      return true; // data-dependent: the dims come from the data
    if (bytes_of(out.type, volume(constants(*out.dims))) > eager_bytes)
      return false;
  }
  int64_t read = 0;
  for (value_id v : n.inputs)
    if (v != no_value)
      read += bytes_of(g.values[v].type, volume(g.values[v].constant->dims));
  return read <= eager_input_bytes;
}

void fold_now(graph& g, const node& n) {
  std::vector<tensor> inputs;
  for (value_id v : n.inputs)
    inputs.push_back(v == no_value ? tensor{} : materialise(*g.values[v].constant));
  const auto results = evaluate(*n.def, n.attrs, inputs, n.outputs.size());
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (n.outputs[i] == no_value)
      continue;
    value& out = g.values[n.outputs[i]];
    out.constant = weight::from_tensor(results[i]);
    out.dims = to_symbolic(results[i].dims());
    out.known.reset(); // `constant` says it all
  }
}

void fold_lazily(graph& g, const node& n) {
  std::vector<weight_ptr> inputs;
  for (value_id v : n.inputs)
    inputs.push_back(v == no_value ? nullptr : g.values[v].constant);
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (n.outputs[i] == no_value)
      continue;
    value& out = g.values[n.outputs[i]];
    out.constant = make_step(*n.def, n.attrs, inputs, static_cast<uint32_t>(i), out.type, constants(*out.dims));
  }
}

/// A Constant node's tensor becomes the value without being copied.
bool fold_literal(graph& g, const node& n) {
  if (n.op_type != "Constant" || !n.domain.empty() || !n.attrs.has("value"))
    return false;
  value& out = g.values[n.outputs.at(0)];
  const tensor& literal = n.attrs.tensor_value("value");
  out.type = literal.type();
  out.dims = to_symbolic(literal.dims());
  out.constant = weight::from_tensor(literal);
  return true;
}

/// Turns a value whose elements are all plain integers into a constant.
void settle(value& v) {
  if (v.constant || !v.known || !is_constant(*v.known) || !v.dims || !is_constant(*v.dims))
    return;
  const auto elements = constants(*v.known);
  tensor bytes(v.type, constants(*v.dims));
  if (bytes.size() != static_cast<int64_t>(elements.size()))
    fail(errc::internal, "value '{}' has {} elements but {} are known", v.name, bytes.size(), elements.size());
  if (v.type == dtype::boolean)
    std::copy(elements.begin(), elements.end(), bytes.mutable_data<bool>());
  else
    visit_integer(v.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::transform(elements.begin(), elements.end(), bytes.mutable_data<T>(),
                     [](int64_t x) { return static_cast<T>(x); });
    });
  v.constant = weight::from_tensor(std::move(bytes));
  v.known.reset();
}

bool all_known(const graph& g, const node& n) {
  return std::all_of(n.outputs.begin(), n.outputs.end(),
                     [&](value_id v) { return v == no_value || g.values[v].known; });
}

/// Infers one node; returns whether it is still needed.
bool visit(graph& g, node& n) {
  if (fold_literal(g, n))
    return false;
  infer_node(g, n);
  if (foldable(g, n)) {
    try {
      is_eager(g, n) ? fold_now(g, n) : fold_lazily(g, n);
    } catch (const error& e) {
      fail(e.code(), "{}: {}", describe(n), e.what());
    }
    return false;
  }
  if (n.def->nondeterministic || n.outputs.empty())
    return true;
  if (!all_known(g, n))
    return true;
  for (value_id v : n.outputs)
    if (v != no_value)
      settle(g.values[v]);
  return false;
}

} // namespace

void infer_and_fold(graph& g, rewrite_context& context) {
  nodes_ahead ahead{{std::make_move_iterator(g.nodes.rbegin()), std::make_move_iterator(g.nodes.rend())}, {}};
  std::vector<node>& pending = ahead.pending;
  g.nodes.clear();
  std::vector<node> kept;
  kept.reserve(pending.size());
  while (!pending.empty()) {
    node n = std::move(pending.back());
    pending.pop_back();
    if (has_body(n))
      if (auto instead = rewrite_control_flow(g, n, ahead, context)) {
        std::move(instead->rbegin(), instead->rend(), std::back_inserter(pending));
        continue;
      }
    if (visit(g, n))
      kept.push_back(std::move(n));
  }
  g.nodes = std::move(kept);
}

} // namespace troupe
