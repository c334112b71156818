// One device's part of a bound plan, ready to run: kernels, operand positions, and memory for each arena slot.
#pragma once

#include "cpu/buffer_pool.hpp"
#include "cpu/kernel_list.hpp"
#include "device/device.hpp"
#include "plan/bind/bound_plan.hpp"

#include <unordered_map>

namespace troupe {

/// A kernel and where its operands are.
struct prepared_step {
  kernel_ptr run;
  std::string_view kernel_name;
  node_id call = -1;
  /// Range in `prepared_chunk::operands`: inputs, then outputs.
  uint32_t first_operand = 0;
  uint32_t inputs = 0, outputs = 0;
  bool is_small = false; // for one thread (see `thread_limit`)
};

/// A value that gets a tensor of its own in every run: it leaves the device, or holds strings.
struct fresh_value {
  value_id value = no_value;
  dtype type = dtype::undefined;
  shape dims;
};

struct prepared_chunk {
  std::vector<prepared_step> steps;
  std::vector<value_id> operands; // the values whose bytes are meant (`root_on`); no_value for null
  std::vector<fresh_value> fresh; // before the first step
  std::vector<value_id> uploads;
  std::vector<fresh_value> downloads;
  std::vector<value_id> download_roots; // by download
  /// Values with tensors of their own that no later chunk of this device reads.
  std::vector<value_id> release;
};

/// What one execution at a time uses.
struct arena_slot {
  execution_id execution = 0; // the last one
  std::shared_ptr<void> arena;
  std::vector<void*> address;                // by value
  std::unordered_map<value_id, tensor> held; // uploads, fresh values and what kernels allocated
};

/// The arenas of a layout's slots, shared by the bound plans that have it; null if a slot has not been used.
using layout_arenas = std::vector<std::shared_ptr<void>>;

struct prepared_plan {
  bound_plan_ptr bound;
  device_index self = 0;
  std::unordered_map<chunk_id, prepared_chunk> chunks;
  /// Addresses that are the same in every slot: constants and host-known values, by value.
  std::vector<void*> fixed_address;
  std::unordered_map<value_id, weight_cache::handle> weights;
  std::shared_ptr<layout_arenas> arenas;
  std::vector<std::unique_ptr<arena_slot>> slots; // null if this bound plan has not run on a slot
  size_t max_operands = 0;                        // of a step
};

/// Chooses and prepares kernels for all chunks of device `self` in `bound`'s segment. Throws what kernels throw.
std::unique_ptr<prepared_plan> prepare_plan(bound_plan_ptr bound, device_index self, kernel_resources& resources);

/// Returns slot `index` of `p`, made where it is not there yet; `poison` fills fresh memory (see cpu_device_options).
arena_slot& slot_of(prepared_plan& p, uint32_t index, bool poison);

} // namespace troupe
