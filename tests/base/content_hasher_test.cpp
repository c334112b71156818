// Names of contents: an attacker that wants another content under the same name does not find one.
#include "base/content_hasher.hpp"
#include "graph/weight.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

using namespace troupe;

namespace {

using bytes = std::vector<uint8_t>;

uint64_t word(const uint8_t* at) {
  uint64_t w = 0;
  std::memcpy(&w, at, sizeof w);
  return w;
}

/// The secret that XXH3 begins with.
constexpr uint8_t secret[] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4,
    0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
    0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43,
    0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
    0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
    0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
    0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16,
    0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};
constexpr uint64_t low = 0xffffffff;

/// Returns the sum that the first stripes of a block add to accumulator `i`.
uint64_t sum_of(const bytes& data, size_t i, size_t stripes) {
  uint64_t sum = 0;
  for (size_t s = 0; s < stripes; ++s) {
    const uint64_t own = word(&data[64 * s + 8 * i]) ^ word(&secret[8 * s + 8 * i]);
    sum += word(&data[64 * s + 8 * (i ^ 1)]) + (own & low) * (own >> 32);
  }
  return sum;
}

/// Returns other bytes than `data` of the same XXH3: 14 of the first block's 16 stripes are changed, the other two make
/// up for it.
bytes second_preimage(const bytes& data) {
  bytes made = data;
  for (size_t at = 0; at < 14 * 64; ++at)
    made[at] ^= 0x11;
  // Words of lane i go to accumulator i ^ 1, and products of lane i to accumulator i. All products of the two stripes
  // are 0.
  for (size_t i = 0; i < 8; ++i) {
    const uint64_t missing = sum_of(data, i ^ 1, 16) - sum_of(made, i ^ 1, 14);
    const uint64_t k1 = word(&secret[8 * 14 + 8 * i]), k2 = word(&secret[8 * 15 + 8 * i]);
    const uint64_t second = (k2 >> 32 << 32) | ((missing - (k1 & low)) & low);
    const uint64_t first = (missing - second - (k1 & low)) | (k1 & low);
    std::memcpy(&made[64 * 14 + 8 * i], &first, sizeof first);
    std::memcpy(&made[64 * 15 + 8 * i], &second, sizeof second);
  }
  return made;
}

hash128 fast_hash(const bytes& data) {
  hasher h;
  h.add_bytes(data.data(), data.size());
  return h.digest();
}

tensor tensor_of(const bytes& data) {
  tensor t(dtype::uint8, {static_cast<int64_t>(data.size())});
  std::copy(data.begin(), data.end(), t.mutable_data<uint8_t>());
  return t;
}

} // namespace

TEST_CASE("content that the fast hash takes for another has another name", "[base][graph]") {
  bytes data(2000);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<uint8_t>(i * 7 + i / 256);
  const bytes other = second_preimage(data);
  REQUIRE(data != other);
  REQUIRE(fast_hash(data) == fast_hash(other));
  CHECK(content_hash(tensor_of(data)) != content_hash(tensor_of(other)));
  CHECK(weight::from_tensor(tensor_of(data))->key != weight::from_tensor(tensor_of(other))->key);
}

TEST_CASE("a long block has a name of all its bytes, its length and its salt", "[base]") {
  bytes data((size_t{9} << 20) + 5);
  const auto name = [&](const hash128& salt = {}) {
    content_hasher h;
    h.add_block(std::as_bytes(std::span(data)), salt);
    return h.digest();
  };
  const hash128 first = name();
  CHECK(first == name());
  CHECK(first != name({1, 2}));
  for (const size_t at : {size_t{0}, size_t{1} << 20, data.size() - 1}) {
    data[at] ^= 1;
    CHECK(name() != first);
    data[at] ^= 1;
  }
  data.push_back(0);
  CHECK(name() != first);
}

TEST_CASE("keys differ", "[base]") {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i)
    seen.insert(to_hex(random_key()));
  CHECK(seen.size() == 1000);
}
