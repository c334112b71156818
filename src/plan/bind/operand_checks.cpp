#include "plan/bind/operand_checks.hpp"

#include "graph/bodies.hpp"
#include "ops/node_origin.hpp"
#include "ops/registry.hpp"
#include "plan/bind/arena_layout.hpp"

#include <algorithm>
#include <set>

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

/// Returns whether inference, at load, knew the node's operands in numbers; so it does control flow's, whose bodies
/// check theirs.
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

/// Returns two sets of values; inference that passes with both is taken to pass with any. The first are different
/// primes: no two dims are equal by chance, models are unlikely to have such numbers, and halved and doubled again a
/// prime is not what it was. The second are ones: they show what must be at least 2.
std::array<bindings, 2> draw_values(const plan& p) {
  std::array<bindings, 2> drawn;
  int64_t last = 1000;
  for (const std::string& name : symbols_of(p, p.segment_count - 1)) {
    drawn[0].emplace(name, last = next_prime(last + 50));
    drawn[1].emplace(name, 1);
  }
  return drawn;
}

/// Throws `errc::invalid_input` if inference gives an output that has dims in this segment's binding others than the
/// program says: arenas and kernels have room for those.
void check_outputs(const plan& p, uint32_t segment, const node& n, const bindings& values) {
  const std::vector<value> inferred = infer_numbers(*p.program, n, values);
  for (size_t i = 0; i < inferred.size(); ++i) {
    const value_id v = n.outputs[i];
    if (v == no_value || p.segment_of_value[v] > segment || !p.program->values[v].dims || !inferred[i].dims)
      continue;
    const symbolic_shape said = numbers_of(*p.program->values[v].dims, values);
    if (said != *inferred[i].dims)
      fail(errc::invalid_input, "{}: the result '{}' would be {}, not {}", describe_origin(n),
           p.program->values[v].name, to_string(*inferred[i].dims), to_string(said));
  }
}

/// Returns whether `ask` throws under neither of the values.
template <class Ask>
bool always_passes(const std::array<bindings, 2>& drawn, const Ask& ask) {
  return std::ranges::all_of(drawn, [&](const bindings& values) {
    try {
      ask(values);
      return true;
    } catch (const error&) {
      return false;
    }
  });
}

/// What a call's verdict depends on, part by part.
using question = std::vector<std::string>;

/// Adds an attribute; returns false for tensors and bodies, which are not worth it.
bool add(question& q, const attribute& a) {
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, tensor> || std::is_same_v<T, std::shared_ptr<const graph>>)
          return false;
        else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>)
          q.push_back(fmt::format("{} {}", a.index(), x));
        else
          q.push_back(fmt::format("{} of {} elements", a.index(), x.size()));
        if constexpr (requires { typename T::value_type; } && !std::is_same_v<T, std::string>)
          for (const auto& element : x)
            q.push_back(fmt::format("{}", element));
        return true;
      },
      a);
}

/// Adds a value; the elements of a large constant decide nothing, since inference does not look at them.
void add(question& q, const value& v) {
  const bool small = v.constant && volume(v.constant->dims) <= static_cast<int64_t>(max_known_elements);
  q.push_back(small ? to_hex(v.constant->key) : v.constant ? "large" : "");
  q.emplace_back(to_string(v.type));
  q.push_back(v.dims ? to_string(*v.dims) : "?");
  q.push_back(v.known ? to_string(*v.known) : "?");
}

/// Returns nullopt if the question is not worth writing down.
std::optional<question> question_of(const graph& g, const node& n) {
  question q{n.domain, n.op_type, fmt::format("{}, {} inputs", n.def->since, n.inputs.size())};
  for (const auto& [name, value] : n.attrs.all()) {
    q.push_back(name);
    if (!add(q, value))
      return std::nullopt;
  }
  for (const auto* ids : {&n.inputs, &n.outputs})
    for (const value_id v : *ids)
      add(q, v == no_value ? value{} : g.values[v]);
  return q;
}

std::string operands_of(const graph& g, const node& n, const bindings& values) {
  std::string text;
  for (const value_id v : n.inputs)
    if (v != no_value && g.values[v].dims)
      text += fmt::format("{}'{}' {}", text.empty() ? "" : ", ", g.values[v].name,
                          to_string(numbers_of(*g.values[v].dims, values)));
  return text;
}

/// Calls `ask`, which infers `n` of `g` with numbers; throws `errc::invalid_input` if its operator refuses them.
template <class Ask>
void name_refusal(const graph& g, const node& n, const bindings& values, const Ask& ask) {
  try {
    ask();
  } catch (const error& e) {
    if (e.code() == errc::invalid_model || e.code() == errc::invalid_input)
      fail(errc::invalid_input, "{} (its inputs: {})", e.what(), operands_of(g, n, values));
  }
}

/// Returns by symbol the first segment whose dims mention it: from that one's binding on it has a value.
std::map<std::string, uint32_t> segments_of_symbols(const plan& p) {
  std::map<std::string, uint32_t> first;
  for (uint32_t s = 0; s < p.segment_count; ++s)
    for (const std::string& name : p.dims[s].symbols())
      first.try_emplace(name, s);
  return first;
}

/// Returns the first segment whose binding has values for all symbols of a call's operands; nullopt if the program
/// mentions one of them nowhere: then it has no use for the call either.
std::optional<uint32_t> segment_of(const graph& g, const node& n, const std::map<std::string, uint32_t>& first) {
  std::vector<std::string> names;
  for (const value_id v : n.inputs)
    if (v != no_value)
      for (const auto& dims : {g.values[v].dims, g.values[v].known})
        if (dims)
          for (const dim& d : *dims)
            d.collect_symbols(names);
  uint32_t segment = 0;
  for (const std::string& name : names) {
    const auto found = first.find(name);
    if (found == first.end())
      return std::nullopt;
    segment = std::max(segment, found->second);
  }
  return segment;
}

} // namespace

std::vector<std::vector<node_id>> find_open_operands(const plan& p) {
  const graph& g = *p.program;
  const auto drawn = draw_values(p);
  std::vector<std::vector<node_id>> open(p.segment_count);
  std::set<std::pair<uint32_t, question>> asked;
  for (node_id id = 0; id < static_cast<node_id>(g.nodes.size()); ++id) {
    const node& n = g.nodes[id];
    if (is_settled(g, n))
      continue;
    const uint32_t segment = p.chunks[p.chunk_of_node[id]].segment;
    if (always_passes(drawn, [&](const bindings& v) { check_outputs(p, segment, n, v); }))
      continue;
    const auto asks = question_of(g, n); // the layers of a model ask the same: one of them is enough
    if (!asks || asked.emplace(segment, *asks).second)
      open[segment].push_back(id);
  }
  return open;
}

std::vector<std::vector<node_id>> find_open_calls(const plan& p) {
  std::vector<std::vector<node_id>> open(p.segment_count);
  if (!p.program->asked)
    return open;
  const graph& g = *p.program->asked;
  const auto drawn = draw_values(p);
  const auto first = segments_of_symbols(p);
  std::set<question> asked;
  for (node_id id = 0; id < static_cast<node_id>(g.nodes.size()); ++id) {
    const node& n = g.nodes[id];
    const auto segment = segment_of(g, n, first);
    const auto asks = segment ? question_of(g, n) : std::nullopt;
    if (!segment || (asks && !asked.insert(*asks).second))
      continue;
    if (!always_passes(drawn, [&](const bindings& v) { infer_numbers(g, n, v); }))
      open[*segment].push_back(id);
  }
  return open;
}

void check_operands(const plan& p, uint32_t segment, const bindings& values) {
  for (node_id id : p.open_calls[segment]) { // before what has taken their place: these have the file's names
    const graph& g = *p.program->asked;
    name_refusal(g, g.nodes[id], values, [&] { infer_numbers(g, g.nodes[id], values); });
  }
  for (node_id id : p.open_operands[segment]) {
    const node& n = p.program->nodes[id];
    name_refusal(*p.program, n, values, [&] { check_outputs(p, segment, n, values); });
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
