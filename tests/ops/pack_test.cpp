#include "ops/evaluate.hpp"
#include "ops/pack.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

#include <numeric>

using namespace troupe;

namespace {

/// 1, 2, 3 … so that zeros of a padding are not elements.
weight_ptr counting(shape dims, dtype type = dtype::float32) {
  tensor t(type, std::move(dims));
  if (type == dtype::float32)
    std::iota(t.mutable_data<float>(), t.mutable_data<float>() + t.size(), 1.f);
  else
    std::iota(t.mutable_data<uint16_t>(), t.mutable_data<uint16_t>() + t.size(), uint16_t{1});
  return weight::from_tensor(std::move(t));
}

std::vector<float> floats_of(const weight_ptr& w) {
  const tensor t = materialise(*w);
  CHECK(t.dims() == w->dims);
  return {t.data<float>(), t.data<float>() + t.size()};
}

} // namespace

TEST_CASE("Pack permutes axes of the operand as it is seen, and pads them with zeros", "[ops]") {
  const weight_ptr w = counting({6});
  CHECK(floats_of(pack(w, {2, 3}, {1, 0})) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(floats_of(pack(w, {1, 2, 3}, {0, 1, 2}, {1, 2, 4})) == std::vector<float>{1, 2, 3, 0, 4, 5, 6, 0});
  CHECK(floats_of(pack(w, {2, 3}, {1, 0}, {4, 3})) == std::vector<float>{1, 4, 0, 2, 5, 0, 3, 6, 0, 0, 0, 0});
  const tensor halves = materialise(*pack(counting({2, 2}, dtype::float16), {2, 2}, {1, 0}));
  CHECK(halves.type() == dtype::float16);
  CHECK(halves.data<uint16_t>()[1] == 3);
}

TEST_CASE("Pack splits axes into blocks of blocks, the last ones not full", "[ops]") {
  for (const int64_t o : {32, 16, 21, 7})
    for (const int64_t i : {16, 32, 27, 3}) { // OIw4i16o4i
      const int64_t width = 3, blocks_o = (o + 15) / 16, blocks_i = (i + 15) / 16;
      const weight_ptr w = counting({o, i, width});
      const auto packed = floats_of(pack(w, {o, i, width}, {0, 1, 2, 1, 0, 1}, {blocks_o, blocks_i, width, 4, 16, 4}));
      std::vector<float> wanted(packed.size(), 0.f);
      for (int64_t a = 0; a < o; ++a)
        for (int64_t b = 0; b < i; ++b)
          for (int64_t c = 0; c < width; ++c) {
            const int64_t block = (a / 16 * blocks_i + b / 16) * width + c;
            const int64_t at = ((block * 4 + b % 16 / 4) * 16 + a % 16) * 4 + b % 4;
            wanted[static_cast<size_t>(at)] = static_cast<float>((a * i + b) * width + c + 1);
          }
      CHECK(packed == wanted);
    }
}

TEST_CASE("a packing that does not fit its weight is an internal error", "[ops]") {
  const weight_ptr w = counting({6});
  for (const weight_ptr& bad : {pack(w, {2, 2}, {1, 0}),            // other elements
                                pack(w, {2, 3}, {1, 0}, {2, 2}),    // shrinks
                                pack(w, {2, 3}, {0}, {2}),          // leaves an axis out
                                pack(w, {2, 3}, {0, 1}, {2, 3, 1})} // sizes of more axes
  ) {
    const error e = test::thrown_by([&] { materialise(*bad); });
    CHECK(e.code() == errc::internal);
    CHECK_THAT(e.what(), Catch::Contains("packing"));
  }
}

TEST_CASE("a device computes no part of a weight again that it has", "[ops]") {
  const weight_ptr leaf = counting({2, 2}), turned = pack(leaf, {2, 2}, {1, 0}),
                   padded = pack(turned, {2, 2}, {0, 1}, {2, 3});
  const tensor other = materialise(*counting({4}));
  const held_parts held = [&](const weight& part) { return &part == turned.get() ? other : tensor{}; };
  CHECK(materialise_for_device(*padded, held).data<float>()[1] == 2);
  CHECK(materialise_for_device(*padded).data<float>()[1] == 3);
}
