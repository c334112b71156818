// One device's part of a layout, ready to be recorded: which pipelines run with which bytes, wave by wave.
//
// Everything here is the same for all arena slots and for every binding that runs the same kernels: kernels, weights,
// offsets. Operands have room for the layout's capacities. What depends on the binding is in the slot's parameter
// buffer (dynamic_calls.hpp); a slot adds memory and command buffers (chunk_recorder.hpp).
#pragma once

#include "ops/composed/input_conversion.hpp"
#include "vulkan/device_weights.hpp"
#include "vulkan/program_kernels.hpp"

#include <map>
#include <optional>

namespace troupe::vulkan {

/// Bytes that a launch binds: in the slot's arena, scratch memory or parameter buffer, in the chunk's staging memory,
/// in a cache of the run's that grows in place, or at a fixed place.
struct bound_range {
  enum class where : uint8_t { arena, scratch, parameters, counters, uploads, downloads, exchanged, cache, fixed };
  where place = where::arena;
  const allocation* fixed = nullptr;
  /// Within the arena, the scratch memory, the parameter buffer, the counters, the staging memory, the cache, or the
  /// allocation.
  int64_t offset = 0;
  int64_t bytes = 0;
  size_t cache = 0; // index into `dynamic_calls::appends`
  /// Where the bytes are in the staging memory for uploads if the host narrows an input; -1 if they are not
  /// such an input's.
  int64_t narrowed_at = -1;

  /// Makes it begin later, wherever it is read.
  void advance(int64_t by) {
    offset += by;
    narrowed_at += narrowed_at >= 0 ? by : 0;
  }
};

/// A dispatch whose kernel and places are known.
struct installed_launch {
  pipeline_key key;
  node_id call = -1;
  std::vector<node_id> others; // that it computes too
  std::string kernel;          // name of the alternative, for profiles
  /// The parameter block: in `gpu_program::constants`, or in the slot's parameter buffer if the node is dynamic.
  bound_range params;
  std::array<uint32_t, 3> groups{1, 1, 1};
  /// Where the group counts of a launch that has no fixed ones are in the slot's parameter buffer; -1 where they are
  /// `groups`.
  int64_t groups_at = -1;
  std::vector<bound_range> buffers;
  /// Whether everything before must be complete: the launch begins a wave or a step.
  bool barrier_before = false;
  /// Whether it writes a part of a tensor whose other parts may be written at the same time.
  bool writes_part = false;
  /// Whether it narrows an input, which the host can do instead (`installed_transfer::narrowed`).
  bool narrows = false;
};

/// A value that enters or leaves a chunk.
struct installed_transfer {
  value_id value = no_value;
  dtype type = dtype::undefined;
  bound_range place; // with room for the capacities
  /// Offset in the chunk's staging memory; -1 for a large value that is copied straight from or to the host's memory.
  int64_t staged = 0;
  /// Where an input goes as what the host makes of it while it writes it; nullopt if it is needed as it is.
  std::optional<bound_range> narrowed;
  input_conversion conversion{}; // what that is
  /// Whether it is a cache that grows where the run's value is: nothing is copied.
  bool in_place = false;
  /// Whether kernels use it where it is staged (staged_values.hpp), and what the host has made of it.
  bool used_staged = false, narrowed_used_staged = false;
  /// Whether peers alone read it, where it is staged: in the chunk's exchanged memory.
  bool exchanged = false;

  bool is_direct() const { return staged < 0; }
  /// Returns the bytes that a binding moves.
  int64_t bytes(const bound_plan& bound) const { return bytes_of(type, volume(bound.dims[value])); }
};

struct installed_chunk {
  std::vector<installed_launch> launches;
  std::vector<installed_transfer> uploads, downloads;
  int64_t upload_bytes = 0, download_bytes = 0; // staging memory
  int64_t exchanged_bytes = 0;                  // the same, of the host's memory, which peers import
  bool narrows = false;                         // whether some upload can be narrowed by the host
  /// First and last of this device's chunks in the segment: no other chunk of the execution touches the arena before,
  /// or after.
  bool first = false, last = false;
  /// Whether the next of them waits for no other device that may wait for this one.
  bool next_is_free = false;
};

/// See the top of this file.
struct gpu_program {
  /// The launches of each class of dynamic nodes that this was made for; scratch buffers have room for more.
  std::vector<launch_list> choices;
  parameter_table parameters;
  std::map<chunk_id, installed_chunk> chunks;
  std::vector<device_weights::handle> weights;
  std::vector<pipelines::handle> kernels; // those that the launches run
  std::vector<wanted_kernel> better;      // that were not there; they would do the same in less time
  /// Parameter blocks, which kernels may hold as constants too, then known values, where they are the same in all
  /// bindings.
  std::shared_ptr<allocation> constants = std::make_shared<allocation>();
  int64_t scratch_bytes = 0;
  int64_t counter_bytes = 0; // of each call that has counters its own: calls of a wave run together
};

/// Values of at least this size are copied directly if the device can: below, importing costs more than a memcpy.
inline constexpr int64_t direct_copy_bytes = 64 * 1024;
/// A caller's inputs below this are written straight to the GPU's memory, if the host can: it mostly has to copy them
/// in any case.
inline constexpr int64_t written_input_bytes = int64_t{1} << 20;
/// What installing needs of a device.
struct install_tools {
  memory_pool& memory;
  uploader& uploads;
  device_weights& weights;
  kernel_source kernels;
  bool direct_copies = false;  // whether large values are copied straight from and to the host's memory
  bool writes_inputs = false;  // whether staging memory is the GPU's own: see written_input_bytes
  bool stages_results = false; // whether results are staged: not if the arena is the host's memory
  bool copies_rows = false;    // whether the device can run the kernel that copies (row_copies.hpp)
};

/// Makes the program of plan device `self` for `bound` and other bindings of its layout: chooses kernels (`choices`:
/// those of the dynamic calls), compiles them, and uploads weights and constants. Throws `errc::unsupported` if a node
/// has no kernel for its concrete dims, and what memory and drivers throw.
std::unique_ptr<gpu_program> make_program(const bound_plan& bound, device_index self, const dynamic_calls& calls,
                                          std::vector<launch_list> choices, const install_tools& tools);

} // namespace troupe::vulkan
