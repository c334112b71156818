#include "support/run_graph.hpp"

#include "ops/evaluate.hpp"
#include "support/verified_rewrite.hpp"

#include <random>

namespace troupe::test {

tensor random_tensor(shape dims, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  tensor t(dtype::float32, std::move(dims));
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = normal(engine);
  return t;
}

namespace {

/// Binds the symbols that a value's dims are, from a tensor's.
void bind_symbols(const value& v, const tensor& t, bindings& symbols) {
  for (size_t i = 0; v.dims && i < v.dims->size(); ++i)
    if (const std::string name = (*v.dims)[i].symbol_name(); !name.empty())
      symbols[name] = t.dims()[i];
}

tensor known_bytes(const value& v, const bindings& symbols) {
  shape dims;
  for (const dim& d : *v.dims)
    dims.push_back(d.evaluate(symbols));
  tensor t(v.type, dims);
  for (size_t i = 0; i < v.known->size(); ++i)
    if (v.type == dtype::boolean)
      t.mutable_data<bool>()[i] = (*v.known)[i].evaluate(symbols) != 0;
    else
      visit_integer(v.type, [&]<class T>(type_tag<T>) {
        t.mutable_data<T>()[i] = static_cast<T>((*v.known)[i].evaluate(symbols));
      });
  return t;
}

} // namespace

std::vector<tensor> run_values(const graph& g, const std::vector<tensor>& inputs) {
  std::vector<tensor> values(g.values.size());
  bindings symbols;
  expects(inputs.size() == g.inputs.size(), "as many tensors as inputs");
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[g.inputs[i]] = inputs[i];
    bind_symbols(g.values[g.inputs[i]], inputs[i], symbols);
  }
  const auto bytes_of_value = [&](value_id v) {
    if (v == no_value)
      return tensor{};
    if (!values[v].defined() && g.values[v].constant)
      values[v] = materialise(*g.values[v].constant);
    if (!values[v].defined() && g.values[v].known)
      values[v] = known_bytes(g.values[v], symbols);
    return values[v];
  };
  for (const node& n : g.nodes) {
    std::vector<tensor> operands;
    for (value_id v : n.inputs)
      operands.push_back(bytes_of_value(v));
    const auto results = evaluate(*n.def, n.attrs, operands, n.outputs.size());
    for (size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i] != no_value) {
        values[n.outputs[i]] = results[i];
        bind_symbols(g.values[n.outputs[i]], results[i], symbols);
      }
  }
  for (value_id v = 0; v < std::ssize(values); ++v)
    if (g.values[v].constant || std::ranges::find(g.outputs, v) != g.outputs.end())
      bytes_of_value(v);
  return values;
}

std::vector<tensor> run_graph(const graph& g, const std::vector<tensor>& inputs) {
  const std::vector<tensor> values = run_values(g, inputs);
  std::vector<tensor> outputs;
  for (value_id v : g.outputs)
    outputs.push_back(values[v]);
  return outputs;
}

size_t count_nodes(const graph& g, std::string_view op) {
  return static_cast<size_t>(std::count_if(g.nodes.begin(), g.nodes.end(), [&](const node& n) {
    return (n.domain.empty() ? "" : n.domain + ".") + n.op_type == op;
  }));
}

graph check_fusion(const graph& g, const std::vector<tensor>& inputs, double tolerance, bool for_gpus) {
  verified_rewrite(g, inputs, {.fuse = false}, tolerance);
  graph fused = verified_rewrite(g, inputs, {}, tolerance);
  graph joined = verified_rewrite(g, inputs, {.for_gpus = true}, tolerance);
  return for_gpus ? joined : fused;
}

} // namespace troupe::test
