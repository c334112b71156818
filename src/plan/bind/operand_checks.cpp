#include "plan/bind/operand_checks.hpp"

#include "graph/bodies.hpp"
#include "ops/registry.hpp"
#include "plan/bind/arena_layout.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Returns the first prime above `n`.
int64_t next_prime(int64_t n) {
  for (++n;; ++n) {
    int64_t divisor = 2;
    while (divisor * divisor <= n && n % divisor != 0)
      ++divisor;
    if (divisor * divisor > n)
      return n;
  }
}

bool is_number(const value& v) {
  const auto constant = [](const dim& d) { return d.is_constant(); };
  return v.constant || !v.dims ||
         (std::all_of(v.dims->begin(), v.dims->end(), constant) &&
          (!v.known || std::all_of(v.known->begin(), v.known->end(), constant)));
}

/// Returns whether inference, at load, knew the node's operands in numbers; so it does control flow's, whose bodies check theirs.
bool is_settled(const graph& g, const node& n) {
  return has_body(n) || std::all_of(n.inputs.begin(), n.inputs.end(),
                                    [&](value_id v) { return v == no_value || is_number(g.values[v]); });
}

std::vector<dim> numbers_of(const std::vector<dim>& dims, const bindings& values) {
  std::vector<dim> numbers;
  numbers.reserve(dims.size());
  for (const dim& d : dims)
    numbers.emplace_back(d.evaluate(values));
  return numbers;
}

/// Primes that models are unlikely to have among their own numbers: halved and doubled again, they are not what they were.
bindings draw_values(const plan& p) {
  bindings values;
  int64_t last = 1000;
  for (const std::string& name : symbols_of(p, p.segment_count - 1))
    values.emplace(name, last = next_prime(last + 50));
  return values;
}

} // namespace

std::vector<std::vector<node_id>> find_open_operands(const plan& p) {
  const graph& g = *p.program;
  const bindings values = draw_values(p);
  std::vector<std::vector<node_id>> open(p.segment_count);
  for (node_id id = 0; id < static_cast<node_id>(g.nodes.size()); ++id) {
    if (is_settled(g, g.nodes[id]))
      continue;
    try {
      infer_numbers(g, g.nodes[id], values);
    } catch (const error&) {
      open[p.chunks[p.chunk_of_node[id]].segment].push_back(id);
    }
  }
  return open;
}

void check_operands(const plan& p, uint32_t segment, const bindings& values) {
  for (node_id id : p.open_operands[segment])
    try {
      infer_numbers(*p.program, p.program->nodes[id], values);
    } catch (const error& e) {
      if (e.code() == errc::invalid_model || e.code() == errc::invalid_input)
        fail(errc::invalid_input, "{}", e.what());
    }
}

std::vector<value> infer_numbers(const graph& program, const node& n, const bindings& values) {
  graph g;
  node call = n;
  for (value_id& v : call.inputs) {
    if (v == no_value)
      continue;
    value operand = program.values[v];
    if (operand.dims)
      operand.dims = numbers_of(*operand.dims, values);
    if (operand.known)
      operand.known = numbers_of(*operand.known, values);
    v = g.add_value(std::move(operand));
  }
  for (value_id& v : call.outputs)
    if (v != no_value)
      v = g.add_value({.name = program.values[v].name});
  infer_node(g, call);
  std::vector<value> outputs;
  for (value_id v : call.outputs)
    outputs.push_back(v == no_value ? value{} : std::move(g.values[v]));
  return outputs;
}

} // namespace troupe
