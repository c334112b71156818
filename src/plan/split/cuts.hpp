// How values and nodes are cut when one run goes to a team of devices, a part each. Plain data and its arithmetic.
#pragma once

#include "ops/axes.hpp"
#include "plan/plan.hpp"

namespace troupe {

/// Boundaries of parts along a dim: device i of the team has the indices [bounds[i], bounds[i + 1]).
using part_bounds = symbolic_shape;

/// The devices that run one request together, and how much of it each takes.
struct split_team {
  /// Shares are counted in this many steps.
  static constexpr int64_t steps = 64;

  std::vector<device_index> devices;
  std::vector<int64_t> begin; // by device, in steps, ascending from 0; one more at the end, which is `steps`

  size_t size() const { return devices.size(); }
};

/// Returns the boundaries of `length` indices by the team's shares, at multiples of `grain`, a power of two.
part_bounds divide(const dim& length, const split_team& team, int64_t grain);

/// What the team has of a value.
struct value_cut {
  enum class kind : uint8_t {
    whole,   // the value as it is, on one device or on several
    parts,   // each device has a part of dim `axis`
    partial, // each device has all dims; the value is what `combined` makes of these
  };
  kind is = kind::whole;
  size_t axis = 0;
  part_bounds bounds;
  combination combined = combination::sum;
};

/// How a node runs.
struct node_cut {
  enum class kind : uint8_t {
    single,   // on one device
    repeated, // on each device that reads its results
    cut,      // a part on each device of the team, along `axis`
  };
  kind is = kind::single;
  std::optional<call_axis> axis;
  part_bounds bounds; // in indices of the axis; of the result if it is windowed
};

/// Part of what another device has: the indices [begin, end) of the part of the team's device `from`.
struct part_piece {
  size_t from = 0;
  dim begin, end;
};

/// Returns the pieces that make the indices [first, end) for device `i` of a value that is cut at `bounds`; nullopt if
/// it is not certain where they are. Adds to `nonnegative` what must not be negative at a binding for them to be there.
std::optional<std::vector<part_piece>> pieces_of(const part_bounds& bounds, size_t i, const dim& first, const dim& end,
                                                 std::vector<dim>& nonnegative);

/// The indices of a windowed operand that a part of the result is made of, and the padding beside them.
struct window_need {
  dim first, end;
  int64_t pad_begin = 0, pad_end = 0;
};

/// Returns what part `i` of a result that is cut at `bounds` needs of an operand of `length` indices with `pad_end`
/// after them; nullopt if some window is of padding alone or if this is not certain. See `pieces_of`.
std::optional<window_need> need_of(const axis_window& window, const part_bounds& bounds, size_t i, const dim& length,
                                   int64_t pad_end, std::vector<dim>& nonnegative);

} // namespace troupe
