// The calls of a layout whose launches depend on the binding, and where a binding's parameters are. Pure: no Vulkan
// call.
//
// A node is dynamic if dims or host-known elements of some operand vary in the layout. Nodes with the same operator,
// attributes, operands' dims, and elements of small constants are one class: their launches are the same in every
// binding and found once for all of them.
//
// Command buffers are recorded for the launches of one binding. Another binding uses them if it would run the same
// kernels on the same operands (`runs_on`): its parameter words, group counts and known elements are all that differs,
// and those are in a buffer of the slot, at the places that a `parameter_table` gives them.
//
// Where caches grow in place, calls see them with their positions first, and appends are not calls: their copies'
// parameters are in the table too.
#pragma once

#include "launch/kernel_choices.hpp"
#include "plan/bind/bound_plan.hpp"
#include "plan/cut/cache_appends.hpp"

#include <functional>
#include <unordered_map>
#include <unordered_set>

namespace troupe::vulkan {

/// Bytes of a parameter block; blocks are this far apart, a multiple of every device's uniform alignment.
inline constexpr int64_t param_block_bytes = 512;

/// In `launch_binding::bytes` of chosen launches: all of the operand or scratch buffer, however large.
inline constexpr int64_t whole_operand = -1;

/// Values of a program, each with the number of the append that it belongs to.
using append_values = std::unordered_map<value_id, size_t>;

/// A way to run a call that would have been taken if its kernels were there.
struct missed_way {
  launch_list list;
  double gain = 0; // microseconds that it should save
};

/// How one of the ways to run a call is taken: what was measured to be the fastest, else the one of this number, or the
/// last.
struct kernel_selection {
  const kernel_choices* measured = nullptr;
  uint32_t alternative = 0;
  /// Whether a way's kernels are there; empty: they are waited for. If they are not, the fastest way whose kernels are
  /// there is taken, by prediction; if no way's are, the first way stays.
  std::function<bool(const launch_list&)> is_ready = {};
  /// The tiles of products for which some kernels are there (`gpu_call::tiles`).
  std::vector<std::vector<uint32_t>> tiles = {};
  /// Gets the ways that were not taken for that reason; null if nothing wants to know.
  std::vector<missed_way>* missed = nullptr;
};

/// Returns the launches of a node, whole operands marked; `rows_first`: caches whose positions are first. Throws
/// `errc::unsupported` if the operator has no kernel for these dims.
launch_list choose_kernel(const bound_plan& bound, const node& n, const device_info& device,
                          const kernel_selection& how, const append_values& rows_first = {});

/// Rounds scratch buffers up, so that other bindings of a bucket find room in what is recorded for these launches.
void add_scratch_room(std::span<launch_list> choices);

/// Whether command buffers recorded for `recorded` can run `wanted`, list by list: the same kernels on the same parts
/// of operands, with no more scratch memory.
bool runs_on(std::span<const launch_list> recorded, std::span<const launch_list> wanted);

/// See the top of this file.
class dynamic_calls {
public:
  /// The nodes of plan device `self`; `appends`: those to caches that grow where they are.
  dynamic_calls(const arena_layout& layout, device_index self, std::vector<cache_append> appends = {});

  /// Returns the class of a node; `none` if its launches are the same in all bindings.
  static constexpr uint32_t none = UINT32_MAX;
  uint32_t class_of(node_id n) const { return class_of_[n]; }
  size_t class_count() const { return first_.size(); }

  /// Returns the appends that are done in place.
  const std::vector<cache_append>& appends() const { return appends_; }
  /// Returns whether a node is one of them, or the Cast of one's new rows.
  bool is_append(node_id n) const { return is_append_.contains(n); }
  /// Returns the caches that they append to, and what they make.
  const append_values& rows_first() const { return rows_first_; }
  const append_values& made() const { return made_; }

  /// Returns whether a node of chunk `c` reads one of the caches, or makes some of the new rows.
  bool meets_appends(const plan& p, const chunk& c, node_id n) const;

  /// Returns the launches of each class in a binding of the layout. Throws what `choose_kernel` throws.
  std::vector<launch_list> choose(const bound_plan& bound, const kernel_selection& how) const;

private:
  device_index self_;
  std::vector<cache_append> appends_;
  std::unordered_set<node_id> is_append_;
  append_values rows_first_, made_;
  std::vector<uint32_t> class_of_; // by node
  std::vector<node_id> first_;     // by class
};

/// Places of everything that depends on the binding, in bytes from the begin of a slot's parameter buffer: a block and
/// a group count for each launch of a class, then the known values that vary, then a block for each dispatch of appends
/// in place. Nodes of a class share theirs: a decoder's step writes, over the bus, what differs from the last step's
/// once for all layers.
class parameter_table {
public:
  parameter_table() = default;
  /// `choices`: the launches by class.
  parameter_table(const dynamic_calls& calls, const arena_layout& layout, std::span<const launch_list> choices);

  int64_t bytes() const { return bytes_; }
  /// Of launch `launch` of a class.
  int64_t block_at(uint32_t call_class, size_t launch) const;
  int64_t groups_at(uint32_t call_class, size_t launch) const;
  /// Of a known value that varies.
  int64_t known_at(value_id v) const { return known_at_.at(v); }
  /// Of the dispatch of appends [i · copy_rows_each, …).
  int64_t appends_at(size_t i) const { return appends_begin_ + static_cast<int64_t>(i) * param_block_bytes; }

  /// Returns the buffer's content for a binding; `choices` fit those of the constructor (`runs_on`).
  std::vector<std::byte> fill(const bound_plan& bound, std::span<const launch_list> choices) const;

private:
  struct entry {
    uint32_t call_class = 0, launch = 0;
  };

  std::vector<entry> launches_;
  std::vector<size_t> first_launch_; // by class
  std::unordered_map<value_id, int64_t> known_at_;
  std::vector<cache_append> appends_;
  int64_t groups_begin_ = 0, appends_begin_ = 0, bytes_ = 0;
};

} // namespace troupe::vulkan
