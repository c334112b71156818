#include "ops/evaluate.hpp"

#include "base/mapped_memory.hpp"

#include "ops/registry.hpp"

#include <algorithm>
#include <unordered_map>

namespace troupe {
namespace {

/// A graph of one node over the given inputs, inferred.
graph single_node_graph(const op_def& def, const attributes& attrs, std::span<const tensor> inputs,
                        size_t output_count) {
  graph g;
  node n{.op_type = std::string(def.name), .domain = std::string(def.domain), .attrs = attrs};
  n.def = &def;
  for (const tensor& input : inputs)
    n.inputs.push_back(input.defined() ? g.add_constant("", input) : no_value);
  for (size_t i = 0; i < output_count; ++i)
    n.outputs.push_back(g.add_value({.name = "output" + std::to_string(i)}));
  infer_node(g, n);
  g.add_node(std::move(n));
  return g;
}

} // namespace

std::vector<tensor> evaluate(const op_def& def, const attributes& attrs, std::span<const tensor> inputs,
                             size_t output_count) {
  const graph g = single_node_graph(def, attrs, inputs, output_count);
  std::vector<const_view> in;
  for (const tensor& input : inputs)
    in.push_back(input.view());
  std::vector<tensor> results(output_count);
  std::vector<mutable_view> out(output_count);
  for (size_t i = 0; i < output_count; ++i) {
    const value& v = g.values[g.nodes[0].outputs[i]];
    if (v.dims && is_constant(*v.dims)) {
      results[i] = tensor(v.type, constants(*v.dims));
      out[i] = results[i].mutable_ref();
    } else {
      out[i].type = v.type; // data-dependent: the kernel allocates it
    }
  }
  // Without elements there is nothing to compute, however large the other dims are.
  if (std::all_of(results.begin(), results.end(), [](const tensor& t) { return t.defined() && t.size() == 0; }))
    return results;
  kernel_context context(attrs, in, out);
  def.reference(context);
  for (size_t i = 0; i < output_count; ++i)
    if (!results[i].defined())
      results[i] = context.allocated(i);
  return results;
}

namespace {

/// Bytes of the steps computed so far: recipes share steps, and without this a chain of x + x would cost 2ⁿ.
using step_results = std::unordered_map<const weight*, tensor>;

tensor materialise(const weight& w, step_results& done) {
  if (!w.step)
    return w.leaf;
  if (const auto it = done.find(&w); it != done.end())
    return it->second;
  std::vector<tensor> inputs;
  for (const weight_ptr& input : w.step_inputs)
    inputs.push_back(input ? materialise(*input, done) : tensor{});
  tensor result = evaluate(*w.step, w.step_attributes, inputs, w.step_output + 1).at(w.step_output);
  done.emplace(&w, result);
  return result;
}

} // namespace

tensor materialise(const weight& w) {
  step_results done;
  return materialise(w, done);
}

void release_mapped(const weight& w) {
  if (!w.step)
    return release_mapped_pages(w.leaf.data(), static_cast<size_t>(w.leaf.bytes()));
  for (const weight_ptr& input : w.step_inputs)
    if (input)
      release_mapped(*input);
}

namespace {

void hash_attribute(hasher& h, const attribute& value) {
  const auto add = [&](const auto& v) {
    using T = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<T, tensor>)
      h.add(weight::from_tensor(v)->key);
    else if constexpr (std::is_same_v<T, std::shared_ptr<const graph>>)
      fail(errc::internal, "a weight recipe cannot hold control flow");
    else if constexpr (std::is_same_v<T, std::vector<std::string>>)
      for (const auto& text : v)
        h.add(text);
    else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>)
      h.add(v);
    else
      h.add(std::span<const typename T::value_type>(v));
  };
  std::visit(add, value);
}

} // namespace

weight_ptr make_step(const op_def& def, attributes attrs, std::vector<weight_ptr> inputs, uint32_t output, dtype type,
                     shape dims) {
  hasher h;
  h.add(def.domain);
  h.add(def.name);
  h.add(def.since);
  h.add(output);
  for (const auto& [name, value] : attrs.all()) {
    h.add(name);
    hash_attribute(h, value);
  }
  for (const auto& input : inputs)
    h.add(input ? input->key : hash128{});
  auto w = std::make_shared<weight>();
  w->type = type;
  w->dims = std::move(dims);
  w->key = h.digest();
  w->step = &def;
  w->step_attributes = std::move(attrs);
  w->step_inputs = std::move(inputs);
  w->step_output = output;
  return w;
}

} // namespace troupe
