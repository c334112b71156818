// Where the values of a segment are in the devices' arenas: laid out for capacities of the symbols, shared by all
// bindings that fit.
//
// Each symbol of a layout is either fixed, and has this value in every binding, or varies up to its capacity. A binding
// fits if every value takes at most the bytes that it has at the capacities (dims need not grow with the symbols).
// Bytes are shared in place only by values whose dims are equal in every binding, not merely at the capacities.
//
// A layout is immutable. Devices give out memory by its id: executions of different bindings use the same arena slots.
#pragma once

#include "plan/plan.hpp"

#include <algorithm>

namespace troupe {

/// Where values are in an arena: byte offsets, multiples of `arena_alignment`. Holds the values that are in it, not all
/// of the plan: of thousands of devices each has few.
class arena_offsets {
public:
  /// Returns a value's offset; -1 if it is not in the arena.
  int64_t operator[](value_id v) const {
    const auto found = find(v);
    return found != offsets_.end() && found->first == v ? found->second : -1;
  }
  /// Sets a value's offset; -1 takes it out.
  void set(value_id v, int64_t offset) {
    std::erase_if(offsets_, [v](const auto& pair) { return pair.first == v; });
    if (offset >= 0)
      offsets_.insert(find(v), {v, offset});
  }
  /// Takes pairs of value and offset, each value once, in any order.
  void assign(std::vector<std::pair<value_id, int64_t>> pairs) {
    offsets_ = std::move(pairs);
    std::sort(offsets_.begin(), offsets_.end());
  }

  /// The values that are in the arena, ascending, with their offsets.
  auto begin() const { return offsets_.begin(); }
  auto end() const { return offsets_.end(); }

private:
  std::vector<std::pair<value_id, int64_t>>::const_iterator find(value_id v) const {
    return std::lower_bound(offsets_.begin(), offsets_.end(), v,
                            [](const auto& pair, value_id x) { return pair.first < x; });
  }

  std::vector<std::pair<value_id, int64_t>> offsets_; // by value
};

/// Arena layout of one device for one segment.
struct device_memory {
  int64_t arena_bytes = 0;
  /// Not in this device's arena are weights, host-known values, views (`root_on` says whose bytes they use), strings,
  /// values that the kernel allocates. On a device with host memory also uploads, which keep the caller's bytes, and
  /// roots of downloads: the device allocates a tensor of its own for a root that it produces, because the bytes leave
  /// it.
  arena_offsets offset;
  /// The most bytes that are live in the arena at one position (wave or node): what no layout can go below.
  int64_t peak_bytes = 0;
  /// Sum of the sizes of all arena values without reuse, for the report.
  int64_t bytes_without_reuse = 0;
  /// Bytes of uploads and of roots of downloads that are not in the arena.
  int64_t transfer_bytes = 0;
};

/// What a layout holds of one symbol.
struct symbol_capacity {
  std::string name;
  int64_t capacity = 0; // the only value if the symbol is fixed
  bool varies = false;
};

/// See the top of this file.
struct arena_layout {
  /// Unique in the process; devices know arena slots by it.
  uint64_t id = 0;
  std::shared_ptr<const plan> source;
  uint32_t segment = 0;
  /// Those that dims of this and earlier segments mention.
  std::vector<symbol_capacity> symbols;
  std::vector<device_memory> memory; // by device
  // By value; empty, 0 and false for values of later segments.
  std::vector<shape> dims;    // at the capacities
  std::vector<int64_t> bytes; // at the capacities
  std::vector<bool> varies;   // whether dims or host-known elements depend on a symbol that varies
};

/// Returns the bytes that one execution takes on device `d`: an arena, inputs and outputs.
int64_t slot_bytes(const arena_layout& l, device_index d);
/// Returns the bytes that device `d` needs for the layout: weights and one slot.
int64_t bytes_needed(const arena_layout& l, device_index d);

using arena_layout_ptr = std::shared_ptr<const arena_layout>;

/// Devices lack memory for a segment: kind `errc::out_of_memory`, a message with all figures.
class memory_shortage : public error {
public:
  memory_shortage(const std::string& message, std::vector<int64_t> needed)
      : error(errc::out_of_memory, message), needed_(std::move(needed)) {}

  /// Bytes needed, by device of the plan, those with room included.
  const std::vector<int64_t>& needed() const { return needed_; }

private:
  std::vector<int64_t> needed_;
};

/// Throws `memory_shortage`, with region, bytes needed and bytes allowed, if some device has less than the layout and
/// `taken` need; `taken`: bytes that others use meanwhile, by device, empty for none.
void check_memory(const arena_layout& l, std::span<const int64_t> taken = {});

/// Returns the symbols that dims of `segment` and earlier ones mention, each once.
std::vector<std::string> symbols_of(const plan& p, uint32_t segment);

/// Lays `segment` of `p` out for these values of the symbols: capacities of those in `varying`, the only values of the
/// others. Throws `errc::invalid_input` if dims do not fit together, and what `check_memory` throws.
arena_layout_ptr make_layout(std::shared_ptr<const plan> p, uint32_t segment, const bindings& capacities,
                             const std::vector<std::string>& varying = {});

} // namespace troupe
