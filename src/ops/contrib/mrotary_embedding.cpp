// MRotaryEmbedding of com.microsoft: RotaryEmbedding for tokens that have three positions each, in time, height and
// width (Wang et al., "Qwen2-VL", 2024, as ONNX Runtime defines it).
//
// x is [batch, sequence, heads · size] with attribute num_heads, or [batch, heads, sequence, size]; position_ids are
// [3, batch, sequence], both caches [positions, pairs]. Each pair of elements turns by the angle that the caches have
// for one of its token's three positions. mrope_section says how many pairs each position has; mrope_layout, which: 0
// the first ones by time, then by height, then by width; 1 every third from the second on by height, every third from
// the third on by width, the others by time. `scale` multiplies sines and cosines. is_packed_batching changes nothing
// here.
#include "ops/expansion.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

constexpr size_t positions_of_token = 3; // in time, height and width

/// More pairs than a head may have: a constant says of each which position turns it.
constexpr int64_t most_pairs = int64_t{1} << 16;

/// Returns how many pairs each position has.
std::vector<int64_t> pair_counts(const attributes& attrs, int64_t pairs) {
  std::vector<int64_t> counts = attrs.integers("mrope_section", {});
  if (counts.size() != positions_of_token)
    fail(errc::invalid_model, "attribute 'mrope_section' has {} elements instead of {}", counts.size(),
         positions_of_token);
  int64_t rest = pairs;
  for (const int64_t count : counts)
    rest = count < 0 || count > rest ? -1 : rest - count; // never 0 again after a count that is none
  if (rest != 0)
    fail(errc::invalid_model, "attribute 'mrope_section' is {}, which does not add up to the caches' {} columns",
         to_string(counts), pairs);
  return counts;
}

/// Returns for each pair which position turns it.
std::vector<size_t> positions_of_pairs(const attributes& attrs, int64_t pairs) {
  const std::vector<int64_t> counts = pair_counts(attrs, pairs);
  const int64_t layout = attrs.integer("mrope_layout", 0);
  if (layout != 0 && layout != 1)
    fail(errc::invalid_model, "attribute 'mrope_layout' is {}, not 0 or 1", layout);
  std::vector<size_t> position(static_cast<size_t>(pairs), 0);
  if (layout == 0) {
    const auto height = position.begin() + counts[0], width = height + counts[1];
    std::fill(height, width, 1);
    std::fill(width, position.end(), 2);
    return position;
  }
  for (size_t axis = 1; axis < positions_of_token; ++axis)
    for (int64_t i = static_cast<int64_t>(axis); i < std::min(pairs, counts[axis] * 3); i += 3)
      position[static_cast<size_t>(i)] = axis;
  return position;
}

/// The angles of each token, [batch, sequence, pairs], out of a cache.
class angle_picker {
public:
  explicit angle_picker(expansion& e, std::vector<size_t> position) : e_(e), position_(std::move(position)) {
    // Gather counts negative places from the end; without their sign they are beyond any cache, and so refused.
    const value_id ids =
        e.add("BitwiseAnd", {e.input(1), e.constant(tensor::scalar(std::numeric_limits<int64_t>::max()))});
    for (size_t axis = 0; axis < positions_of_token; ++axis)
      ids_.push_back(has(axis) ? e.add("Gather", {ids, e.known_scalar(static_cast<int64_t>(axis))}) : no_value);
  }

  value_id picked(value_id cache) const {
    value_id angles = no_value;
    for (size_t axis = 0; axis < positions_of_token; ++axis) {
      if (!has(axis))
        continue;
      const value_id own = e_.add("Gather", {cache, ids_[axis]});
      angles = angles == no_value ? own : e_.add("Where", {mask(axis), own, angles});
    }
    const auto scale = e_.attrs().real("scale", 1);
    const dtype type = e_.type(cache), computed = type == dtype::float64 ? type : dtype::float32;
    if (scale == 1)
      return angles;
    return e_.cast(e_.add("Mul", {e_.cast(angles, computed), e_.scalar(computed, scale)}), type);
  }

private:
  bool has(size_t axis) const { return std::find(position_.begin(), position_.end(), axis) != position_.end(); }

  /// Returns which pairs position `axis` turns.
  value_id mask(size_t axis) const {
    tensor own(dtype::boolean, {std::ssize(position_)});
    std::transform(position_.begin(), position_.end(), own.mutable_data<uint8_t>(),
                   [&](size_t position) { return position == axis ? 1 : 0; });
    return e_.constant(own);
  }

  expansion& e_;
  std::vector<size_t> position_; // by pair
  std::vector<value_id> ids_;    // by position
};

void check_operands(const expansion& e, const symbolic_shape& x) {
  if (x.size() != 3 && x.size() != 4)
    fail(errc::invalid_model,
         "x has shape {}; [batch, sequence, heads · size] or [batch, heads, sequence, size] is needed", to_string(x));
  if (e.type(e.input(1)) != dtype::int64)
    fail(errc::invalid_model, "position_ids of {}; int64 is needed", to_string(e.type(e.input(1))));
  require_same_dims(e.dims(e.input(1)), symbolic_shape{3, x[0], x[x.size() - 2]},
                    "position_ids and [3, batch, sequence]");
  for (const size_t cache : {size_t{2}, size_t{3}})
    if (e.type(e.input(cache)) != e.type(e.input(0)))
      fail(errc::invalid_model, "input {} is {}, x is {}", cache, to_string(e.type(e.input(cache))),
           to_string(e.type(e.input(0))));
  require_same_dims(e.dims(e.input(2), 2), e.dims(e.input(3), 2), "caches of cosines and sines");
}

/// Returns how many elements of a head turn; 0 for all of them.
int64_t rotated_elements(const attributes& attrs, int64_t pairs) {
  const int64_t rotated = attrs.integer("rotary_embedding_dim", 0);
  if (rotated != 0 && attrs.integer("num_heads", 0) < 1)
    fail(errc::invalid_model, "attribute 'rotary_embedding_dim' needs 'num_heads'");
  if (rotated != 0 && rotated != 2 * pairs)
    fail(errc::invalid_model, "attribute 'rotary_embedding_dim' is {}, but the caches have {} columns for half of it",
         rotated, pairs);
  return rotated;
}

void expand_mrotary(expansion& e) {
  const symbolic_shape x = e.dims(e.input(0));
  check_operands(e, x);
  const dim columns = e.dims(e.input(2))[1];
  if (!columns.is_constant())
    fail(errc::unsupported, "the columns of the caches must be known, not {}", columns.to_string());
  if (columns.constant() < 1 || columns.constant() > most_pairs)
    fail(errc::unsupported, "caches of {} columns; 1 to {} are supported", columns.constant(), most_pairs);
  const int64_t pairs = columns.constant(), heads = e.attrs().integer("num_heads", 0),
                rotated = rotated_elements(e.attrs(), pairs);
  auto attrs = attributes_of({{"interleaved", e.attrs().integer("interleaved", 0)}, {"rotary_embedding_dim", rotated}});
  if (x.size() == 3) {
    if (heads < 1)
      fail(errc::invalid_model, "attribute 'num_heads' is {}; x of shape {} needs it", heads, to_string(x));
    attrs.set("num_heads", heads);
  }
  if (const dim size = x.size() == 3 ? floor_div(x[2], heads) : x[3]; rotated == 0)
    require_same(size, 2 * pairs, "elements of a head and twice the caches' columns");
  const angle_picker angles(e, positions_of_pairs(e.attrs(), pairs));
  e.set_output(0, e.add("RotaryEmbedding", {e.input(0), angles.picked(e.input(2)), angles.picked(e.input(3))},
                        std::move(attrs)));
}

constexpr auto mrotary_rows = std::to_array<op_def>({
    composition_row("MRotaryEmbedding", 1, expand_mrotary,
                    {.domain = microsoft, .inputs = {4, 4}, .types = types::floats}),
});

} // namespace

extern constinit const op_table contrib_mrotary_embedding_ops = mrotary_rows;

} // namespace troupe
