// Plans and bindings as bytes.
//
// What runs on other hosts names chunks, nodes and values by id, so the plan there must be the same down to every id.
// Only what its chunks follow from travels: the program with its nodes placed, ordered and cut, and the devices. The
// other host derives the rest by the planner's own code (`restore_plan`), and a fingerprint of the result is compared:
// versions that would derive another plan refuse to work together.
//
// The bodies of control flow do not travel with the plan around them; where they run they are plans like any other.
// Values cross from and to control-flow nodes as from and to the caller.
#pragma once

#include "plan/bind/bound_plan.hpp"
#include "wire/weights.hpp"

namespace troupe::wire {

/// Returns a plan's message; the content hashes of large leaves are asked for. Throws what computing small weights
/// throws.
std::vector<uint8_t> encode_plan(const plan& p, const content_hashes& content_of);

/// A plan from another host. Its leaves' bytes are to be filled in before a device runs what reads them; nothing else
/// ever changes.
struct decoded_plan {
  std::shared_ptr<const plan> source;
  open_leaves leaves;
  hash128 fingerprint; // as it came
  /// Nodes whose dims each binding compares with what inference gives.
  std::vector<node_id> open_nodes;
};

/// Throws `errc::invalid_plan` if another plan is derived here than there, else what says that the bytes are not
/// a plan's.
decoded_plan decode_plan(std::span<const uint8_t> bytes);
/// The same, whatever the fingerprint that came with the plan: for tests, since who damages a plan on purpose makes one
/// that fits.
decoded_plan derive_plan(std::span<const uint8_t> bytes);

/// Gives a leaf its bytes. Throws `errc::invalid_input` if they have another type or other dims.
void fill(weight& leaf, tensor bytes);

/// Returns the content hashes of the leaves without bytes that chunks of a device read, each once.
std::vector<hash128> leaves_needed(const plan& p, device_index device);

/// Returns a hash of everything that was derived and that devices count on.
hash128 fingerprint(const plan& p);

/// Layouts by the ids that they have on the other host.
using layout_table = std::unordered_map<uint64_t, arena_layout_ptr>;

std::vector<uint8_t> encode_binding(const bound_plan& bound);

struct decoded_binding {
  uint64_t id = 0; // on the other host
  bound_plan_ptr bound;
};

/// Binds a plan as it was bound there, in the layout of the same id, which is made and added if `layouts` does not have
/// it. Throws `errc::invalid_input`, and what `make_layout` throws.
decoded_binding decode_binding(std::span<const uint8_t> bytes, const decoded_plan& p, layout_table& layouts);

} // namespace troupe::wire
