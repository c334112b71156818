// What is installed on a GPU, each kept alive by what is below it:
//
//   layout          arena memory by slot
//     way           which nodes are dynamic, if caches are copied or grow in place
//       program     kernels, places, and command buffers by slot; one for all bindings that choose the same kernels
//         binding   a bound plan: its parameters, for each way that a run has wanted
//
// A new binding of a layout finds the program that its kernels fit, or makes one. A slot's parameter buffer holds the
// parameters of the binding that ran on it last and is written again when another one does; the slot's earlier
// executions are over then. Used by the device's thread alone.
#pragma once

#include "vulkan/chunk_submission.hpp"

#include <atomic>

namespace troupe::vulkan {

/// Memory of one slot of a layout, for executions one after the other.
struct layout_slot {
  allocation arena;
  std::shared_ptr<const allocation> scratch; // the largest that a program of the layout needed
  lane_history last;                         // of the execution that has the slot
};

struct installed_program;

/// What chunks do with caches that may grow in place (plan/cut/cache_appends.hpp).
enum class cache_way : uint8_t {
  copied,   // what they do with all values: into the arena, and out of it
  in_place, // new rows are written where the runs' caches are
};

struct installed_layout {
  /// The calls of a way, and the programs that were made for it.
  struct way {
    dynamic_calls calls;
    std::vector<std::weak_ptr<installed_program>> programs;
  };

  std::vector<cache_append> appends; // that may be in place
  int64_t arena_bytes = 0;
  std::vector<std::unique_ptr<layout_slot>> slots; // null if a slot has not been used
  std::array<std::optional<way>, 2> ways;          // by `cache_way`; nullopt if no binding has wanted it
};

/// What a chunk was recorded for: its caches that grow in place too, by the numbers of their memory.
struct recorded_for {
  chunk_id chunk = 0;
  recording how = recording::plain;
  std::vector<uint64_t> caches;

  auto operator<=>(const recorded_for&) const = default;
};

/// Command buffers and parameters of a program in one slot.
struct program_slot {
  arena_slot memory;
  uint64_t parameters_of = 0;          // bound plan whose parameters it holds; 0: perhaps parts of several
  std::vector<std::byte> written = {}; // what was written there last
  std::map<recorded_for, recorded_chunk> chunks;
  lane_history* last = nullptr;      // the layout's slot's
  std::atomic<int64_t> in_flight{0}; // its chunks
};

struct installed_program {
  std::shared_ptr<installed_layout> layout;
  std::unique_ptr<gpu_program> program;
  std::vector<std::unique_ptr<program_slot>> slots; // null if the program has not run on a slot
  /// Kernels of the same launches that are compiled meanwhile; null if there are no better ones.
  std::shared_ptr<const kernel_batch> better;
};

/// How many positions a cache has with the new ones, and gets room for where it is made.
struct cache_room {
  int64_t positions = 0, room = 0;
};

struct installed_binding {
  /// What it runs in one way; empty until it is wanted.
  struct way {
    std::shared_ptr<installed_program> on;
    std::vector<std::byte> parameters;
    /// Kernels of better launches, likewise.
    std::shared_ptr<const kernel_batch> better;
  };

  bound_plan_ptr bound;
  device_index self = 0;
  std::shared_ptr<installed_layout> layout;
  /// What each of the layout's appends is to have room for; empty if some cache has no elements, or is too large to be
  /// bound.
  std::vector<cache_room> rooms;
  std::array<way, 2> ways; // by `cache_way`
  std::atomic<int64_t> in_flight{0};
};

/// See the top of this file.
class installations {
public:
  /// `most_cache_bytes`: how large a cache that grows in place may be; 0 if the device has not what that takes.
  installations(memory_pool& arenas, memory_pool& parameters, int64_t most_cache_bytes)
      : arenas_(arenas), parameters_(parameters), most_cache_bytes_(most_cache_bytes) {}

  /// Installs a bound plan as plan device `self`, for the way in which chunks ran last. Throws what `make_program`
  /// throws.
  void add(bound_plan_ptr bound, device_index self, const install_tools& tools);

  /// Returns an installed bound plan.
  installed_binding& find(uint64_t bound_plan);

  /// Returns whether a way of a binding is installed; if not, it wants `make_way` before it runs.
  static bool has_way(const installed_binding& binding, cache_way how) {
    return binding.ways.at(static_cast<size_t>(how)).on != nullptr;
  }
  void make_way(installed_binding& binding, cache_way how, const install_tools& tools);

  /// Returns whether kernels have been compiled that would run a way faster: then `improve_way` takes them.
  static bool is_outdated(const installed_binding& binding, cache_way how);
  /// Makes a way anew if the device has the memory; else it stays as it is from here on. Its chunks in flight end as
  /// they began.
  void improve_way(installed_binding& binding, cache_way how, const install_tools& tools);

  /// Returns whether slot `index` of the program that the binding runs in a way is there: if not, `slot_of` takes
  /// memory.
  static bool has_slot(const installed_binding& binding, cache_way how, uint32_t index) {
    const auto& slots = binding.ways.at(static_cast<size_t>(how)).on->slots;
    return index < slots.size() && slots[index];
  }
  /// Returns slot `index` of the program that the binding runs in a way, with the binding's parameters in it, made
  /// where it is not there yet.
  program_slot& slot_of(const installed_binding& binding, cache_way how, uint32_t index);

  /// Forgets a bound plan as soon as no chunk of it is in flight.
  void retire(uint64_t bound_plan);
  /// Ends retired bound plans, and programs that better ones have replaced, whose last chunk is complete.
  void forget_retired();

  int64_t count() const { return static_cast<int64_t>(bindings_.size()); }
  /// Returns the bytes of all slots' arenas.
  int64_t arena_bytes() const;

private:
  std::shared_ptr<installed_layout> layout_of(const bound_plan& bound, device_index self);
  std::vector<cache_room> rooms_of(const bound_plan& bound, const installed_layout& layout) const;
  layout_slot& slot_of(installed_layout& layout, uint32_t index, int64_t scratch_bytes);

  memory_pool& arenas_;
  memory_pool& parameters_;
  const int64_t most_cache_bytes_;
  cache_way last_ = cache_way::copied;                                    // in which a chunk ran that has the choice
  std::unordered_map<uint64_t, std::weak_ptr<installed_layout>> layouts_; // by id
  std::unordered_map<uint64_t, std::unique_ptr<installed_binding>> bindings_;
  std::vector<std::unique_ptr<installed_binding>> retired_;
  std::vector<std::shared_ptr<installed_program>> replaced_;
};

} // namespace troupe::vulkan
