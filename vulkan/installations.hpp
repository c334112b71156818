// What is installed on a GPU, each kept alive by what is below it:
//
//   layout          arena memory by slot; which nodes are dynamic
//     program       kernels, places, and command buffers by slot; one for all bindings that choose the same kernels
//       binding     a bound plan: its parameters
//
// A new binding of a layout finds the program that its kernels fit, or makes one. A slot's parameter buffer holds the parameters
// of the binding that ran on it last and is written again when another one does; the slot's earlier executions are over then.
// Used by the device's thread alone.
#pragma once

#include "vulkan/chunk_submission.hpp"

#include <atomic>

namespace troupe::vulkan {

/// Memory of one slot of a layout, for executions one after the other.
struct layout_slot {
  allocation arena;
  std::shared_ptr<const allocation> scratch; // the largest that a program of the layout needed
};

struct installed_program;

struct installed_layout {
  dynamic_calls calls;
  int64_t arena_bytes = 0;
  std::vector<std::unique_ptr<layout_slot>> slots; // null if a slot has not been used
  std::vector<std::weak_ptr<installed_program>> programs;
};

/// Command buffers and parameters of a program in one slot.
struct program_slot {
  arena_slot memory;
  uint64_t parameters_of = 0; // bound plan whose parameters it holds
  std::map<std::pair<chunk_id, recording>, recorded_chunk> chunks;
  lane_history last;                 // of the execution that has the slot
  std::atomic<int64_t> in_flight{0}; // its chunks
};

struct installed_program {
  std::shared_ptr<installed_layout> layout;
  std::unique_ptr<gpu_program> program;
  std::vector<std::unique_ptr<program_slot>> slots; // null if the program has not run on a slot
};

struct installed_binding {
  bound_plan_ptr bound;
  std::shared_ptr<installed_program> on;
  std::vector<std::byte> parameters;
  std::atomic<int64_t> in_flight{0};
};

/// See the top of this file.
class installations {
public:
  installations(memory_pool& arenas, memory_pool& parameters) : arenas_(arenas), parameters_(parameters) {}

  /// Installs a bound plan as plan device `self`. Throws what `make_program` throws.
  void add(bound_plan_ptr bound, device_index self, const install_tools& tools);

  /// Returns an installed bound plan.
  installed_binding& find(uint64_t bound_plan);

  /// Returns slot `index` of the binding's program with the binding's parameters in it, made where it is not there yet.
  program_slot& slot_of(const installed_binding& binding, uint32_t index);

  /// Forgets a bound plan, as soon as none of its chunks is in flight.
  void retire(uint64_t bound_plan);
  /// Ends retired bound plans whose last chunk is complete.
  void forget_retired();

  int64_t count() const { return static_cast<int64_t>(bindings_.size()); }
  /// Returns the bytes of all slots' arenas.
  int64_t arena_bytes() const;

private:
  std::shared_ptr<installed_layout> layout_of(const bound_plan& bound, device_index self);
  layout_slot& slot_of(installed_layout& layout, uint32_t index, int64_t scratch_bytes);

  memory_pool& arenas_;
  memory_pool& parameters_;
  std::unordered_map<uint64_t, std::weak_ptr<installed_layout>> layouts_; // by id
  std::unordered_map<uint64_t, std::unique_ptr<installed_binding>> bindings_;
  std::vector<std::unique_ptr<installed_binding>> retired_;
};

} // namespace troupe::vulkan
