#include "plan/estimate/gpu_support.hpp"

#include "graph/bodies.hpp"
#include "graph/known_tensor.hpp"
#include "launch/launch_table.hpp"
#include "ops/op.hpp"
#include "plan/estimate/wide_floats.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr int64_t max_elements = int64_t{1} << 32;

/// Returns the number of elements; -1 where it is `max_elements` or more.
int64_t count_elements(const shape& dims) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end())
    return 0;
  int64_t count = 1;
  for (int64_t d : dims)
    if (__builtin_mul_overflow(count, d, &count) || count >= max_elements)
      return -1;
  return count;
}

} // namespace

const operand* find_too_large(const gpu_call& call) {
  for (const auto* operands : {&call.inputs, &call.outputs})
    for (const operand& o : *operands)
      if (count_elements(o.dims) < 0)
        return &o;
  return nullptr;
}

std::string describe(gpu_obstacle obstacle, const node& n) {
  switch (obstacle) {
    case gpu_obstacle::none: return "a GPU can run it";
    case gpu_obstacle::control_flow: return "control flow is not for GPUs";
    case gpu_obstacle::strings: return "strings, sequences and optionals are not for GPUs";
    case gpu_obstacle::data_dependent:
      return fmt::format("{} has outputs whose shape depends on data", operator_name(n));
    case gpu_obstacle::too_large: return "2^32 elements or more are not for GPUs";
    case gpu_obstacle::no_kernel: return fmt::format("no GPU kernel for {}", operator_name(n));
  }
  return "unknown";
}

gpu_support::gpu_support(const graph& program, bindings expected)
    : program_(program), symbols_(program), dims_(program.values.size()), values_(std::move(expected)) {}

gpu_obstacle gpu_support::obstacle(node_id index, const gpu_features& gpu) {
  const node& n = program_.nodes[index];
  if (!n.def || has_body(n))
    return gpu_obstacle::control_flow;
  for (const auto* ids : {&n.inputs, &n.outputs})
    for (value_id v : *ids)
      if (v != no_value && holds_objects(program_.values[v].type))
        return gpu_obstacle::strings;
  if (defines_data_symbol(index))
    return gpu_obstacle::data_dependent;
  const bool view = is_view(n);
  if (!view && !has_launch_rules(*n.def))
    return gpu_obstacle::no_kernel;
  const gpu_call call = representative_call(index, gpu);
  if (find_too_large(call))
    return gpu_obstacle::too_large;
  return view || has_launches(*n.def, call) || has_wide_launches(n, call) ? gpu_obstacle::none
                                                                          : gpu_obstacle::no_kernel;
}

/// Whether the GPU runs a call in float32 instead (place/widen.hpp).
bool gpu_support::has_wide_launches(const node& n, gpu_call call) const {
  const dtype_set narrow = wide_types(call.gpu);
  if (moves_elements(n) || !has_wide_form(program_, n, narrow))
    return false;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (operand& o = call.inputs[i]; is_narrow_operand(n, i, o.type, narrow)) {
      o.type = dtype::float32;
      o.constant = o.constant ? widened(o.constant) : nullptr;
    }
  for (operand& o : call.outputs)
    if (o.present())
      o.type = dtype::float32;
  return has_launches(*n.def, call);
}

gpu_call gpu_support::representative_call(node_id index, const gpu_features& gpu) {
  const node& n = program_.nodes[index];
  gpu_call call{n.attrs, {}, {}, gpu};
  for (value_id v : n.inputs)
    call.inputs.push_back(representative_operand(v));
  for (value_id v : n.outputs)
    call.outputs.push_back(representative_operand(v));
  return call;
}

const shape& gpu_support::representative_dims(value_id v) {
  if (dims_[v])
    return *dims_[v];
  const value& info = program_.values[v];
  shape dims;
  if (info.constant)
    dims = info.constant->dims;
  else if (info.dims)
    for (const dim& d : *info.dims) {
      const int64_t size = evaluate(d);
      dims.push_back(size < 0 ? representative_dim : size);
    }
  return dims_[v].emplace(std::move(dims));
}

/// Gives a symbol a value if it has none.
void gpu_support::guess(const std::string& symbol) {
  has_guessed_ |= values_.try_emplace(symbol, representative_dim).second;
}

int64_t gpu_support::evaluate(const dim& d) {
  if (d.is_constant())
    return d.constant();
  if (const std::string symbol = d.symbol_name(); !symbol.empty()) {
    guess(symbol);
    return values_.at(symbol);
  }
  std::vector<std::string> names;
  d.collect_symbols(names);
  for (const std::string& name : names)
    guess(name);
  try {
    return d.evaluate(values_);
  } catch (const error&) {
    return representative_dim;
  }
}

operand gpu_support::representative_operand(value_id v) {
  if (v == no_value)
    return {};
  const value& info = program_.values[v];
  operand o{.type = info.type, .dims = representative_dims(v), .layout = info.layout, .constant = info.constant};
  if (info.known && !info.constant) {
    std::vector<int64_t> elements;
    for (const dim& d : *info.known)
      elements.push_back(evaluate(d));
    if (count_elements(o.dims) == static_cast<int64_t>(elements.size()))
      o.known = known_tensor(info, o.dims, elements);
  }
  return o;
}

bool gpu_support::defines_data_symbol(node_id n) const {
  if (symbols_.size() == 0)
    return false;
  const auto is_own = [&](data_symbols::id s) { return symbols_.definer(s) == n; };
  return std::any_of(program_.nodes[n].outputs.begin(), program_.nodes[n].outputs.end(), [&](value_id v) {
    const auto mentioned = v == no_value ? std::span<const data_symbols::id>() : symbols_.of_value(v);
    return std::any_of(mentioned.begin(), mentioned.end(), is_own);
  });
}

bool has_launches(const op_def& def, const gpu_call& call) {
  try {
    return !launches_of(def, call).empty();
  } catch (const std::exception&) {
    return false;
  }
}

} // namespace troupe
