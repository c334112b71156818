#include "cpu/int8_weights.hpp"

#include "cpu/int8_product.hpp"
#include "ops/evaluate.hpp"
#include "ops/pack.hpp"
#include "ops/registry.hpp"

namespace troupe::int8 {
namespace {

weight_ptr flipped(const weight_ptr& w) {
  if (w->type != dtype::uint8)
    return w;
  const weight_ptr bit = weight::from_tensor(tensor::of<uint8_t>({}, std::span(&sign_bit, 1)));
  return make_step(*find_op("", "BitwiseXor", newest_opset("")), {}, {w, bit}, dtype::uint8, w->dims);
}

weight_ptr pack_matrices(const weight_ptr& w, int64_t groups, int64_t depth, int64_t columns) {
  return pack(w, {groups, depth, columns}, {0, 2, 1, 2, 1},
              {groups, blocks_of(columns), quads_of(depth), block_columns, quad});
}

} // namespace

weight_ptr pack_weight(const weight_ptr& w, int64_t groups, int64_t depth, int64_t columns) {
  return pack_matrices(flipped(w), groups, depth, columns);
}

weight_ptr pack_filters(const weight_ptr& w, int64_t groups) {
  const int64_t filters = w->dims[0] / groups, channels = w->dims[1], taps = volume(std::span(w->dims).subspan(2));
  const weight_ptr rows = pack(flipped(w), {groups, filters, channels, taps}, {0, 3, 2, 1});
  return pack_matrices(rows, groups, taps * channels, filters);
}

} // namespace troupe::int8
