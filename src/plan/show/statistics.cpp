#include "plan/show/statistics.hpp"

#include "ops/evaluate.hpp"

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
      if (const tensor* literal = literal_of(n))
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

model_statistics statistics_of(const graph& g) {
  counter c;
  c.add(g);
  return std::move(c.result);
}

std::map<std::string, node_work> work_by_operator(const bound_plan& bound) {
  const plan& p = *bound.source;
  const auto dims_of = [&](value_id v) -> const shape& {
    const value& info = p.program->values[v];
    return info.constant ? info.constant->dims : bound.dims[v];
  };
  std::map<std::string, node_work> sums;
  for (chunk_id id = p.segment_begin[bound.segment]; id < p.segment_begin[bound.segment + 1]; ++id)
    for (node_id n : p.chunks[id].nodes) {
      const node& call = p.program->nodes[n];
      const node_work work = work_of(call, shapes_of(*p.program, call, dims_of));
      node_work& sum = sums[operator_name(call)];
      sum.flops += work.flops;
      sum.bytes += work.bytes;
    }
  return sums;
}

double flops_of(const bound_plan& bound) {
  double flops = 0;
  for (const auto& [name, work] : work_by_operator(bound))
    flops += work.flops;
  return flops;
}

} // namespace troupe
