// What policies see: the C++ face of `policy_problem` (troupe/policy.hpp), the same for models, for plain task graphs,
// and for plug-ins.
//
// Nothing here knows of graphs of operators: `placement_problem` says what a model asks of a policy, `cost_matrix`
// (schedules/) what a table of times does.
#pragma once

#include "base/error.hpp"
#include "troupe/policy.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace troupe {

using task_id = uint32_t;

/// What tasks read and make, whatever the devices. Refers to the plain struct, which must outlive it.
class policy_tasks {
public:
  explicit policy_tasks(const policy_problem& asked) : asked_(asked) {}

  uint32_t task_count() const { return asked_.task_count; }
  uint32_t value_count() const { return asked_.value_count; }

  std::span<const uint32_t> inputs(task_id n) const { return part(asked_.inputs, asked_.input_begin, n); }
  std::span<const uint32_t> outputs(task_id n) const { return part(asked_.outputs, asked_.output_begin, n); }
  std::span<const task_id> readers(uint32_t v) const { return part(asked_.readers, asked_.reader_begin, v); }
  /// Returns the task that makes a value, else `policy_none`.
  task_id producer(uint32_t v) const { return asked_.producer[v]; }
  uint32_t storage(uint32_t v) const { return asked_.storage[v]; }
  bool is_constant(uint32_t v) const { return asked_.value_flags[v] & policy_value_constant; }
  bool is_answer(uint32_t v) const { return asked_.value_flags[v] & policy_value_answer; }
  /// Whether nothing moves for a value, whatever reads it.
  bool is_everywhere(uint32_t v) const {
    return asked_.value_flags[v] & (policy_value_constant | policy_value_known) && producer(v) == policy_none;
  }
  /// Whether the caller gives a value for each run.
  bool is_input(uint32_t v) const { return producer(v) == policy_none && !is_everywhere(v); }
  bool is_control(task_id n) const { return asked_.task_flags[n] & policy_task_control; }
  int64_t bytes(uint32_t v) const { return asked_.value_bytes(asked_.context, v); }
  std::string task_name(task_id n) const { return asked_.task_name(asked_.context, n); }

protected:
  const policy_problem& asked_;

private:
  static std::span<const uint32_t> part(const uint32_t* all, const uint64_t* begin, uint32_t i) {
    return {all + begin[i], static_cast<size_t>(begin[i + 1] - begin[i])};
  }
};

/// A problem as questions: tasks, and what devices make of them.
class scheduling_problem : public policy_tasks {
public:
  explicit scheduling_problem(const policy_problem& asked);

  uint32_t device_count() const { return asked_.device_count; }
  const policy_device& device(uint32_t d) const { return asked_.devices[d]; }
  bool is_gpu(uint32_t d) const { return device(d).flags & policy_device_gpu; }
  bool is_fallback(uint32_t d) const { return device(d).flags & policy_device_fallback; }
  /// Devices in the order in which they are given, fallback ones after the `regular_count()` others.
  const std::vector<uint32_t>& order() const { return order_; }
  size_t regular_count() const { return regular_; }

  /// Returns the device that the caller chose, else `policy_none`.
  uint32_t pinned(task_id n) const { return asked_.pinned ? asked_.pinned[n] : policy_none; }
  bool allows(task_id n, uint32_t d) const { return asked_.allowed(asked_.context, n, d) != 0; }
  double seconds(task_id n, uint32_t d) const { return asked_.seconds(asked_.context, n, d); }
  double move_seconds(uint32_t v, uint32_t from, uint32_t to) const {
    return asked_.move_seconds(asked_.context, v, from, to);
  }
  double mean_move_seconds(uint32_t v) const { return asked_.mean_move_seconds(asked_.context, v); }
  double move_weight() const { return asked_.move_weight; }
  double send_seconds(double bytes, uint32_t d) const { return asked_.send_seconds(asked_.context, bytes, d); }
  double network_seconds(double bytes, uint32_t from, uint32_t to) const {
    return asked_.network_seconds(asked_.context, bytes, from, to);
  }
  double receive_seconds(double bytes, uint32_t d) const { return asked_.receive_seconds(asked_.context, bytes, d); }
  bool has_guessed() const { return asked_.has_guessed(asked_.context) != 0; }

  /// Returns the position in `order()` of the first device that may run a task: from `start` on around the regular
  /// ones, then the fallback ones. Throws `errc::unsupported`, naming task and devices, if there is none.
  size_t find(task_id n, size_t start) const;
  /// Writes the devices that a task may be given: the regular ones that may run it, else the fallback ones. Throws as
  /// `find`.
  void candidates(task_id n, std::vector<uint32_t>& into) const;

private:
  std::vector<uint32_t> order_;
  size_t regular_ = 0;
};

/// What a policy decided.
struct schedule {
  std::vector<uint32_t> device; // by task
  std::vector<double> start;    // by task, seconds; NaN where the policy does not say
};

} // namespace troupe
