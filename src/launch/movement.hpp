// What the launch rules of operators that move elements share: a call seen as the reference kernels see it, and strided
// copies as dispatches.
//
// Elements are moved as words of 8 … 128 bits, whatever their type. Neighbouring elements that stay together are moved
// as one wider word: fewer invocations, and no need of 8- or 16-bit storage.
#pragma once

#include "launch/launch.hpp"
#include "ops/operand_copy.hpp"

namespace troupe {

/// A call without data, for what reference kernels find out from dims and host-known elements.
class dry_call {
public:
  explicit dry_call(const gpu_call& call);
  dry_call(const dry_call&) = delete; // the context refers to the views
  dry_call& operator=(const dry_call&) = delete;

  /// Views have dims, and data if the host knows the elements; no other data may be read.
  kernel_context& context() { return context_; }

private:
  std::vector<tensor> known_;
  std::vector<const_view> inputs_;
  std::vector<mutable_view> outputs_;
  kernel_context context_;
};

/// Launches never depend on the elements of constants that have more than this: they are weights, of which only the
/// place matters.
inline constexpr int64_t max_read_elements = int64_t{1} << 16;

/// Returns the elements of an operand that the host knows (constants of `max_read_elements` too), an undefined tensor
/// for others.
tensor known_elements(const operand& o);

/// Returns the bits of a movable type's elements; nullopt for strings and packed types.
std::optional<int> element_bits(dtype type);

/// Returns the variant that moves words of `bits`; nullopt if the GPU cannot store them.
std::optional<std::string> word_variant(int bits, const gpu_features& gpu);

/// Returns how many elements of `bits` can be moved as one word if all of `extents` (sizes, steps, offsets that must be
/// whole words) are in elements: 1, 2, 4, 8 or 16.
int64_t elements_per_word(int bits, std::initializer_list<int64_t> extents);

/// How far indices in a tensor of integers are apart in 32-bit words, the low word first; nullopt unless the type is
/// int32 or int64.
std::optional<uint32_t> index_words(const operand& indices);

/// Whether shaders can count indices of an axis with `bound` elements that `picks` results are taken from.
bool is_countable(int64_t bound, int64_t picks);

/// Throws `errc::invalid_input` if the host knows indices and one of them is out of [-bound, bound): such a call is
/// left to the CPU, whose kernel says what is wrong.
void check_known_indices(const operand& indices, int64_t bound);

/// Longest list of axes that the copying shaders take.
inline constexpr size_t max_copy_axes = 14;

/// Returns copies as launches: tiled transposition first if that pays, then element by element. Copies that reach
/// further than a binding may are cut; those of one output, which follow one another, are a step each. Empty if the GPU
/// cannot run them.
launch_lists copy_launches(const gpu_call& call, std::string_view name, const std::vector<operand_copy>& copies);

/// Adds launches of one copy to the current step; returns whether the GPU can run them. Copies to the same output want
/// a step each.
bool add_copy(launch_builder& b, const gpu_call& call, const operand_copy& copy);

/// Adds a launch that copies input `input` to output `output` as it is.
bool add_whole_copy(launch_builder& b, const gpu_call& call, size_t input, size_t output);

} // namespace troupe
