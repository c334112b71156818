// The axes of a call: what becomes of its results if operands are permuted, cut or split along a dim.
//
// An axis is an index that runs through dims of operands and results together. A product of matrices has three: the
// rows of A and of the result, the columns of B and of the result, and the one that is summed over. Operators state
// theirs by `op_def::axes`; a dim on no axis is mixed with others, and nothing is known of its parts.
//
// The same idea: the index letters of an Einsum, and the AxesMapping of tract (github.com/sonos/tract).
#pragma once

#include "ops/op.hpp"

#include <algorithm>

namespace troupe {

struct window_spec;

enum class axis_kind : uint8_t {
  mapped,   // parts of the operands along it make the same parts of the results
  reduced,  // no result has it: the results of parts are combined
  windowed, // index o of a result is made of a window of operand 0's indices
};

/// How the results of a reduced axis's parts are combined.
enum class combination : uint8_t { sum, product, min, max };

/// Index o reads the indices o · stride - begin + k · dilation, 0 ≤ k < size; those outside of the operand are padding.
struct axis_window {
  int64_t size = 1, stride = 1, dilation = 1, begin = 0;
};

/// Where an axis is in an operand or result: each index is `unit` neighbours along dim `axis`.
struct axis_place {
  size_t axis = 0;
  dim unit = 1;
};

/// One axis of a call.
struct call_axis {
  axis_kind kind = axis_kind::mapped;
  std::vector<std::optional<axis_place>> inputs;  // by operand; nullopt: each part reads all of the operand
  std::vector<std::optional<axis_place>> outputs; // by result; nullopt: each part makes all of the result
  /// Elements of host-known operands, which are there, that say how long result 0 is along the axis: (operand,
  /// element).
  std::vector<std::pair<size_t, size_t>> sizes;
  combination combined = combination::sum; // if reduced
  axis_window window;                      // if windowed
};

/// The axes of one call, as `op_def::axes` adds them. Types, dims and known elements are those that inference knows.
class call_axes {
public:
  /// Operand or result `of` has an axis at dim `axis`; `nowhere` if it does not.
  struct place {
    size_t of, axis;
    dim unit = 1;
  };
  static constexpr size_t nowhere = SIZE_MAX;

  explicit call_axes(const infer_context& call) : call_(call) {}

  const infer_context& call() const { return call_; }
  /// Returns the dims of result 0; refuses if its rank is not known.
  const symbolic_shape& result_dims() const;
  std::span<const call_axis> all() const { return axes_; }
  std::span<call_axis> all() { return axes_; }
  /// Returns whether only the type of operand `i` matters.
  bool ignores(size_t i) const { return ignored_ == i; }

  /// Adds a mapped axis; see `join`.
  call_axis& map(std::initializer_list<place> operands, std::initializer_list<place> results);
  /// The same, with dim `axis` of all results.
  call_axis& map(std::initializer_list<place> operands, size_t axis);
  /// Puts an operand on an axis, unless it is absent or has no such dim.
  void join(call_axis& axis, const place& p) const;
  /// Adds a reduced axis.
  call_axis& reduce(std::initializer_list<place> operands, combination combined);
  /// Adds a windowed axis at dim `axis` of operand 0 and result 0. Another operand on it has the result's indices.
  call_axis& slide(size_t axis, axis_window window);

  /// Maps the dims of operand 0 outside of [first, end) to those of all results. The operands `beside` broadcast with
  /// operand 0.
  void keep(size_t first, size_t end, std::initializer_list<size_t> beside = {});
  /// Maps dim 0 of operand 0 and of others to dim 0 of all results: images, sequences.
  void batches(std::initializer_list<size_t> beside = {});
  /// Returns where dim `axis` of a result of `rank` dims is in operand `i`, which broadcasts: nowhere if it is repeated
  /// there.
  place fit(size_t i, size_t axis, size_t rank) const;
  void ignore(size_t i) { ignored_ = i; }
  /// Throws `errc::unsupported`: no axes; `why` follows the node's name.
  [[noreturn]] void refuse(std::string_view why) const;

private:
  call_axis& add(axis_kind kind);

  const infer_context& call_;
  std::vector<call_axis> axes_;
  size_t ignored_ = nowhere;
};

/// Returns the axes of a resolved and inferred call, which must outlive them. Throws `errc::unsupported` if nothing
/// corresponds; the text follows the node's name: "works on text".
call_axes axes_of(const infer_context& call);

/// Returns a resolved call of the operator that combines two results of parts of this type; without operands.
node combining_call(combination by, dtype type);

/// Returns why no call of an operator has axes; empty if calls may have some. A composition has those of its calls.
std::string_view why_no_axes(const op_def& def);

/// Why calls with sequences or optionals have no axes.
inline constexpr std::string_view in_containers = "works with sequences or optionals, whose elements are not followed";

/// What several operators state.
namespace axes {
/// All operands broadcast, and each element of result 0 is made of those at its place. The axes of operators that
/// state none, but are elementwise.
void broadcast(call_axes& a);
/// Each element of operand 0 gives one, or some along a dim more at the end.
void elements(call_axes& a);
/// Dim 0 of operand 0 and of some others is a batch; what else there is belongs to all of it.
template <size_t... Beside>
void batch(call_axes& a) {
  a.batches({Beside...});
}

/// All dims of operand 0 are mapped but `Dim`, the last `Count`, or the one that attribute `axis` names.
template <size_t Dim>
void other_than(call_axes& a) {
  a.keep(Dim, Dim + 1);
}

template <size_t Count>
void before_last(call_axes& a) {
  const size_t rank = a.call().rank(0);
  a.keep(rank - std::min(rank, Count), rank);
}

template <int64_t Otherwise>
void beside_axis(call_axes& a) {
  const size_t axis = a.call().axis("axis", Otherwise, a.call().rank(0));
  a.keep(axis, axis + 1);
}

/// Dim 0 is a batch, and dim 1 channels that do not meet.
void planes(call_axes& a);
/// Regions, dim 0 of operands 1 and 2, of any image; and channels, dim 1 of operand 0.
void regions(call_axes& a);
/// Result 0 has the elements of operand 0 in the same order under other dims (Reshape …).
void view(call_axes& a);
/// A product of the matrices of operands 0 and `right`, whose batches broadcast. `beside` are operands that broadcast
/// with the result; unless `sums`, the result is not the plain sum of products.
void product(call_axes& a, size_t right, bool transposed_left, bool transposed_right, bool sums = true,
             std::initializer_list<size_t> beside = {});
/// Parameters of a product's factor: one, one for each index of dim `own` of the factor, or of the factor's rank.
void parameters(call_axes& a, size_t factor, size_t own, std::initializer_list<size_t> which);
/// A convolution of operand 0, images [N, C, spatial …], by `filters`, which are operand `filters` at dim `own`.
/// `each` are operands with an element for each filter, `residual` has the result's dims; absent ones may be named.
void filters(call_axes& a, size_t filters, size_t own, std::initializer_list<size_t> each, size_t residual = SIZE_MAX);
/// The windows of a convolution or pooling of operand 0 whose padding does not depend on its size.
void windows(call_axes& a, const window_spec& spec, size_t residual = SIZE_MAX);
} // namespace axes

} // namespace troupe
