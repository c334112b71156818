// GPU kernel launches as plain data: what an operator asks a GPU to do, without any GPU call.
//
// A launch rule (launch_table.hpp) turns a call into alternatives, best first. Each is a list of launches: a shader of
// shaders/, its specialisation constants, a block of parameters, groups, and which ranges of which operands it binds.
// The vulkan device records them; tests run every alternative against the reference kernel. An empty list means that
// the GPU cannot run the call, and planning places the node elsewhere. Whether a call can run must not depend on
// symbolic dims.
//
// An output may be a part of a larger tensor (`row_part`): rules that cannot write so have no launches for it
// (`launches_of`), and planning gives it bytes of its own.
//
// What a shader sees (shaders/README.md): set 0, binding 0 is the parameter block (parameters.hpp); bindings 1, 2 … are
// the launch's bindings as storage buffers. A launch reads and writes nothing else.
#pragma once

#include "ops/call.hpp"

#include <array>

namespace troupe {

/// What kernel choice needs to know of a GPU: plain data, copied freely, fabricated in tests.
struct gpu_features {
  /// Invocations that run in lockstep.
  uint32_t subgroup_size = 32;
  uint32_t max_group_size = 128; // invocations of a workgroup
  uint32_t shared_bytes = 16384; // memory of a workgroup
  std::array<uint32_t, 3> max_groups{65535, 65535, 65535};
  /// Longest range that one storage-buffer binding may have, in bytes.
  int64_t max_binding_bytes = int64_t{1} << 27;
  /// Binding offsets must be multiples of this.
  int64_t binding_alignment = 256;
  bool float16 = false; // 16-bit storage and arithmetic, of integers too
  bool int8 = false;    // 8-bit storage and arithmetic
  bool int64 = false;   // 64-bit integer arithmetic
  bool float64 = false; // arithmetic of doubles
  bool subgroup_arithmetic = false;
  bool subgroup_shuffle = false;
  /// Subgroup-wide matrix products 16 × 16 × 16 of float16 with float32 sums (VK_KHR_cooperative_matrix).
  bool cooperative_matrix = false;
  /// Such products are more than six times as fast as scalar arithmetic of float32, so that three products of float16
  /// may take the place of one of float32.
  bool strong_matrices = false;
  /// Matrices of a whole group of 128 or 256, float16 with float32 sums, whose sides are multiples of 32, with all that
  /// shaders/group_matrix.glsl and attention_matrices.comp need (VK_NV_cooperative_matrix2).
  bool group_matrices = false;
  /// Products of four packed bytes by one instruction (VK_KHR_shader_integer_dot_product).
  bool integer_dot = false;
  /// Subgroup-wide matrix products 16 × 16 × 32 of int8 with int32 sums (VK_KHR_cooperative_matrix).
  bool byte_matrices = false;
  /// Multiprocessors, or a guess: how many groups it takes to fill the device.
  uint32_t units = 16;

  bool operator==(const gpu_features&) const = default;
};

/// Which ways to run a call are listed: one of each kernel, all that are worth measuring (`troupe profile --tune`), or
/// every one, however slow, for a device that has few kernels as yet.
enum class way_range : uint8_t { usual, all, every };

/// A call to be run on a GPU.
struct gpu_call {
  const attributes& attrs;
  std::vector<operand> inputs;
  std::vector<operand> outputs;
  const gpu_features& gpu;
  way_range ways = way_range::usual;
  /// Of every way: the only tiles to list (`tiling::constants`); empty: all.
  std::span<const std::vector<uint32_t>> tiles = {};

  bool has_input(size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i].present(); }
};

/// An input that is absent.
inline constexpr size_t no_input = SIZE_MAX;

/// Returns input `i` of a call if it is there, else `no_input`.
size_t present(const gpu_call& call, size_t i);
/// Whether input `i` is absent, or has that type and as many elements.
bool has_type(const gpu_call& call, size_t i, dtype type, int64_t size);

/// Whether the channels of an operand's pixels are neighbours where that is not its plain layout too.
bool lies_last(const operand& o);
/// Whether all inputs have the type of input 0.
bool same_types(const gpu_call& call);

/// A byte range of an operand, of a packed weight, of scratch memory or of counters.
struct launch_binding {
  enum class source : uint8_t { input, output, packed, scratch, counters };
  source from = source::input;
  uint32_t index = 0; // operand, or index into `launch_list::packed` or `scratch`; 0 of counters
  int64_t offset = 0; // a multiple of gpu_features::binding_alignment
  int64_t bytes = 0;
  bool written = false;
};

/// One dispatch.
struct launch {
  std::string shader;              // "matmul.f32": stem and variant
  std::vector<uint32_t> constants; // specialisation constants, ids 0, 1 …; floats as their bits
  std::vector<uint32_t> params;    // words_of a parameter block, at most 128
  /// How many words at its end kernels read, even where they are compiled for a block: launches that differ there alone
  /// share a pipeline.
  int64_t read_words = 0;
  /// How many words at its beginning no dim decides that grows from run to run: where some dims vary, kernels are
  /// compiled for these words alone, and a binding in which they differ has kernels of its own.
  int64_t fixed_words = 0;
  std::array<uint32_t, 3> groups{1, 1, 1};
  /// Whether no such dim decides the groups either: then they are recorded. A submission takes longer by each launch
  /// that reads them from memory (0.09 µs and more with NVIDIA's driver, which ends a piece of its commands there).
  bool fixed_groups = false;
  std::vector<launch_binding> bindings;
  /// Launches of one call with equal steps may run at the same time; a step starts when those before are complete.
  uint32_t step = 0;
};

/// One way to run a call.
struct launch_list {
  std::string name; // of the kernel, for profiles and tests: "matmul.cooperative"
  std::vector<launch> launches;
  std::vector<weight_ptr> packed; // constant inputs in the order that the kernel wants
  std::vector<int64_t> scratch;   // bytes of each scratch buffer
  int64_t counters = 0; // bytes of words that are zero when the launch that counts begins, and that it leaves zero
  double time = 0;      // predicted, in µs, but for what a launch costs; 0 where nothing predicts it
  std::string tile;     // of a product, for people; empty unless all ways are wanted

  /// Whether launches read an output again that they have written.
  bool reads_outputs() const;
};

using launch_lists = std::vector<launch_list>;

/// Builds a launch_list; the bindings' ranges are whole operands unless they are narrowed, and of an output that is a
/// part of a larger tensor all of that.
class launch_builder {
public:
  launch_builder(const gpu_call& call, std::string name) : call_(call) { list_.name = std::move(name); }

  /// Bindings for `add`.
  launch_binding in(size_t i) const;
  launch_binding out(size_t i) const;
  /// Constant input `i`, packed (ops/pack.hpp).
  launch_binding packed(size_t i, shape dims, shape order, shape sizes = {});
  /// A weight made of constant inputs.
  launch_binding made(weight_ptr w);
  /// New scratch memory.
  launch_binding scratch(int64_t bytes);
  /// The only counters of the list, for one of its launches.
  launch_binding counters(int64_t count);

  /// Adds a launch to the current step; change it through the reference until the next call.
  launch& add(std::string shader, std::array<uint32_t, 3> groups, std::vector<launch_binding> bindings);
  /// Launches added from here on wait for those before.
  void next_step() { ++step_; }

  /// Returns the list; nullopt if a binding, group count or parameter block is beyond the device's limits.
  std::optional<launch_list> finish();

private:
  const gpu_call& call_;
  launch_list list_;
  uint32_t step_ = 0;
};

/// Appends `more` to `lists`.
void add_lists(launch_lists& lists, launch_lists more);

/// Returns the one list that `b` built, or none if it went beyond the device's limits.
launch_lists single_list(launch_builder& b);

/// Returns `binding`, marked as written.
launch_binding written(launch_binding binding);
/// Returns `binding`, marked as read only: an output that an earlier step of the call writes.
launch_binding reading(launch_binding binding);
/// Returns the part of `binding` from `offset` on, `bytes` long.
launch_binding part_of(launch_binding binding, int64_t offset, int64_t bytes);

/// Returns the groups that cover `count` invocations in groups of `group_size`, spread over x and y so that no limit is
/// passed. Shaders turn them back into one index with `flat_group()` (shaders/common.glsl).
std::array<uint32_t, 3> flat_groups(int64_t count, int64_t group_size, const gpu_features& gpu);

/// Returns the variant name for arithmetic on `type` ("f32", "f16", "f64", "i32", "i16", "u8" …); nullopt if the GPU
/// cannot compute with or store it. bool is "u8".
std::optional<std::string> arithmetic_variant(dtype type, const gpu_features& gpu);
/// The same for kernels that compute in float32: "f32" or "f16", nullopt for all other types.
std::optional<std::string> float_variant(dtype type, const gpu_features& gpu);
/// Returns the variant name for moving elements of `type` ("w8", "w16", "w32", "w64"); nullopt for strings, packed
/// types and what the GPU cannot store.
std::optional<std::string> movement_variant(dtype type, const gpu_features& gpu);

/// Kernels count an operand's elements in 32 bits.
inline constexpr int64_t index_limit = int64_t{1} << 31;

/// Returns `value` as a word of parameters or constants.
inline uint32_t word(int64_t value) {
  return static_cast<uint32_t>(value);
}
/// Returns the bits of a float as a word of parameters or constants.
uint32_t float_bits(float value);

} // namespace troupe
