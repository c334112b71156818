// MurmurHash3 of com.microsoft: Austin Appleby's 32-bit hash of each element's bytes, those of a text or of a number (4
// or 8, the lowest first), from attribute `seed` on. The result is uint32, or int32 if `positive` is 0.
#include "ops/axes.hpp"
#include "ops/expansion.hpp"

#include <bit>
#include <cstring>

namespace troupe {
namespace {

/// One word of the input, spread over all bits.
uint32_t scrambled(uint32_t word) {
  return std::rotl(word * 0xcc9e2d51, 15) * 0x1b873593;
}

uint32_t murmur3(std::string_view bytes, uint32_t hash) {
  const auto size = static_cast<uint32_t>(bytes.size());
  for (; bytes.size() >= 4; bytes.remove_prefix(4)) {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data(), 4);
    hash = std::rotl(hash ^ scrambled(word), 13) * 5 + 0xe6546b64;
  }
  uint32_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  hash ^= scrambled(rest) ^ size;
  hash = (hash ^ hash >> 16) * 0x85ebca6b;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35;
  return hash ^ hash >> 16;
}

void infer_murmur(infer_context& c) {
  c.set_output(0, c.attrs().integer("positive", 1) != 0 ? dtype::uint32 : dtype::int32, c.dims(0));
}

void murmur(kernel_context& c) {
  const const_view& x = c.input(0);
  const auto seed = static_cast<uint32_t>(c.attrs().integer("seed", 0));
  const int64_t width = bits_of(x.type) / 8;
  for (int64_t i = 0; i < x.size(); ++i) {
    const std::string_view bytes = x.type == dtype::string
                                       ? std::string_view(x.as<std::string>()[i])
                                       : std::string_view(x.as<char>() + i * width, static_cast<size_t>(width));
    c.output(0).as<uint32_t>()[i] = murmur3(bytes, seed);
  }
}

constexpr auto murmur_hash_rows = std::to_array<op_def>({
    op_row("MurmurHash3", 1, infer_murmur, murmur,
           {.domain = microsoft,
            .types = types::string |
                     set_of(dtype::int32, dtype::uint32, dtype::int64, dtype::uint64, dtype::float32, dtype::float64),
            .axes = axes::elements}),
});

} // namespace

extern constinit const op_table contrib_murmur_hash_ops = murmur_hash_rows;

} // namespace troupe
