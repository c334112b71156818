// Inference of a deferred call: the operator's own inference is asked what it says of stand-ins for the operands that
// are not known.
//   1. The operands as they are, since more may be known by now than when the call was deferred.
//   2. A difference of two symbols for each unknown element, which may be negative: what does not mention one holds
//      whatever the elements are.
//   3. Numbers, several of them: only the ranks count, and all attempts that succeed must agree on them.
#include "ops/composed/deferred.hpp"

#include "graph/bodies.hpp"
#include "graph/element_symbols.hpp"
#include "ops/axes.hpp"
#include "ops/evaluate.hpp"
#include "ops/families.hpp"
#include "ops/registry.hpp"
#include "tensor/convert.hpp"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

constexpr auto own_attributes = std::to_array<const char*>({"deferred_domain", "deferred_name", "deferred_since"});
/// Begins the names of the symbols that stand for unknown elements; no other symbol begins so.
constexpr std::string_view stand_in = "@=";
/// How many outputs a call may have whose kernel makes them (`kernel_context::allocate`).
constexpr size_t max_deferred_outputs = 4;

/// The call that was deferred; its operands are numbered from 0, absent ones are `no_value`.
node plain_call(const attributes& attrs, size_t inputs, size_t outputs, const std::function<bool(size_t)>& has_input) {
  const op_def& def = deferred_operator(attrs);
  node n{.op_type = std::string(def.name), .domain = std::string(def.domain), .attrs = attrs};
  for (const char* name : own_attributes)
    n.attrs.erase(name);
  n.def = &def;
  for (size_t i = 0; i < inputs; ++i)
    n.inputs.push_back(has_input(i) ? static_cast<value_id>(i) : no_value);
  for (size_t i = 0; i < outputs; ++i)
    n.outputs.push_back(static_cast<value_id>(inputs + i));
  resolve_node(n, {}); // arity
  return n;
}

/// Infers `call` over operands; returns its outputs, nothing if its inference fails.
std::vector<value> try_infer(const node& call, const std::vector<value>& operands) {
  graph g;
  node n = call;
  for (value_id& v : n.inputs)
    if (v != no_value)
      v = g.add_value(operands[static_cast<size_t>(v)]);
  std::vector<value> outputs;
  try {
    for (size_t i = 0; i < n.outputs.size(); ++i)
      n.outputs[i] = g.add_value({.name = "output" + std::to_string(i)});
    infer_node(g, n);
    for (value_id v : n.outputs)
      outputs.push_back(g.values[v]);
  } catch (const error&) {
    return {};
  }
  const bool told = std::all_of(outputs.begin(), outputs.end(),
                                [](const value& v) { return v.dims.has_value() && !is_container(v.type); });
  return told ? outputs : std::vector<value>{};
}

bool is_host_input(const op_def& def, size_t i) {
  return i < 32 && (def.host_inputs >> i & 1) != 0;
}

bool is_open(const value& v) {
  return !v.constant && !v.known;
}

/// Gives each unknown element of an integer operand that decides shapes a symbol; returns whether there is one.
bool set_symbols(const node& call, std::vector<value>& operands) {
  bool any = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    value& v = operands[i];
    if (call.inputs[i] == no_value || !is_host_input(*call.def, i) || !is_open(v) || !v.dims || !is_constant(*v.dims) ||
        !((types::integers | types::boolean) & set_of(v.type)))
      continue;
    const int64_t count = volume(constants(*v.dims));
    if (count > static_cast<int64_t>(max_known_elements))
      continue;
    v.known = element_symbols(fmt::format("={}", i), static_cast<size_t>(count), false); // which may be negative
    any = true;
  }
  return any;
}

bool mentions_stand_in(const dim& d) {
  std::vector<std::string> names;
  d.collect_symbols(names);
  return std::any_of(names.begin(), names.end(), [](const std::string& n) { return n.starts_with(stand_in); });
}

/// The values of unknown elements in an attempt with numbers: `first`, `first + step` …; floats are all 1.
struct number_rule {
  int64_t first, step;
};

std::vector<dim> evaluated(const std::vector<dim>& dims, int64_t size) {
  std::vector<std::string> names;
  for (const dim& d : dims)
    d.collect_symbols(names);
  bindings values;
  for (const std::string& name : names)
    values[name] = size;
  std::vector<dim> numbers;
  numbers.reserve(dims.size());
  for (const dim& d : dims)
    numbers.emplace_back(d.evaluate(values));
  return numbers;
}

/// Puts numbers for what is unknown: `size` for each symbol, unless it is 0.
void set_numbers(const node& call, std::vector<value>& operands, int64_t size, number_rule rule) {
  for (size_t i = 0; i < operands.size(); ++i) {
    value& v = operands[i];
    if (call.inputs[i] == no_value || !v.dims)
      continue;
    if (size > 0) {
      v.dims = evaluated(*v.dims, size);
      if (v.known)
        v.known = evaluated(*v.known, size);
    }
    if (!is_host_input(*call.def, i) || !is_open(v) || !is_constant(*v.dims) || holds_objects(v.type))
      continue;
    const int64_t count = volume(constants(*v.dims));
    if (count > static_cast<int64_t>(max_known_elements))
      continue;
    const bool whole = ((types::integers | types::boolean) & set_of(v.type)) != 0;
    std::vector<dim> elements;
    for (int64_t e = 0; e < count; ++e)
      elements.push_back(rule.first + e * rule.step);
    if (whole) {
      v.known = std::move(elements);
      continue;
    }
    const std::vector<float> ones(static_cast<size_t>(count), 1.F);
    const tensor floats = tensor::of<float>(constants(*v.dims), ones);
    tensor bytes(v.type, floats.dims());
    convert(floats.view(), bytes.mutable_ref());
    v.constant = weight::from_tensor(std::move(bytes));
  }
}

/// Returns the outputs of the attempts with numbers, nothing if they do not agree on types and ranks, or all fail.
std::vector<value> infer_ranks(const node& call, const std::vector<value>& operands) {
  std::vector<value> agreed;
  for (const int64_t size : {0, 1, 2, 16, 64})
    for (const number_rule rule : {number_rule{0, 1}, number_rule{1, 0}, number_rule{1, 1}}) {
      std::vector<value> numbers = operands, outputs;
      try {
        set_numbers(call, numbers, size, rule);
        outputs = try_infer(call, numbers);
      } catch (const error&) { // a dim that cannot be evaluated
        continue;
      }
      for (size_t i = 0; i < outputs.size() && !agreed.empty(); ++i)
        if (outputs[i].type != agreed[i].type || outputs[i].dims->size() != agreed[i].dims->size())
          return {};
      if (agreed.empty())
        agreed = std::move(outputs);
    }
  return agreed;
}

/// States the outputs: as they are, but for the dims that only the run tells.
template <class IsOpen>
void set_outputs(infer_context& c, const std::vector<value>& outputs, IsOpen&& is_open_dim) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    symbolic_shape dims = *outputs[i].dims;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (is_open_dim(dims[axis]))
        dims[axis] = c.data_dependent(i, axis);
    c.set_output(i, outputs[i].type, std::move(dims));
  }
}

void infer_deferred(infer_context& c) {
  if (c.output_count() > max_deferred_outputs)
    fail(errc::unsupported, "{} outputs whose shapes depend on data; at most {} are supported", c.output_count(),
         max_deferred_outputs);
  const node call = plain_call(c.attrs(), c.input_count(), c.output_count(), [&](size_t i) { return c.has_input(i); });
  std::vector<value> operands(c.input_count());
  for (size_t i = 0; i < operands.size(); ++i)
    if (c.has_input(i))
      operands[i] = c.input(i);
  if (const auto outputs = try_infer(call, operands); !outputs.empty())
    return set_outputs(c, outputs, [](const dim&) { return false; });
  std::vector<value> symbolic = operands;
  if (set_symbols(call, symbolic))
    if (const auto outputs = try_infer(call, symbolic); !outputs.empty())
      return set_outputs(c, outputs, mentions_stand_in);
  const auto outputs = infer_ranks(call, operands);
  if (outputs.empty())
    fail(errc::unsupported, "the ranks of what {} gives depend on data", operator_name(call));
  set_outputs(c, outputs, [](const dim&) { return true; });
}

void deferred(kernel_context& c) {
  const node call = plain_call(c.attrs(), c.input_count(), c.output_count(), [&](size_t i) { return c.has_input(i); });
  std::vector<tensor> operands(c.input_count());
  for (size_t i = 0; i < operands.size(); ++i)
    if (const const_view& in = c.input(i); c.has_input(i)) // the caller keeps the bytes
      operands[i] = tensor(in.type, {in.dims.begin(), in.dims.end()}, nullptr, in.data);
  try {
    const std::vector<tensor> results = evaluate(*call.def, call.attrs, operands, c.output_count());
    for (size_t i = 0; i < results.size(); ++i)
      if (c.has_output(i))
        c.give(i, results[i]);
  } catch (const error& e) { // the model may be right: its operands are data
    fail(e.code() == errc::invalid_model ? errc::invalid_input : e.code(), "{}: {}", operator_name(call), e.what());
  }
}

constexpr auto deferred_rows = std::to_array<op_def>({
    op_row("Deferred", 1, infer_deferred, deferred,
           {.domain = "troupe",
            .inputs = {0, 254}, // 255 would not let one be absent
            .max_outputs = 255,
            .types = types::any,
            .first_output_optional = true,
            .needs_float32 = true,
            .mixes = "has a shape that the data decide"}),
});

/// Whether more than the dims of the graph's inputs is needed to infer a call.
bool is_for_the_run(const graph& g, const node& n) {
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i] == no_value)
      continue;
    const value& v = g.values[n.inputs[i]];
    if ((is_host_input(*n.def, i) && is_open(v)) || (v.dims && depend_on_run(*v.dims)) ||
        (v.known && depend_on_run(*v.known)))
      return true;
  }
  return false;
}

} // namespace

extern constinit const op_table composed_deferred_ops = deferred_rows;

bool is_deferred(const node& n) {
  return n.def && n.def->infer == infer_deferred;
}

const op_def& deferred_operator(const attributes& attrs) {
  const op_def* def =
      find_op(attrs.text("deferred_domain", ""), attrs.text("deferred_name", ""), attrs.integer("deferred_since"));
  if (!def || (!def->reference && !def->expand) || def->infer == infer_deferred || def->draws)
    fail(errc::invalid_model, "'{}' names no operator that can be deferred", attrs.text("deferred_name", ""));
  return *def;
}

std::optional<node> defer(graph& g, const node& n) {
  if (has_body(n) || is_deferred(n) || !is_for_the_run(g, n))
    return std::nullopt;
  node made{.name = n.name,
            .op_type = "Deferred",
            .domain = "troupe",
            .attrs = n.attrs,
            .inputs = n.inputs,
            .outputs = n.outputs};
  made.attrs.set("deferred_domain", std::string(n.def->domain));
  made.attrs.set("deferred_name", std::string(n.def->name));
  made.attrs.set("deferred_since", n.def->since);
  made.def = find_op(made.domain, made.op_type, 1);
  try {
    infer_node(g, made);
  } catch (const error&) {
    return std::nullopt;
  }
  return made;
}

} // namespace troupe
