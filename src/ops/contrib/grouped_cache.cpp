#include "ops/contrib/grouped_cache.hpp"

#include "ops/infer.hpp"
#include "ops/operand.hpp"

namespace troupe {
namespace {

/// Returns the scale of a cache so that it broadcasts to [batch, heads, sequence, size].
value_id aligned_scale(expansion& e, size_t input, int64_t heads, const dim& size, bool by_channel) {
  if (!e.has_input(input))
    fail(errc::invalid_model, "input {}, the scale of a quantised cache, is missing", input);
  const symbolic_shape d = e.dims(e.input(input));
  const dim count = volume(std::span<const dim>(d)), wanted = by_channel ? dim(heads) * size : dim(1);
  require_same(count, wanted, fmt::format("the elements of input {}, a scale, and what it must have", input));
  return e.reshape(e.input(input), by_channel ? symbolic_shape{heads, 1, size} : symbolic_shape{1});
}

} // namespace

cache_codes::cache_codes(expansion& e, const char* kind, size_t scale, size_t past, int64_t heads, const dim& size)
    : e_(e) {
  const std::string how = word_of(e.attrs(), kind, "NONE", {"NONE", "PER_TENSOR", "PER_CHANNEL"});
  const int64_t bits = e.attrs().integer("kv_cache_bit_width", 0);
  if (how == "NONE")
    return;
  if (bits != 4 && bits != 8)
    fail(errc::invalid_model, "attribute 'kv_cache_bit_width' is {}; a quantised cache has 4 or 8", bits);
  if (!e.has_input(past))
    fail(errc::invalid_model, "input {}, the quantised cache, is missing", past);
  const dtype wanted = bits == 8 ? dtype::int8 : dtype::uint8;
  if (e.type(e.input(past)) != wanted)
    fail(errc::invalid_model, "input {}, a cache of {} bits, is {} instead of {}", past, bits,
         to_string(e.type(e.input(past))), to_string(wanted));
  if (bits == 4 && (!size.is_constant() || size.constant() % 2 != 0))
    fail(errc::unsupported, "heads of {} elements do not fill the bytes of a cache of 4 bits", size.to_string());
  bits_ = bits;
  scale_ = aligned_scale(e, scale, heads, size, how == "PER_CHANNEL");
}

value_id cache_codes::coded(value_id rows) const {
  if (real())
    return rows;
  const value_id whole = e_.add("Round", {e_.add("Div", {e_.cast(rows, dtype::float32), scale_})});
  const auto bound = [&](int64_t x) { return e_.scalar(dtype::float32, static_cast<double>(x)); };
  const int64_t half = int64_t{1} << (bits_ - 1);
  const value_id codes = e_.add("Clip", {whole, bound(-half), bound(half - 1)});
  return bits_ == 8 ? e_.cast(codes, dtype::int8) : packed(e_.add("Add", {codes, bound(half)}));
}

value_id cache_codes::packed(value_id codes) const {
  symbolic_shape d = e_.dims(codes, 4);
  d.back() = floor_div(d.back(), 2);
  symbolic_shape pairs = d;
  pairs.push_back(2);
  const auto halves = e_.add_all("Split", {e_.reshape(codes, pairs)}, 2,
                                 attributes_of({{"axis", int64_t{4}}, {"num_outputs", int64_t{2}}}));
  const value_id high = e_.add("Mul", {halves[1], e_.scalar(dtype::float32, 16)});
  return e_.cast(e_.reshape(e_.add("Add", {halves[0], high}), d), dtype::uint8);
}

value_id cache_codes::unpacked(value_id bytes) const {
  symbolic_shape d = e_.dims(bytes, 4);
  const value_id all = e_.cast(bytes, dtype::float32), sixteen = e_.scalar(dtype::float32, 16);
  const value_id high = e_.add("Floor", {e_.add("Div", {all, sixteen})});
  const value_id low = e_.add("Sub", {all, e_.add("Mul", {high, sixteen})});
  std::vector<value_id> halves;
  for (const value_id half : {low, high})
    halves.push_back(e_.add("Unsqueeze", {half, e_.known({4})}));
  const value_id pairs = e_.add("Concat", std::move(halves), attributes_of({{"axis", int64_t{4}}}));
  d.back() = d.back() * dim(2);
  return e_.add("Sub", {e_.reshape(pairs, d), e_.scalar(dtype::float32, 8)});
}

value_id cache_codes::decoded(value_id cache, dtype type) const {
  if (real())
    return cache;
  const value_id codes = bits_ == 8 ? e_.cast(cache, dtype::float32) : unpacked(cache);
  return e_.cast(e_.add("Mul", {codes, scale_}), type);
}

} // namespace troupe
