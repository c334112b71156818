#include "plan/place/layout.hpp"

#include "ops/registry.hpp"
#include "plan/estimate/gpu_support.hpp"
#include "plan/place/graph_rebuild.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Element types whose channels-last kernels a device has: all quantise and dequantise in any layout, and CPUs convolve
/// bytes. The CPU's float16 is the reference kernels', which know only plain rows.
bool takes_type(const device_info& device, dtype type) {
  constexpr dtype_set everywhere = set_of(dtype::float32, dtype::uint8, dtype::int8);
  return (everywhere & set_of(type)) || type == (device.gpu ? dtype::float16 : dtype::int32);
}

bool has_channels(const device_info& device, const value& v) {
  return takes_type(device, v.type) && v.dims && v.dims->size() >= 3 && v.dims->size() <= 5;
}

/// Whether both layouts put the elements in the same order.
bool is_neutral(const value& v) {
  if (!v.dims || v.dims->size() < 3)
    return true;
  return (*v.dims)[1].is(1) || volume(std::span(*v.dims).subspan(2)).is(1);
}

bool is_single(const value& v) {
  return v.dims && volume(*v.dims).is(1);
}

bool joins_channels(const graph& g, const node& n) {
  return n.def->layouts == layout_support::joining &&
         normalize_axis(n.attrs.integer("axis", 1), g.values[n.outputs[0]].dims->size()) == 1;
}

/// Whether operand `i` of a spatial operator follows the layout: the data, and a residual of the output's dims.
bool is_data_operand(const graph& g, const node& n, size_t i) {
  return i == 0 || (i == n.def->residual_input && *g.values[n.inputs[i]].dims == *g.values[n.outputs[0]].dims);
}

/// Whether a device's fused convolution gathers operand `i` byte by byte, whatever its layout: the channel count is not
/// a multiple of 4.
bool gathers_bytes(const graph& g, const device_info& device, const node& n, size_t i) {
  const value& in = g.values[n.inputs[0]];
  if (!device.gpu || i != 0 || n.def->residual_input == 0 || bits_of(in.type) != 8)
    return false;
  const dim& channels = (*in.dims)[1];
  return channels.is_constant() && channels.constant() % 4 != 0;
}

/// Whether a spatial node gains from channels-last operands on a device.
bool is_spatial(const graph& g, const device_info& device, const node& n) {
  if (n.def->layouts != layout_support::spatial || n.outputs.size() != 1 || n.outputs[0] == no_value)
    return false;
  return has_channels(device, g.values[n.inputs[0]]) && has_channels(device, g.values[n.outputs[0]]);
}

/// Whether operand `v` of an elementwise node or concatenation has the output's layout; the others stay plain.
///
/// Dims that are written differently may still be equal once they are bound, and then an operand that is not
/// broadcast should have the output's layout. So each operand of the output's rank follows, unless it is certain to be
/// repeated or is a constant.
bool follows_output(const graph& g, const node& n, value_id v) {
  const value &in = g.values[v], &out = g.values[n.outputs[0]];
  if (n.def->layouts == layout_support::joining || in.dims == out.dims)
    return true;
  if (in.constant || in.known || !in.dims || in.dims->size() != out.dims->size())
    return false;
  for (size_t axis = 0; axis < in.dims->size(); ++axis)
    if ((*in.dims)[axis].is(1) && !(*out.dims)[axis].is(1))
      return false;
  return true;
}

/// Whether a node computes the same on operands of any one layout: their dims are the output's, or they are one
/// element, or the operator's kernels take plain ones beside these.
bool is_agnostic(const graph& g, const device_info& device, const node& n) {
  const auto is_data = [&](value_id v) { return v != no_value && !is_single(g.values[v]); };
  if (n.outputs.empty() || std::any_of(n.outputs.begin() + 1, n.outputs.end(), is_data) || n.outputs[0] == no_value ||
      !has_channels(device, g.values[n.outputs[0]]))
    return false;
  const bool joins = joins_channels(g, n), normalizes = n.def->layouts == layout_support::normalizing;
  if (!joins && !normalizes && !is_elementwise(n.def->layouts))
    return false;
  const bool mixes = normalizes || n.def->layouts == layout_support::broadcasting;
  return std::all_of(n.inputs.begin(), n.inputs.end(), [&](value_id v) {
    if (v == no_value)
      return true;
    const value& in = g.values[v];
    const bool constant = in.constant || in.known;
    if (joins)
      return !constant && has_channels(device, in);
    if (in.dims == g.values[n.outputs[0]].dims)
      return !constant && takes_type(device, in.type);
    return is_single(in) || (mixes && (takes_type(device, in.type) || !follows_output(g, n, v)));
  });
}

class layout_pass : graph_rebuild {
public:
  layout_pass(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices)
      : graph_rebuild(g, placement, devices), chosen_(g.nodes.size(), false) {}

  void run() {
    {
      gpu_support support(g_);
      for (size_t n = 0; n < nodes_.size(); ++n)
        chosen_[n] = devices_[old_placement_[n]].prefers_channels_last && wants_last(n) && can_run_last(n, support);
    }
    begin_anew();
    for (size_t n = 0; n < nodes_.size(); ++n)
      emit(n);
  }

private:
  bool wants_last(size_t n) const {
    const device_info& device = devices_[old_placement_[n]];
    return is_spatial(g_, device, nodes_[n]) || (is_agnostic(g_, device, nodes_[n]) && follows(n));
  }

  /// Whether the device of a node has a kernel for its channels-last form. Other devices than GPUs have for all of
  /// them.
  bool can_run_last(size_t n, gpu_support& support) const {
    const std::optional<gpu_features>& gpu = devices_[old_placement_[n]].gpu;
    if (!gpu)
      return true;
    gpu_call call = support.representative_call(static_cast<node_id>(n), *gpu);
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (would_read_last(n, i))
        call.inputs[i].layout = layout::channels_last;
    if (!is_neutral(g_.values[nodes_[n].outputs[0]]))
      call.outputs[0].layout = layout::channels_last;
    return has_launches(*nodes_[n].def, call);
  }

  /// Whether input `v` of node `n` comes channels-last from the same device.
  bool is_made_last(size_t n, value_id v) const {
    const node_id from = v == no_value ? -1 : edges_.producer[v];
    return from >= 0 && chosen_[from] && old_placement_[from] == old_placement_[n] && !is_neutral(g_.values[v]);
  }

  /// Whether some input of node `n` does.
  bool follows(size_t n) const {
    return std::any_of(nodes_[n].inputs.begin(), nodes_[n].inputs.end(),
                       [&](value_id v) { return is_made_last(n, v); });
  }

  /// Whether node `n` reads operand `i` channels-last.
  bool reads_last(size_t n, size_t i) const { return chosen_[n] && would_read_last(n, i); }

  /// The same, were the node chosen.
  bool would_read_last(size_t n, size_t i) const {
    const value_id v = nodes_[n].inputs[i];
    if (v == no_value || is_neutral(g_.values[v]))
      return false;
    if (nodes_[n].def->layouts == layout_support::spatial)
      return is_data_operand(g_, nodes_[n], i) &&
             (is_made_last(n, v) || !gathers_bytes(g_, devices_[old_placement_[n]], nodes_[n], i));
    return follows_output(g_, nodes_[n], v);
  }

  /// Whether anyone needs the plain form of a value that `device` makes.
  bool needs_plain(value_id v, device_index device) const {
    const auto reads_plain = [&](node_id consumer) {
      if (old_placement_[consumer] != device)
        return true;
      for (size_t i = 0; i < nodes_[consumer].inputs.size(); ++i)
        if (nodes_[consumer].inputs[i] == v && !reads_last(consumer, i))
          return true;
      return false;
    };
    return edges_.is_output[v] || std::any_of(edges_.consumers[v].begin(), edges_.consumers[v].end(), reads_plain);
  }

  value_id add_last_value(value_id like) {
    const value& v = g_.values[like]; // what it is made of may be a constant, it is not
    return g_.add_value(
        {.name = v.name + "/channels_last", .type = v.type, .dims = v.dims, .layout = layout::channels_last});
  }

  void add_reorder(value_id from, value_id to, device_index device) {
    const bool forward = g_.values[to].layout == layout::channels_last;
    node n = make_call(inserted_op::reorder, g_.values[to].name + "/reorder", {from}, to);
    n.attrs.set("to", std::string(forward ? "channels_last" : "plain"));
    add(std::move(n), device);
  }

  void emit(size_t index) {
    node call = nodes_[index];
    const device_index device = old_placement_[index];
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (reads_last(index, i)) {
        const value_id v = call.inputs[i];
        if (form_of(v, device) == no_value) {
          const value_id made = add_last_value(v);
          form_of(v, device) = made;
          add_reorder(v, made, device);
        }
        call.inputs[i] = form_of(v, device);
      }
    const bool last = chosen_[index] && !is_neutral(g_.values[call.outputs[0]]);
    if (!last)
      return add(std::move(call), device);
    const value_id v = call.outputs[0];
    if (needs_plain(v, device)) {
      const value_id made = call.outputs[0] = add_last_value(v);
      form_of(v, device) = made;
      add(std::move(call), device);
      add_reorder(made, v, device);
    } else {
      g_.values[v].layout = layout::channels_last;
      form_of(v, device) = v;
      add(std::move(call), device);
    }
  }

  std::vector<char> chosen_; // by old node
};

class layout_verifier {
public:
  layout_verifier(const graph& g, std::span<const device_index> placement, std::span<const device_info> devices)
      : g_(g), placement_(placement), devices_(devices) {}

  void run() const {
    for (value_id v : g_.inputs)
      require(!is_last(v), "a graph input", g_.values[v].name);
    for (value_id v : g_.outputs)
      require(!is_last(v), "a graph output", g_.values[v].name);
    const adjacency edges = adjacency_of(g_);
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      check_node(n);
      for (value_id v : g_.nodes[n].inputs)
        if (v != no_value && is_last(v))
          require(edges.producer[v] >= 0 && placement_[edges.producer[v]] == placement_[n], "a value of another device",
                  g_.values[v].name);
    }
  }

private:
  bool is_last(value_id v) const { return v != no_value && g_.values[v].layout == layout::channels_last; }

  static void require(bool condition, const char* what, const std::string& name) {
    if (!condition)
      fail(errc::internal, "layouts: {} ('{}') must not be channels-last here", what, name);
  }

  void check_node(size_t index) const {
    const node& n = g_.nodes[index];
    const auto any_last = [&](const std::vector<value_id>& ids) {
      return std::any_of(ids.begin(), ids.end(), [&](value_id v) { return is_last(v); });
    };
    if (!any_last(n.inputs) && !any_last(n.outputs))
      return;
    require(devices_[placement_[index]].prefers_channels_last, "an operand of a device that does not want it", n.name);
    if (n.def->layouts == layout_support::converting) {
      const bool forward = n.attrs.text("to", "") == "channels_last";
      require(is_last(n.inputs[0]) != forward && is_last(n.outputs[0]) == forward, "a reorder's operand", n.name);
      return;
    }
    const bool spatial = n.def->layouts == layout_support::spatial;
    const device_info& device = devices_[placement_[index]];
    require(spatial ? is_spatial(g_, device, n) : is_agnostic(g_, device, n), "an operand", n.name);
    require(is_last(n.outputs[0]) || is_neutral(g_.values[n.outputs[0]]), "an input beside a plain output", n.name);
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (n.inputs[i] == no_value)
        continue;
      const value& v = g_.values[n.inputs[i]];
      const bool follows = spatial ? is_data_operand(g_, n, i) : follows_output(g_, n, n.inputs[i]);
      require(is_last(n.inputs[i]) == follows || is_neutral(v) || (follows && gathers_bytes(g_, device, n, i)),
              "an operand", n.name);
    }
  }

  const graph& g_;
  std::span<const device_index> placement_;
  std::span<const device_info> devices_;
};

} // namespace

void assign_layouts(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices) {
  const bool wanted =
      std::any_of(devices.begin(), devices.end(), [](const auto& d) { return d.prefers_channels_last; });
  const bool spatial = std::any_of(g.nodes.begin(), g.nodes.end(),
                                   [](const node& n) { return n.def && n.def->layouts == layout_support::spatial; });
  if (wanted && spatial)
    layout_pass(g, placement, devices).run();
}

void verify_layouts(const graph& g, std::span<const device_index> placement, std::span<const device_info> devices) {
  layout_verifier(g, placement, devices).run();
}

} // namespace troupe
