// RelativePositionBias of com.microsoft: what T5 adds to the scores of its attention. ONNX Runtime has it on GPUs only.
//
//   y[0, h, q, k] = table[h, bucket of the distance k − q]
//
// The table's dims are [buckets, heads], but its elements are stored head by head. Half of the buckets are for one
// distance each, the others for ranges of distances that grow up to `max_distance`. Keys after their query share the
// first bucket or, if `is_bidirectional`, have half of all buckets.
#include "ops/expansion.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr int64_t longest_distance = 65'536; // there is a bucket for each one up to `max_distance`

/// Returns the bucket of each distance from −`longest` to `longest`.
std::vector<int64_t> buckets_of_distances(int64_t buckets, int64_t longest, bool both_ways) {
  const int64_t own = both_ways ? buckets / 2 : buckets, single = own / 2;
  if (single < 1 || longest <= single || longest > longest_distance)
    fail(errc::invalid_model, "{} buckets cannot be for distances up to {}", buckets, longest);
  std::vector<int64_t> all;
  for (int64_t distance = -longest; distance <= longest; ++distance) {
    const int64_t length = both_ways ? std::abs(distance) : std::max<int64_t>(0, -distance);
    int64_t bucket = length;
    if (length >= single) { // in float32, as who trained such models did it
      const float first = static_cast<float>(single), grown = std::log(static_cast<float>(length) / first);
      const float part = grown / std::log(static_cast<float>(longest) / first);
      bucket = std::min(own - 1, single + static_cast<int64_t>(part * static_cast<float>(own - single)));
    }
    all.push_back(both_ways && distance > 0 ? own + bucket : bucket);
  }
  return all;
}

/// Two Gathers: the first, of constants as a rule, is folded when the model is loaded.
void expand_relative_position_bias(expansion& e) {
  const symbolic_shape table = e.dims(e.input(0), 2);
  const auto length = [&](size_t i) {
    const std::vector<dim> known = e.call().require_known(i);
    if (known.size() != 1)
      fail(errc::invalid_model, "input {} has {} elements instead of one length", i, known.size());
    return known[0];
  };
  const dim queries = length(1), keys = length(2);
  require_same(queries, keys, "lengths of queries and keys");
  if (!table[0].is_constant())
    fail(errc::unsupported, "the number of buckets must be known, not {}", table[0].to_string());
  const int64_t longest = e.attrs().integer("max_distance");
  const auto buckets =
      buckets_of_distances(table[0].constant(), longest, e.attrs().integer("is_bidirectional", 0) != 0);
  const value_id by_head = e.reshape(e.input(0), {table[1], table[0]}),
                 places = e.constant(tensor::of<int64_t>({std::ssize(buckets)}, buckets));
  const auto along_row = attributes_of({{"axis", int64_t{1}}});
  const value_id by_distance = e.add("Gather", {by_head, places}, along_row);
  const value_id distance = e.add("Sub", {e.range(keys), e.reshape(e.range(queries), {queries, 1})}),
                 known = e.add("Clip", {distance, e.known_scalar(-longest), e.known_scalar(longest)});
  const value_id picked = e.add("Gather", {by_distance, e.add("Add", {known, e.known_scalar(longest)})}, along_row);
  e.set_output(0, e.reshape(picked, {1, table[1], queries, keys}));
}

constexpr auto contrib_relative_position_bias_rows = std::to_array<op_def>({
    composition_row("RelativePositionBias", 1, expand_relative_position_bias,
                    {.domain = microsoft, .inputs = {3, 3}, .types = types::floats, .host_inputs = 0b110}),
});

} // namespace

extern constinit const op_table contrib_relative_position_bias_ops = contrib_relative_position_bias_rows;

} // namespace troupe
