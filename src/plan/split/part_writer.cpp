#include "plan/split/part_writer.hpp"

#include "ops/evaluate.hpp"
#include "ops/registry.hpp"

#include <utility>

namespace troupe {
namespace {

weight_ptr sliced(const weight_ptr& w, size_t axis, int64_t first, int64_t end, const shape& dims) {
  const auto leaf = [](int64_t n) { return weight::from_tensor(tensor::of<int64_t>({1}, std::span(&n, 1))); };
  return make_step(row_of(inserted_op::slice), {}, {w, leaf(first), leaf(end), leaf(static_cast<int64_t>(axis))},
                   w->type, dims);
}

} // namespace

void part_writer::add_inferred(node n, device_index device) {
  std::vector<value> before;
  for (value_id v : n.outputs)
    before.push_back(v == no_value ? value{} : g_.values[v]);
  infer_node(g_, n);
  for (size_t r = 0; r < before.size(); ++r)
    if (before[r].type != dtype::undefined)
      g_.values[n.outputs[r]] = std::move(before[r]);
  add(std::move(n), device);
}

value_id part_writer::known_vector(const std::string& name, const symbolic_shape& elements) {
  const auto count = static_cast<int64_t>(elements.size());
  if (is_constant(elements))
    return g_.add_constant(name, tensor::of<int64_t>({count}, constants(elements)));
  return g_.add_value({.name = name, .type = dtype::int64, .dims = symbolic_shape{count}, .known = elements});
}

value_id part_writer::apply(node call, value_id into, device_index device) {
  const value_id out = call.outputs[0] = into == no_value ? g_.add_value({.name = call.name}) : into;
  add_inferred(std::move(call), device);
  return out;
}

value_id part_writer::slice(value_id v, size_t axis, const dim& first, const dim& end, device_index device) {
  if (first.is(0) && end == (*g_.values[v].dims)[axis])
    return v;
  const std::string name = fmt::format("{}/{}_{}_{}", g_.values[v].name, axis, first.to_string(), end.to_string());
  if (const auto made = slices_.find({v, device, name}); made != slices_.end())
    return made->second;
  symbolic_shape dims = *g_.values[v].dims;
  dims[axis] = end - first;
  value_id out = no_value;
  if (const weight_ptr& w = g_.values[v].constant; w && is_constant(dims)) {
    weight_ptr part = sliced(w, axis, first.constant(), end.constant(), constants(dims));
    out = g_.add_value({.name = name, .type = w->type, .dims = dims, .constant = std::move(part)});
  } else {
    const value_id from = known_vector(name + "/begin", {first}), to = known_vector(name + "/end", {end}),
                   axes = known_vector(name + "/axis", {static_cast<int64_t>(axis)});
    out = apply(make_call(inserted_op::slice, name, {v, from, to, axes}, no_value), no_value, device);
    g_.values[out].dims = std::move(dims);
  }
  slices_.emplace(std::tuple(v, device, name), out);
  return out;
}

value_id part_writer::join(const std::string& name, std::vector<value_id> parts, size_t axis, value_id into,
                           device_index device) {
  attributes attrs;
  attrs.set("axis", static_cast<int64_t>(axis));
  return apply(make_call(inserted_op::concat, name, std::move(parts), no_value, std::move(attrs)), into, device);
}

void part_writer::combine(combination by, const std::string& name, std::span<const value_id> partial, value_id into,
                          device_index device) {
  value_id sum = partial[0];
  for (size_t i = 1; i < partial.size(); ++i) {
    const bool is_last = i + 1 == partial.size();
    node call = combining_call(by, g_.values[sum].type);
    call.name = is_last ? name : fmt::format("{}/{}", name, i);
    call.inputs = {sum, partial[i]};
    sum = apply(std::move(call), is_last ? into : no_value, device);
  }
}

} // namespace troupe
