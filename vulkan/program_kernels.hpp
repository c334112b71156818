// Which kernels a program runs: the way of each node, and which words of its parameters are constants of the code.
//
// Drivers take long to compile, so a run need not wait for the best kernels (`kernel_source::compiles_later`): a call
// whose dims may vary from run to run takes the fastest way whose kernels are there, and waits only if there is none. A
// call that is the same in all bindings of the layout, but not of the plan, takes kernels that other bindings can use
// too. What would be better is compiled meanwhile, and then the program is made anew (`installations::improve_way`).
#pragma once

#include "vulkan/dynamic_calls.hpp"
#include "vulkan/pipelines.hpp"

namespace troupe::vulkan {

/// Which words of its parameter block are constants of a kernel.
enum class constant_words : uint8_t {
  none,
  fixed, // those that no dim decides which varies (`launch::fixed_words`)
  all,   // but for those that kernels read in any case (`launch::read_words`)
};

/// Returns the key of a launch's kernel.
pipeline_key key_of(const launch& l, constant_words constants);

/// If a program has more kernels than this, their parameters are not made constants: as many kernels would have to be
/// compiled, where without constants a few suffice.
inline constexpr size_t most_constant_blocks = 256;

/// A device's kernels, and how programs are to choose among them.
struct kernel_source {
  pipelines& compiled;
  kernel_selection selection = {};
  /// Whether parameters that are the same in all bindings are constants of kernels (see most_constant_blocks).
  bool constant_blocks = false;
  bool compiles_later = false; // see the top of this file

  /// The constants of calls that are dynamic in a layout.
  constant_words dynamic_constants() const { return constant_blocks ? constant_words::fixed : constant_words::none; }
  /// Returns whether all kernels of a way are there; in place of those of all words, those of the fixed ones do.
  bool is_ready(const launch_list& way, constant_words constants) const;
  /// Returns how to take a way for calls whose kernels have such constants; `missed` gets those that are not there.
  kernel_selection selection_for(constant_words constants, std::vector<missed_way>& missed) const;
  /// Adds the kernels of ways that were missed.
  static void want(const std::vector<missed_way>& missed, constant_words constants, std::vector<wanted_kernel>& wanted);
};

/// The choices for one program (see the top of this file).
class program_kernels {
public:
  /// The launch lists of one chunk's nodes, in their order; none for what launches nothing.
  using chunk_ways = std::vector<launch_list>;

  /// `choices`: how the classes of dynamic calls run. All live longer.
  program_kernels(const bound_plan& bound, device_index self, const dynamic_calls& calls,
                  std::span<const launch_list> choices, const kernel_source& source);

  /// Chooses how the nodes of these chunks run, and the keys of their kernels. Throws what `choose_kernel` throws.
  std::vector<chunk_ways> choose(std::span<const chunk_id> chunks);

  /// Returns the keys of all kernels.
  const std::vector<pipeline_key>& keys() const { return keys_; }
  /// Returns the key of the kernel that a launch of node `n` runs.
  pipeline_key key_in_use(const launch& l, node_id n) const;
  /// Returns the kernels that would do the same in less time, but are not there.
  std::vector<wanted_kernel> take_better() { return std::move(better_); }

private:
  chunk_ways ways_of(const chunk& c);
  launch_list way_of(node_id id);
  void choose_keys(std::span<const chunk_id> chunks, std::span<const chunk_ways> chosen);

  bool is_dynamic(node_id n) const { return calls_.class_of(n) != dynamic_calls::none; }
  bool may_vary(node_id id) const;
  bool waits_for_all_words(node_id n) const;
  constant_words words_of_static() const { return constant_blocks_ ? constant_words::all : constant_words::none; }
  pipeline_key best_key(const launch& l, node_id n) const;

  const bound_plan& bound_;
  const device_index self_;
  const dynamic_calls& calls_;
  const std::span<const launch_list> choices_;
  const kernel_source& source_;
  const plan& plan_;
  const graph& program_;
  bool constant_blocks_;
  std::vector<missed_way> missed_; // of calls that are not dynamic
  const kernel_selection static_selection_;
  std::set<pipeline_key> later_; // best keys that are not there yet
  std::vector<pipeline_key> keys_;
  std::vector<wanted_kernel> better_;
};

} // namespace troupe::vulkan
