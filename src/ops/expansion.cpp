#include "ops/expansion.hpp"

#include "base/limits.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "tensor/convert.hpp"

#include <algorithm>
#include <map>

namespace troupe {
namespace {

std::string prefix_of(const graph& g, const node& n) {
  const auto named = std::find_if(n.outputs.begin(), n.outputs.end(), [](value_id v) { return v != no_value; });
  const std::string& name = !n.name.empty() || named == n.outputs.end() ? n.name : g.values[*named].name;
  return name.substr(0, limits::longest_copied_name);
}

} // namespace

expansion::expansion(graph& g, node& n, name_taker take_name)
    : graph_(g), node_(n), call_(g, n), take_name_(std::move(take_name)), prefix_(prefix_of(g, n)) {}

std::string expansion::next_name(std::string_view what) {
  return take_name_(fmt::format("{}/{}{}", prefix_, what, steps_.size()));
}

const value& expansion::at(value_id v) const {
  if (v == no_value)
    fail(errc::invalid_model, "an operand is missing");
  return graph_.values[v];
}

symbolic_shape expansion::dims(value_id v) const {
  const value& found = at(v);
  if (!found.dims)
    fail(errc::unsupported, "the rank of '{}' is not known", found.name);
  return *found.dims;
}

symbolic_shape expansion::dims(value_id v, size_t wanted) const {
  symbolic_shape found = dims(v);
  if (found.size() != wanted)
    fail(errc::invalid_model, "'{}' of shape {} must have rank {}", at(v).name, to_string(found), wanted);
  return found;
}

value_id expansion::constant(tensor bytes) {
  return graph_.add_constant(next_name("constant"), std::move(bytes));
}

value_id expansion::scalar(dtype type, double number) {
  tensor t(type, {});
  const tensor source = tensor::scalar(number);
  convert(source.view(), t.mutable_ref());
  return constant(std::move(t));
}

value_id expansion::known(const symbolic_shape& elements) {
  const auto count = static_cast<int64_t>(elements.size());
  if (is_constant(elements))
    return constant(tensor::of<int64_t>({count}, constants(elements)));
  return graph_.add_value(
      {.name = next_name("known"), .type = dtype::int64, .dims = symbolic_shape{count}, .known = elements});
}

value_id expansion::known_scalar(const dim& element) {
  if (element.is_constant())
    return scalar(dtype::int64, static_cast<double>(element.constant()));
  return graph_.add_value(
      {.name = next_name("known"), .type = dtype::int64, .dims = symbolic_shape{}, .known = symbolic_shape{element}});
}

value_id expansion::add(std::string_view op, std::vector<value_id> inputs, attributes attrs, std::string_view domain) {
  return add_all(op, std::move(inputs), 1, std::move(attrs), domain)[0];
}

std::vector<value_id> expansion::add_all(std::string_view op, std::vector<value_id> inputs, size_t outputs,
                                         attributes attrs, std::string_view domain) {
  while (!inputs.empty() && inputs.back() == no_value)
    inputs.pop_back();
  node n{.name = next_name(op),
         .op_type = std::string(op),
         .domain = std::string(domain),
         .attrs = std::move(attrs),
         .inputs = std::move(inputs)};
  for (size_t i = 0; i < outputs; ++i)
    n.outputs.push_back(graph_.add_value({.name = i == 0 ? n.name : fmt::format("{}:{}", n.name, i)}));
  n.def = find_op(domain, op, newest_opset(domain));
  expects(n.def != nullptr, "a composition calls an operator that is not in the table");
  resolve_node(n, {}); // arity
  infer_node(graph_, n);
  steps_.push_back(std::move(n));
  return steps_.back().outputs;
}

value_id expansion::range(const dim& count) {
  return add("Range", {scalar(dtype::int64, 0), known_scalar(count), scalar(dtype::int64, 1)});
}

value_id expansion::plus_input(value_id v, size_t i) {
  return has_input(i) ? add("Add", {v, input(i)}) : v;
}

value_id expansion::reshape(value_id v, const symbolic_shape& to) {
  // A dim that turns out to be 0 is 0, not "copy".
  return add("Reshape", {v, known(to)}, attributes_of({{"allowzero", int64_t{1}}}));
}

value_id expansion::transpose(value_id v, std::vector<int64_t> permutation) {
  return add("Transpose", {v}, attributes_of({{"perm", std::move(permutation)}}));
}

value_id expansion::cast(value_id v, dtype to) {
  return type(v) == to ? v : add("Cast", {v}, attributes_of({{"to", static_cast<int64_t>(to)}}));
}

node* expansion::producer_of(value_id v) {
  const auto found = std::find_if(steps_.begin(), steps_.end(), [&](const node& n) {
    return std::find(n.outputs.begin(), n.outputs.end(), v) != n.outputs.end();
  });
  return found == steps_.end() ? nullptr : &*found;
}

void expansion::set_output(size_t i, value_id v) {
  if (has_output(i))
    results_.emplace_back(node_.outputs[i], v);
}

std::vector<node> expansion::take() {
  std::map<value_id, value_id> taken; // which output a value has become
  for (auto [out, v] : results_) {
    if (const auto before = taken.find(v); before != taken.end())
      v = add("Identity", {before->second});
    else if (!producer_of(v))
      v = add("Identity", {v});
    taken[v] = out;
    for (node& n : steps_) {
      std::replace(n.inputs.begin(), n.inputs.end(), v, out);
      std::replace(n.outputs.begin(), n.outputs.end(), v, out);
    }
    const value made = graph_.values[v];
    value& target = graph_.values[out];
    target.type = made.type;
    target.dims = made.dims;
    target.known = made.known;
  }
  return std::move(steps_);
}

attributes attributes_of(std::initializer_list<std::pair<const char*, attribute>> list) {
  attributes made;
  for (const auto& [name, value] : list)
    made.set(name, value);
  return made;
}

std::vector<node> expand(graph& g, node& n, expansion::name_taker take_name) {
  std::vector<node> steps;
  work_on(g, n, [&] {
    expansion e(g, n, std::move(take_name));
    n.def->expand(e);
    steps = e.take();
  });
  return steps;
}

namespace {

/// A graph that holds one call.
struct scratch_call {
  graph g;
  node n;

  explicit scratch_call(const node& call) : n(call) {
    n.inputs.clear();
    n.outputs.clear();
  }
  void add_input(value v) { n.inputs.push_back(g.add_value(std::move(v))); }
  void add_outputs(size_t count) {
    for (size_t i = 0; i < count; ++i)
      n.outputs.push_back(g.add_value({.name = fmt::format("output {}", i)}));
  }
  std::vector<node> take_apart() {
    expansion e(g, n, [](const std::string& name) { return name; });
    n.def->expand(e);
    return e.take();
  }
};

} // namespace

void infer_by_expansion(infer_context& c) {
  scratch_call s(c.call());
  for (size_t i = 0; i < c.input_count(); ++i)
    if (c.has_input(i))
      s.add_input(c.input(i));
    else
      s.n.inputs.push_back(no_value);
  for (size_t i = 0; i < c.output_count(); ++i)
    if (c.has_output(i))
      s.add_outputs(1);
    else
      s.n.outputs.push_back(no_value);
  s.take_apart();
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (!c.has_output(i))
      continue;
    const value& made = s.g.values[s.n.outputs[i]];
    if (!made.dims)
      fail(errc::unsupported, "output {} is not supported", i);
    c.set_output(i, made.type, *made.dims);
    if (made.known)
      c.set_known(i, *made.known);
  }
}

std::vector<tensor> evaluate_expansion(const op_def& def, const attributes& attrs, std::span<const tensor> inputs,
                                       size_t output_count) {
  scratch_call s({.name = std::string(def.name), .op_type = std::string(def.name), .attrs = attrs, .def = &def});
  std::vector<tensor> results;
  for (const tensor& t : inputs)
    if (t.defined())
      s.n.inputs.push_back(s.g.add_constant("operand", t));
    else
      s.n.inputs.push_back(no_value);
  s.add_outputs(output_count);
  const std::vector<node> steps = s.take_apart();
  for (const node& n : steps) {
    std::vector<tensor> operands;
    for (value_id v : n.inputs)
      operands.push_back(v == no_value ? tensor{} : materialise(*s.g.values[v].constant));
    const auto made = evaluate(*n.def, n.attrs, operands, n.outputs.size());
    for (size_t i = 0; i < made.size(); ++i)
      s.g.values[n.outputs[i]].constant = weight::from_tensor(made[i]);
  }
  for (value_id v : s.n.outputs)
    results.push_back(s.g.values[v].constant ? materialise(*s.g.values[v].constant) : tensor{});
  return results;
}

} // namespace troupe
