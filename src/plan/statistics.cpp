#include "plan/statistics.hpp"

#include <unordered_set>

namespace troupe {
namespace {

class counter {
public:
  void add(const graph& g) {
    for (const value& v : g.values)
      if (v.constant)
        add_constant(v.type, v.constant->dims, v.constant->key);
    for (const node& n : g.nodes) {
      ++result.nodes;
      ++result.operators[operator_name(n)];
      for (const auto& [name, value] : n.attrs.all())
        if (const auto* body = std::get_if<std::shared_ptr<const graph>>(&value))
          add(**body);
        else if (const auto* literal = std::get_if<tensor>(&value); literal && n.op_type == "Constant")
          add_constant(literal->type(), literal->dims(), weight::from_tensor(*literal)->key);
    }
  }

  model_statistics result;

private:
  void add_constant(dtype type, const shape& dims, const hash128& key) {
    if (!counted_.insert(key).second)
      return;
    result.parameters += volume(dims);
    result.bytes[type] += bytes_of(type, volume(dims));
  }

  std::unordered_set<hash128> counted_;
};

} // namespace

std::string operator_name(const node& n) {
  return n.domain.empty() ? n.op_type : n.domain + "." + n.op_type;
}

model_statistics statistics_of(const graph& g) {
  counter c;
  c.add(g);
  return std::move(c.result);
}

op_cost work_of(const bound_plan& bound, const node& n) {
  const plan& p = *bound.source;
  call_shapes call;
  op_cost plain;
  const auto add = [&](value_id v, std::vector<dtype>& types, std::vector<shape>& dims) {
    types.push_back(v == no_value ? dtype::undefined : p.program->values[v].type);
    dims.emplace_back();
    if (v == no_value)
      return;
    const value& info = p.program->values[v];
    if (info.constant)
      dims.back() = info.constant->dims;
    else if (p.segment_of_value[v] <= bound.segment)
      dims.back() = bound.dims[v];
    plain.bytes += static_cast<double>(bytes_of(info.type, volume(dims.back())));
  };
  for (value_id v : n.inputs)
    add(v, call.input_types, call.inputs);
  for (value_id v : n.outputs)
    add(v, call.output_types, call.outputs);
  return n.def && n.def->cost ? n.def->cost(n.attrs, call) : plain;
}

std::map<std::string, op_cost> work_by_operator(const bound_plan& bound) {
  const plan& p = *bound.source;
  std::map<std::string, op_cost> sums;
  for (chunk_id id = p.segment_begin[bound.segment]; id < p.segment_begin[bound.segment + 1]; ++id)
    for (node_id n : p.chunks[id].nodes) {
      const node& call = p.program->nodes[n];
      op_cost& sum = sums[operator_name(call)];
      if (is_view(call))
        continue;
      const op_cost work = work_of(bound, call);
      sum.flops += work.flops;
      sum.bytes += work.bytes;
    }
  return sums;
}

} // namespace troupe
