#include "plan/cut/split_transfers.hpp"

#include "base/round_up.hpp"
#include "ops/registry.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe {
namespace {

/// More pieces gain nothing: the first and the last one, which do not overlap, are 1/64 of the value.
constexpr int64_t max_pieces = 64;

/// Pieces begin at multiples of this many elements, so that kernels copy whole words.
constexpr int64_t piece_alignment = 1024;

class splitter {
public:
  splitter(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices)
      : g_(g), placement_(placement), devices_(devices), edges_(adjacency_of(g)), old_nodes_(std::move(g.nodes)),
        old_placement_(std::exchange(placement, {})) {
    g_.nodes.clear();
  }

  void run() {
    for (size_t n = 0; n < old_nodes_.size(); ++n) {
      node call = old_nodes_[n];
      const device_index device = old_placement_[n];
      for (value_id& v : call.inputs)
        if (v != no_value && comes_in_pieces(v, device))
          v = joined(v, device);
      const std::vector<value_id> outputs = call.outputs;
      emit(std::move(call), device);
      for (value_id v : outputs)
        if (v != no_value && leaves_in_pieces(v, device))
          cut(v, device);
    }
  }

private:
  bool is_gpu(device_index d) const { return !devices_[d].host_memory; }

  bool comes_in_pieces(value_id v, device_index device) const {
    const node_id from = v < static_cast<value_id>(edges_.producer.size()) ? edges_.producer[v] : -1;
    return from >= 0 && old_placement_[from] != device && is_gpu(device) && pieces_.contains(v);
  }

  bool leaves_in_pieces(value_id v, device_index device) const {
    const auto reads_elsewhere = [&](node_id reader) {
      return old_placement_[reader] != device && is_gpu(old_placement_[reader]) &&
             bytes_of_value(v) <= devices_[old_placement_[reader]].gpu->max_binding_bytes;
    };
    const auto& readers = edges_.consumers[v];
    const int64_t bytes = is_gpu(device) ? bytes_of_value(v) : 0;
    return bytes >= 2 * transfer_piece_bytes && bytes <= devices_[device].gpu->max_binding_bytes &&
           std::any_of(readers.begin(), readers.end(), reads_elsewhere);
  }

  /// Returns 0 if the size is not known.
  int64_t bytes_of_value(value_id v) const {
    const value& info = g_.values[v];
    if (!info.dims || !is_constant(*info.dims) || !(types::fixed_size & set_of(info.type)))
      return 0;
    return bytes_of(info.type, volume(constants(*info.dims)));
  }

  void emit(node n, device_index device) {
    g_.add_node(std::move(n));
    placement_.push_back(device);
  }

  /// Adds a call with one output; returns the output.
  value_id apply(const std::string& name, inserted_op op, std::vector<value_id> inputs, device_index device,
                 attributes attrs = {}) {
    const value_id out = g_.add_value({.name = name});
    node n = make_call(op, name, std::move(inputs), out, std::move(attrs));
    infer_node(g_, n);
    emit(std::move(n), device);
    return out;
  }

  value_id number(const std::string& name, int64_t n) {
    return g_.add_constant(name, tensor::of<int64_t>({1}, std::span(&n, 1)));
  }

  void cut(value_id v, device_index device) {
    const std::string base = g_.values[v].name;
    const int64_t size = volume(constants(*g_.values[v].dims));
    const int64_t count = std::clamp<int64_t>(bytes_of_value(v) / transfer_piece_bytes, 2, max_pieces);
    const int64_t length = round_up(size / count, piece_alignment);
    const value_id flat = apply(base + "/flat", inserted_op::reshape, {v, number(base + "/flat_dims", -1)}, device);
    std::vector<value_id>& pieces = pieces_[v];
    // The sooner the first piece is there, the sooner the target has something to do.
    const int64_t shortest = round_up(length / 4, piece_alignment);
    for (int64_t begin = 0, step = shortest, end = 0; begin < size; begin = end, step = std::min(2 * step, length)) {
      // What would be left as a piece shorter than the first joins the last one.
      end = size - begin < step + shortest ? size : begin + step;
      const std::string name = fmt::format("{}/piece_{}", base, pieces.size());
      const value_id from = number(name + "/begin", begin), to = number(name + "/end", end);
      pieces.push_back(apply(name, inserted_op::slice, {flat, from, to}, device));
    }
  }

  /// Returns `v` as the target has it: joined before its first reader there.
  value_id joined(value_id v, device_index device) {
    const auto [it, is_new] = joined_.try_emplace({v, device}, no_value);
    if (!is_new)
      return it->second;
    const std::string base = fmt::format("{}/{}", g_.values[v].name, devices_[device].name);
    // A view is all it takes for a chunk that uploads a piece.
    std::vector<value_id> arrived;
    for (size_t i = 0; i < pieces_[v].size(); ++i)
      arrived.push_back(apply(fmt::format("{}/piece_{}", base, i), inserted_op::identity, {pieces_[v][i]}, device));
    attributes along_rows;
    along_rows.set("axis", int64_t{0});
    const value_id flat = apply(base + "/flat", inserted_op::concat, std::move(arrived), device, std::move(along_rows));
    const shape dims = constants(*g_.values[v].dims);
    const value_id to = g_.add_constant(base + "/dims", tensor::of<int64_t>({static_cast<int64_t>(dims.size())}, dims));
    return it->second = apply(base, inserted_op::reshape, {flat, to}, device);
  }

  graph& g_;
  std::vector<device_index>& placement_;
  std::span<const device_info> devices_;
  const adjacency edges_;                         // of the graph as it was
  const std::vector<node> old_nodes_;             // likewise
  const std::vector<device_index> old_placement_; // likewise
  std::map<value_id, std::vector<value_id>> pieces_;
  std::map<std::pair<value_id, device_index>, value_id> joined_;
};

} // namespace

void split_transfers(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices) {
  const auto is_gpu = [](const device_info& d) { return !d.host_memory; };
  if (std::count_if(devices.begin(), devices.end(), is_gpu) > 1)
    splitter(g, placement, devices).run();
}

} // namespace troupe
