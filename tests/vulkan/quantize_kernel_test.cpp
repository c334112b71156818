#include "support/catch.hpp"
#include "support/kernel_case.hpp"
#include "tensor/convert.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

attributes integers(std::initializer_list<std::pair<const char*, int64_t>> values) {
  attributes attrs;
  for (const auto& [name, value] : values)
    attrs.set(name, value);
  return attrs;
}

/// Powers of two, so that quotients are exact on every device.
tensor scales(shape dims) {
  tensor t(dtype::float32, std::move(dims));
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = 0.125f * static_cast<float>(1 << i % 4);
  return t;
}

/// Multiples of 1/16: quotients have ties. A NaN and infinities at the end.
tensor data(shape dims) {
  tensor t = random_floats(std::move(dims), 1, -600, 600);
  const int64_t n = t.size();
  float* x = t.mutable_data<float>();
  for (int64_t i = 0; i < n; ++i)
    x[i] = static_cast<float>(static_cast<int>(x[i])) / 16;
  if (n > 3) {
    x[n - 1] = std::numeric_limits<float>::quiet_NaN();
    x[n - 2] = std::numeric_limits<float>::infinity();
    x[n - 3] = -std::numeric_limits<float>::infinity();
  }
  return t;
}

tensor zero_points(dtype type, shape dims) {
  return random_integers(type, std::move(dims), 5, 0, 100);
}

} // namespace

TEST_CASE("GPU QuantizeLinear", "[vulkan]") {
  for (bool half : {false, true})
    for (dtype type : {dtype::uint8, dtype::int8}) {
      const tensor x = data({2, 3, 5, 7});
      check_gpu_kernels({.op = "QuantizeLinear", .inputs = {x, scales({}), zero_points(type, {})}}, half);
      check_gpu_kernels({.op = "QuantizeLinear", .inputs = {x, scales({3}), zero_points(type, {3})}}, half);
      check_gpu_kernels({.op = "QuantizeLinear",
                         .inputs = {x, scales({7}), zero_points(type, {7})},
                         .attrs = integers({{"axis", -1}})},
                        half);
      check_gpu_kernels({.op = "QuantizeLinear",
                         .inputs = {x, scales({2, 3, 3, 7}), zero_points(type, {2, 3, 3, 7})},
                         .attrs = integers({{"axis", 2}, {"block_size", 2}})},
                        half);
    }
  check_gpu_kernels({.op = "QuantizeLinear", .inputs = {data({4, 1031}), scales({1})}});
}

TEST_CASE("GPU DequantizeLinear", "[vulkan]") {
  for (bool half : {false, true})
    for (dtype type : {dtype::uint8, dtype::int8}) {
      const tensor x = random_integers(type, {2, 3, 5, 7}, 1, type == dtype::uint8 ? 0 : -128, 127);
      check_gpu_kernels({.op = "DequantizeLinear", .inputs = {x, scales({}), zero_points(type, {})}}, half);
      check_gpu_kernels({.op = "DequantizeLinear", .inputs = {x, scales({3}), zero_points(type, {3})}}, half);
      check_gpu_kernels({.op = "DequantizeLinear",
                         .inputs = {x, scales({2, 3, 5, 3}), zero_points(type, {2, 3, 5, 3})},
                         .attrs = integers({{"axis", 3}, {"block_size", 3}})},
                        half);
    }
  check_gpu_kernels(
      {.op = "DequantizeLinear", .inputs = {random_integers(dtype::int32, {33}, 1, -70000, 70000), scales({1})}});
}

TEST_CASE("GPU QuantizeLinear and DequantizeLinear of 16, 8 and 4 bits", "[vulkan]") {
  for (dtype type : {dtype::int16, dtype::uint16, dtype::float8e4m3fn, dtype::float8e4m3fnuz, dtype::float8e5m2,
                     dtype::float8e5m2fnuz, dtype::int4, dtype::uint4})
    for (bool half : {false, true}) {
      tensor x = data({2, 3, 5, 7});
      if (type == dtype::int4 || type == dtype::uint4)
        for (int64_t i = 0; i < x.size(); ++i)
          x.mutable_data<float>()[i] /= 16;
      const auto few = [&](shape dims) { return to_type(random_floats(std::move(dims), 5, 0, 7), type); };
      check_gpu_kernels({.op = "QuantizeLinear", .inputs = {x, scales({}), few({})}}, half);
      check_gpu_kernels({.op = "QuantizeLinear", .inputs = {x, scales({3}), few({3})}}, half);
      check_gpu_kernels({.op = "QuantizeLinear",
                         .inputs = {x, scales({2, 3, 3, 7}), few({2, 3, 3, 7})},
                         .attrs = integers({{"axis", 2}, {"block_size", 2}, {"saturate", 0}})},
                        half);
      const tensor y = to_type(random_floats({2, 3, 5, 7}, 1, -8, 16), type);
      check_gpu_kernels({.op = "DequantizeLinear", .inputs = {y, scales({}), few({})}}, half);
      check_gpu_kernels({.op = "DequantizeLinear", .inputs = {y, scales({3})}}, half);
      check_gpu_kernels({.op = "DequantizeLinear",
                         .inputs = {y, scales({2, 3, 5, 3}), few({2, 3, 5, 3})},
                         .attrs = integers({{"axis", 3}, {"block_size", 3}})},
                        half);
    }
}

TEST_CASE("GPU DynamicQuantizeLinear", "[vulkan]") {
  tensor whole = random_floats({3, 400}, 1, -100, 154.99f); // steps of exactly 1
  for (int64_t i = 0; i < whole.size(); ++i)
    whole.mutable_data<float>()[i] = static_cast<float>(static_cast<int>(whole.data<float>()[i]));
  whole.mutable_data<float>()[7] = -100;
  whole.mutable_data<float>()[1100] = 155;
  check_gpu_kernels({.op = "DynamicQuantizeLinear", .inputs = {whole}, .outputs = 3});
  check_gpu_kernels({.op = "DynamicQuantizeLinear", .inputs = {random_floats({5}, 1, 0, 0.001f)}, .outputs = 1});
}

TEST_CASE("GPU sums of codes by float16 are exact whatever their size", "[vulkan]") {
  constexpr int64_t k = 512, n = 40, block = 32, blocks = k / block;
  for (const int64_t rows : {1, 2})
    for (const float size : {1e-5f, 2e-3f, 1.f, 65000.f})
      for (const bool zeros : {false, true}) {
        INFO(rows << " rows, elements of " << size << (zeros ? ", zero points" : ""));
        const float factor = 1 / std::min(size, 1.f);
        std::vector<tensor> inputs{random_floats({rows, k}, 1, -size, size),
                                   random_integers(dtype::uint8, {n, blocks, block / 2}, 2, 0, 256),
                                   random_floats({n, blocks}, 3, 0.001f * factor, 0.002f * factor)};
        if (zeros)
          inputs.push_back(random_integers(dtype::uint8, {n, blocks / 2}, 4, 0, 256));
        check_gpu_kernels({.op = "MatMulNBits",
                           .inputs = inputs,
                           .attrs = integers({{"K", k}, {"N", n}, {"bits", 4}, {"block_size", block}}),
                           .domain = "com.microsoft",
                           .rtol = 1e-3,
                           .atol = 2e-4 * std::max(size, 1.f)},
                          true);
      }
}

TEST_CASE("GPU sums of codes by float16 keep small elements beside large ones", "[vulkan]") {
  constexpr int64_t k = 512, n = 40;
  for (const int64_t bits : {4, 8})
    for (const int64_t block : {16, 32, 128}) {
      INFO(bits << " bits, blocks of " << block);
      tensor x = random_floats({1, k}, 1, -1, 1);
      for (int64_t i = 5; i < k; i += 64) // 2^10 times the others, in every other vector of codes
        x.mutable_data<float>()[i] = 1024;
      const tensor codes = random_integers(dtype::uint8, {n, k / block, block * bits / 8}, 2, 0, 256);
      const tensor scales = random_floats({n, k / block}, 3, 0.001f, 0.002f);
      check_gpu_kernels({.op = "MatMulNBits",
                         .inputs = {x, codes, scales},
                         .attrs = integers({{"K", k}, {"N", n}, {"bits", bits}, {"block_size", block}}),
                         .domain = "com.microsoft",
                         .rtol = 1e-3,
                         .atol = bits == 4 ? 2e-2 : 0.3},
                        true);
    }
}

TEST_CASE("GPU sums of the largest codes and elements are finite in float16", "[vulkan]") {
  constexpr int64_t k = 512, n = 8, block = 32, blocks = k / block;
  for (const int64_t code : {0, 15}) { // 15 less than its zero point, or more
    const auto bytes = [](shape dims, int64_t number) {
      return random_integers(dtype::uint8, std::move(dims), 1, number * 17, number * 17 + 1);
    };
    check_gpu_kernels({.op = "MatMulNBits",
                       .inputs = {random_floats({1, k}, 1, 65503.f, 65504.f), bytes({n, blocks, block / 2}, code),
                                  random_floats({n, blocks}, 3, 5e-5f, 6e-5f), bytes({n, blocks / 2}, 15 - code)},
                       .attrs = integers({{"K", k}, {"N", n}, {"bits", 4}, {"block_size", block}}),
                       .domain = "com.microsoft",
                       .rtol = 2e-3},
                      true);
  }
}

TEST_CASE("GPU MatMulNBits, few rows and many", "[vulkan]") {
  struct sizes {
    int64_t rows, k, n, block, bits;
  };
  int zeros = 0; // none, packed, one element each
  for (const auto& [rows, k, n, block, bits] : {sizes{1, 64, 40, 32, 4},
                                                {3, 100, 17, 16, 4},
                                                {4, 50, 9, 32, 8},
                                                {1, 1024, 300, 128, 4},
                                                {7, 96, 33, 32, 4},
                                                {70, 130, 70, 16, 8}})
    for (bool half : {false, true}) {
      const int64_t blocks = (k + block - 1) / block;
      std::vector<tensor> inputs{random_floats({rows, k}, 1),
                                 random_integers(dtype::uint8, {n, blocks, block * bits / 8}, 2, 0, 256),
                                 random_floats({n, blocks}, 3, 0.01f, 0.02f)};
      if (zeros == 1)
        inputs.push_back(random_integers(dtype::uint8, {n, (blocks * bits + 7) / 8}, 4, 0, 256));
      if (zeros == 2) {
        inputs.push_back(random_floats({n, blocks}, 4, 3, 9));
        inputs.insert(inputs.end(), {tensor{}, random_floats({n}, 5)});
      }
      check_gpu_kernels({.op = "MatMulNBits",
                         .inputs = inputs,
                         .attrs = integers({{"K", k}, {"N", n}, {"bits", bits}, {"block_size", block}}),
                         .domain = "com.microsoft",
                         .rtol = half ? 5e-3 : 1e-4,
                         .atol = half ? 0.1 * bits : 1e-3},
                        half);
      zeros = half ? (zeros + 1) % 3 : zeros;
    }
}
