// What a model asks of placement policies: who can run what, how long it would take, how large values are.
//
// Everything is found when it is asked for and kept, so that `single` on one device asks almost nothing. Dims are those
// that `plan_options::expected` implies. Not thread-safe.
#pragma once

#include "cost/cost_model.hpp"
#include "plan/estimate/gpu_support.hpp"
#include "plan/place/policy_host.hpp"

namespace troupe {

inline constexpr device_index no_device = policy_none;

class placement_problem : public policy_host {
public:
  /// Refers to all three, which must outlive it; `program` is sorted topologically. Throws `errc::invalid_argument` for
  /// a pin that names no device or matches no node, `errc::unsupported` for one whose device cannot run its node.
  placement_problem(const graph& program, std::span<const device_info> devices, const plan_options& options);

  const graph& program() const { return program_; }
  const adjacency& edges() const { return edges_; }
  std::span<const device_info> devices() const { return devices_; }
  size_t node_count() const { return program_.nodes.size(); }

  /// Returns whether device `d` can run a node and no pin says otherwise.
  bool allows(node_id n, device_index d);
  /// Returns the device that a pin names, else `no_device`.
  device_index pinned(node_id n) const { return pinned_.empty() ? no_device : pinned_[n]; }
  /// Returns a value's expected dims and bytes.
  const shape& dims(value_id v) { return support_.representative_dims(v); }
  int64_t bytes(value_id v);
  const node_work& work(node_id n);
  /// Returns the predicted seconds of a node on a device, a barrier included if the device needs them.
  double seconds(node_id n, device_index d);
  /// Returns the bytes that device `d` may fill: a budget, else all of its memory.
  int64_t budget(device_index d) const;
  /// Whether dims, so bytes, are guesses so far: then what does not fit here may fit in a run. Not if there are
  /// budgets, which are of a binding.
  bool has_guessed() const { return options_.budgets.empty() && support_.has_guessed(); }

private:
  void describe_devices();
  void describe_values();
  void describe_edges();
  void set_questions();
  void set_move_questions();
  std::string why_not(node_id n);
  /// Returns why a device, a GPU or of another host, cannot run a node.
  std::string obstacle(node_id n, const device_info& device);
  /// Whether nothing of the program runs on a device: sequences and optionals do not cross hosts (wire/tensors.hpp
  /// knows no such type), not even in the description of a plan.
  bool is_kept_from(const device_info& device) const { return has_containers_ && is_remote(device); }
  double move_seconds(value_id v, device_index from, device_index to);
  double mean_move_seconds(value_id v);
  void pin(std::span<const placement_pin> pins);
  /// Pins what the file's annotations state, where nothing else is pinned and the device can run the node.
  void follow_annotations();
  /// Under policy `single`: a node without a pin goes where its first operand is made, else where it is read first.
  void follow_neighbours();

  const graph& program_;
  std::span<const device_info> devices_;
  const plan_options& options_;
  const adjacency edges_;
  std::vector<device_index> order_; // as given, fallback ones after the `regular_` others
  size_t regular_ = 0;
  /// Where control flow counts as placed while nodes around it look for places: its operands are wanted in this
  /// process's memory.
  device_index host_ = 0;
  const bool has_containers_;
  gpu_support support_;
  std::vector<uint32_t> features_of_;          // by device: index into `can_run_`; GPUs with equal features share
  std::vector<std::vector<int8_t>> can_run_;   // by features, by node: −1 unknown
  std::vector<device_index> pinned_;           // by node; empty if there are no pins
  std::vector<std::optional<node_work>> work_; // by node
  bool measured_ = false;                      // whether some device has measured times
  // What `asked()` points to.
  std::vector<policy_device> device_rows_;
  std::vector<uint8_t> task_flags_, value_flags_;
  std::vector<uint64_t> input_begin_{0}, output_begin_{0}, reader_begin_{0};
  std::vector<uint32_t> inputs_, outputs_, readers_, producer_, storage_;
};

/// Returns the options without pins that hold for nodes of bodies only.
plan_options options_without_bodies(const graph& program, plan_options options);
/// Returns the options with those pins only that hold for some node of a body, or of the bodies in it.
plan_options options_for_body(const graph& body, plan_options options);

/// Returns whether `text` matches `pattern`: '*' matches any text, '?' any character.
bool matches(std::string_view pattern, std::string_view text);

} // namespace troupe
