// The barrier planner: items that may run together between two barriers form a wave.
//
// Waves follow from data hazards alone: an item that reads what another writes, or overwrites what another reads or
// writes, is in a later wave. An item's wave is the longest path of hazards before it, so the number of waves is
// minimal. Hazards and waves are kept as CSR arrays in scratch that the caller owns: it is reused and never shrinks, so
// planning does not allocate once the scratch has grown.
//
// Errors are one kind each: `errc::invalid_argument` for an index out of range and for sizes over 2^32 − 1,
// `errc::invalid_model` for a cycle, `errc::out_of_memory` if the scratch cannot grow.
#pragma once

#include "plan/plan.hpp"

#include <functional>

namespace troupe {

/// `before` must be complete, after a barrier, when `after` starts.
struct hazard {
  uint32_t before = 0, after = 0;
};

/// What items read and write, in program order, as CSR: item i reads reads[read_begin[i] … read_begin[i + 1]).
struct item_accesses {
  std::vector<uint32_t> read_begin{0}, reads;
  std::vector<uint32_t> write_begin{0}, writes;

  uint32_t count() const { return static_cast<uint32_t>(read_begin.size() - 1); }
  void clear();
  void add_read(uint32_t resource) { reads.push_back(resource); }
  void add_write(uint32_t resource) { writes.push_back(resource); }
  /// Ends the current item.
  void end_item();
};

/// Waves of items, as CSR: wave w holds items[wave_begin[w] … wave_begin[w + 1]), ascending.
struct wave_plan {
  std::vector<uint32_t> wave_of; // by item
  std::vector<uint32_t> wave_begin, items;

  uint32_t wave_count() const { return wave_begin.empty() ? 0 : static_cast<uint32_t>(wave_begin.size() - 1); }
  uint32_t barrier_count() const { return wave_count() > 1 ? wave_count() - 1 : 0; }
};

/// Working memory of the planner (see the top of this file).
struct wave_scratch {
  item_accesses accesses;
  std::vector<hazard> hazards;
  std::vector<uint32_t> edge_begin, edges, missing, queue;
  std::vector<uint32_t> last_writer, reader_head, reader_next, reader_item;
  std::vector<uint32_t> resource_of, numbered; // by value, and its inverse
};

/// Names an item in messages.
using item_namer = std::function<std::string(uint32_t item)>;

/// Appends to `hazards` those that follow from the order of `accesses` over `resource_count` resources: read after
/// write, write after read, write after write.
void find_hazards(const item_accesses& accesses, uint32_t resource_count, wave_scratch& scratch,
                  std::vector<hazard>& hazards, const item_namer& name);

/// Plans the waves of `item_count` items under `hazards`, in any order, repeats allowed.
void plan_waves(uint32_t item_count, std::span<const hazard> hazards, wave_scratch& scratch, wave_plan& out,
                const item_namer& name);

/// Plans the waves of a chunk's nodes: item i is node i of the chunk. Views and joined Concats launch nothing and wait
/// for nothing: they are in the last wave of what makes their bytes, else in the first. What reads a joined Concat's
/// output waits for all its parts, whose writers do not wait for each other.
void plan_waves(const plan& p, const chunk& c, wave_scratch& scratch, wave_plan& out);

/// Orders the nodes of every chunk of a device without host memory by wave, stably, and sets `chunk::wave_begin`. Needs
/// `chunk_of_node`, `producer` and `storage`.
void order_by_wave(plan& p);

/// Returns the launching nodes (no views, no joined Concats) of a chunk's widest wave.
uint32_t widest_wave(const plan& p, const chunk& c);

/// Scratch memory of a chunk's nodes, which those of one wave use at the same time.
struct scratch_plan {
  std::vector<uint32_t> wave_begin; // like chunk::wave_begin; waves are split if their scratch exceeded the budget
  std::vector<int64_t> offset;      // by position in chunk::nodes
  int64_t bytes = 0;                // of the region: what the neediest wave takes
};

/// Plans scratch memory: `needed` is by position in chunk::nodes, in bytes; offsets are multiples of what all of
/// `needed` are multiples of. A split wave's parts run one after the other, a barrier between them; lifetimes stay
/// right, since they cover the whole wave. Throws `errc::out_of_memory` if a node alone needs more than `budget`, which
/// may be 0.
scratch_plan plan_scratch(std::span<const uint32_t> wave_begin, std::span<const int64_t> needed, int64_t budget,
                          const item_namer& name);

} // namespace troupe
