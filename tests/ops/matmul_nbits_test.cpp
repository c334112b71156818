#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

#include <random>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::test;

namespace {

constexpr int64_t K = 40, N = 3, block = 16, blocks = 3;

/// Codes [N, blocks, block], each below 2^bits, and the same packed as the operator wants them.
struct coded {
  std::vector<int> codes;
  tensor packed;
};

coded random_codes(int64_t bits) {
  std::mt19937 random(static_cast<unsigned>(bits));
  const int64_t bytes = block * bits / 8;
  coded c{{}, tensor(dtype::uint8, {N, blocks, bytes})};
  std::fill_n(c.packed.mutable_data<uint8_t>(), c.packed.bytes(), uint8_t{0});
  for (int64_t i = 0; i < N * blocks * block; ++i) {
    const auto code = static_cast<int>(random() % (1u << bits));
    c.codes.push_back(code);
    for (int64_t bit = 0; bit < bits; ++bit)
      if (const int64_t at = i % block * bits + bit; code >> bit & 1)
        c.packed.mutable_data<uint8_t>()[i / block * bytes + at / 8] |= static_cast<uint8_t>(1 << at % 8);
  }
  return c;
}

std::vector<tensor> operands(const coded& c, const tensor& zeros, const tensor& groups) {
  tensor scales(dtype::float32, {N, blocks});
  for (int64_t i = 0; i < scales.size(); ++i)
    scales.mutable_data<float>()[i] = 0.25f * static_cast<float>(i + 1);
  return {ramp({2, K}, 0.125f), c.packed, scales, zeros, groups};
}

attributes sizes(int64_t bits) {
  return attrs_of({{"K", K}, {"N", N}, {"bits", bits}, {"block_size", block}});
}

tensor product(int64_t bits, const std::vector<tensor>& inputs) {
  return evaluate(*find_op("com.microsoft", "MatMulNBits", 1), sizes(bits), inputs)[0];
}

} // namespace

TEST_CASE("MatMulNBits takes codes of each width, groups in any order and real zero points", "[ops][nbits]") {
  for (const int64_t bits : {2, 3, 4, 8})
    for (const bool grouped : {false, true}) {
      const coded c = random_codes(bits);
      const tensor zeros = ramp({N, blocks}, 0.5f);
      std::vector<int32_t> groups(K);
      for (int64_t k = 0; k < K; ++k)
        groups[static_cast<size_t>(k)] = static_cast<int32_t>(grouped ? (k * 5 + 1) % blocks : k / block);
      const auto inputs = operands(c, zeros, grouped ? tensor::of<int32_t>({K}, groups) : tensor());
      const tensor y = product(bits, inputs);
      INFO(bits << (grouped ? " bits in groups" : " bits"));
      for (int64_t row = 0; row < 2; ++row)
        for (int64_t n = 0; n < N; ++n) {
          double sum = 0;
          for (int64_t k = 0; k < K; ++k) {
            const int64_t at = n * blocks + groups[static_cast<size_t>(k)];
            const double weight = (c.codes[static_cast<size_t>(n * blocks * block + k)] - zeros.data<float>()[at]) *
                                  inputs[2].data<float>()[at];
            sum += inputs[0].data<float>()[row * K + k] * weight;
          }
          CHECK(y.data<float>()[row * N + n] == Approx(sum).margin(1e-3));
        }
    }
}

TEST_CASE("MatMulNBits takes an index for each place of its blocks", "[ops][nbits]") {
  const coded c = random_codes(4);
  std::vector<int32_t> groups(blocks * block, 0);
  for (int64_t k = 0; k < K; ++k)
    groups[static_cast<size_t>(k)] = static_cast<int32_t>((k * 5 + 1) % blocks);
  const tensor padded = product(4, operands(c, {}, tensor::of<int32_t>({blocks * block}, groups)));
  groups.resize(K);
  const tensor exact = product(4, operands(c, {}, tensor::of<int32_t>({K}, groups)));
  CHECK(elements(padded) == elements(exact));
}

TEST_CASE("MatMulNBits refuses invalid groups, and widths that no model has", "[ops][nbits]") {
  const coded c = random_codes(4);
  std::vector<int32_t> groups(K, 0);
  groups[7] = blocks;
  CHECK_THAT(thrown_by([&] { product(4, operands(c, {}, tensor::of<int32_t>({K}, groups))); }).what(),
             Catch::Contains("g_idx holds 3, but there are 3 blocks"));
  CHECK_THAT(thrown_by([&] { product(4, operands(c, {}, tensor::of<int32_t>({1}, std::vector<int32_t>{0}))); }).what(),
             Catch::Contains("1 elements instead of 40"));
  CHECK(thrown_by([&] { product(5, operands(c, {}, {})); }).code() == errc::unsupported);
}
