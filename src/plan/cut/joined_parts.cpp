#include "plan/cut/joined_parts.hpp"

#include "launch/launch_table.hpp"
#include "ops/op.hpp"
#include "plan/estimate/gpu_support.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// The axis of a Concat, and the dims that are a row's from there on, as the output is stored.
struct joined_axis {
  size_t axis = 0;
  bool channels_last = false;

  /// Returns how many elements of a row are of a value with these dims; nullopt if that depends on the binding.
  std::optional<int64_t> columns(const symbolic_shape& dims) const {
    int64_t count = 1;
    for (size_t i = axis; i < (channels_last ? axis + 1 : dims.size()); ++i)
      if (!dims[i].is_constant() || __builtin_mul_overflow(count, dims[i].constant(), &count))
        return std::nullopt;
    return count;
  }
};

joined_axis axis_of(const graph& g, const node& concat) {
  const value& out = g.values[concat.outputs[0]];
  return {normalize_axis(concat.attrs.integer("axis", 1), out.dims->size()), out.layout == layout::channels_last};
}

/// Returns where input `v` is in the output, which has `size` elements.
row_part part_in(const graph& g, const node& concat, value_id v, int64_t size) {
  const joined_axis along = axis_of(g, concat);
  row_part part{.size = size};
  for (value_id in : concat.inputs) {
    if (in == v)
      part.first = part.pitch;
    part.pitch += along.columns(*g.values[in].dims).value();
  }
  return part;
}

/// Returns the name of the first kernel for a call; nullopt if there is none, or the operator refuses the call by an
/// exception.
std::optional<std::string> best_kernel(const op_def& def, const gpu_call& call) {
  try {
    const launch_lists lists = launches_of(def, call);
    return lists.empty() ? std::nullopt : std::optional(lists.front().name);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

class part_joiner {
public:
  part_joiner(plan& p, const adjacency& edges, std::span<const uint32_t> segment_of_node)
      : p_(p), g_(*p.program), edges_(edges), segment_of_node_(segment_of_node), support_(g_) {}

  void run() {
    for (node_id n = 0; n < static_cast<node_id>(g_.nodes.size()); ++n)
      if (may_join(n) && has_rows(n) && can_be_written(n))
        for (value_id v : g_.nodes[n].inputs)
          p_.storage[v] = g_.nodes[n].outputs[0];
  }

private:
  const device_info& device_of(node_id n) const { return p_.devices[p_.placement[n]]; }

  bool may_join(node_id n) const {
    const node& concat = g_.nodes[n];
    if (!concat.def || concat.def->layouts != layout_support::joining || !device_of(n).gpu ||
        device_of(n).host_memory || concat.outputs.at(0) == no_value || !g_.values[concat.outputs[0]].dims)
      return false;
    return std::all_of(concat.inputs.begin(), concat.inputs.end(), [&](value_id v) {
      return v != no_value && is_only_for(v, n) && std::count(concat.inputs.begin(), concat.inputs.end(), v) == 1;
    });
  }

  /// Whether a node beside Concat `n` makes `v` and nothing else needs it.
  bool is_only_for(value_id v, node_id n) const {
    const node_id from = edges_.producer[v];
    return from >= 0 && p_.placement[from] == p_.placement[n] && segment_of_node_[from] == segment_of_node_[n] &&
           !edges_.is_output[v] && edges_.consumers[v].size() == 1 && p_.storage[v] == v && g_.values[v].dims &&
           g_.nodes[from].outputs.size() == 1 &&
           std::none_of(p_.symbols.begin(), p_.symbols.end(), [&](const data_symbol& s) { return s.value == v; });
  }

  /// Whether rows of the output are rows of the inputs, one after the other, of sizes that are numbers.
  bool has_rows(node_id n) const {
    const node& concat = g_.nodes[n];
    const joined_axis along = axis_of(g_, concat);
    if (along.channels_last && along.axis != 1)
      return false;
    return std::all_of(concat.inputs.begin(), concat.inputs.end(),
                       [&](value_id v) { return along.columns(*g_.values[v].dims).has_value(); });
  }

  /// Whether the nodes that make the inputs can write each to its part, by the kernels that they would run anyway.
  bool can_be_written(node_id n) {
    const node& concat = g_.nodes[n];
    const int64_t size = volume(support_.representative_dims(concat.outputs[0]));
    return std::all_of(concat.inputs.begin(), concat.inputs.end(), [&](value_id v) {
      const node_id from = edges_.producer[v];
      gpu_call call = support_.representative_call(from, *device_of(n).gpu);
      const std::optional<std::string> alone = best_kernel(*g_.nodes[from].def, call);
      call.outputs[0].part = part_in(g_, concat, v, size);
      return alone && call.outputs[0].is_part() && best_kernel(*g_.nodes[from].def, call) == alone;
    });
  }

  plan& p_;
  const graph& g_;
  const adjacency& edges_;
  std::span<const uint32_t> segment_of_node_;
  gpu_support support_; // knows no expected dims, so that a plan made again finds the same
};

} // namespace

void join_parts(plan& p, const adjacency& edges, std::span<const uint32_t> segment_of_node) {
  const bool wanted = std::any_of(p.devices.begin(), p.devices.end(), [](const auto& d) { return d.gpu.has_value(); });
  if (wanted)
    part_joiner(p, edges, segment_of_node).run();
}

row_part part_of(const plan& p, value_id v, int64_t size) {
  if (!is_part(p, v))
    return {};
  return part_in(*p.program, p.program->nodes[p.producer[p.storage[v]]], v, size);
}

} // namespace troupe
