#include "cost/device_profile.hpp"

#include <algorithm>

namespace troupe {

std::string_view to_string(arithmetic kind) {
  switch (kind) {
    case arithmetic::float64: return "float64";
    case arithmetic::float32: return "float32";
    case arithmetic::float16: return "float16";
    case arithmetic::bfloat16: return "bfloat16";
    case arithmetic::int8: return "int8";
    case arithmetic::other: return "other";
  }
  return "unknown";
}

arithmetic arithmetic_of(dtype type) {
  switch (type) {
    case dtype::float64: return arithmetic::float64;
    case dtype::float32: return arithmetic::float32;
    case dtype::float16: return arithmetic::float16;
    case dtype::bfloat16: return arithmetic::bfloat16;
    case dtype::int8:
    case dtype::uint8: return arithmetic::int8;
    default: return arithmetic::other;
  }
}

device_profile typical_cpu(int threads) {
  const double n = std::max(threads, 1);
  device_profile p;
  p.flops_per_s = {2e10 * n, 5e10 * n, 5e9 * n, 5e10 * n, 1e11 * n, 2e9 * n};
  p.memory_bytes_per_s = 8e9 * std::min(n, 4.0); // few cores fill the memory's channels
  p.launch_s = 2e-6;
  p.chunk_s = 2e-5;
  p.submit_s = 4e-6;
  return p;
}

device_profile typical_gpu(uint32_t units, bool matrix_units) {
  const double n = std::max(units, 1u);
  device_profile p;
  const double half = matrix_units ? 8e11 : 2e11;
  p.flops_per_s = {1e10 * n, 1.5e11 * n, half * n, 1e11 * n, 3e11 * n, 3e10 * n};
  p.memory_bytes_per_s = 1.5e10 * n;
  p.launch_s = 1e-6;
  p.barrier_s = 1.5e-6;
  p.chunk_s = 4e-5;
  p.submit_s = 1e-5;
  p.up = p.down = {.bytes_per_s = 1.2e10, .latency_s = 1e-5};
  p.input_bytes_per_s = 8e9;
  return p;
}

device_profile typical_software_gpu(int cores) {
  const double n = std::max(cores, 1);
  device_profile p;
  p.flops_per_s = {1e9 * n, 3e9 * n, 1e9 * n, 1e9 * n, 2e9 * n, 1e9 * n};
  p.memory_bytes_per_s = 1e9 * n;
  p.launch_s = 5e-6;
  p.barrier_s = 5e-6;
  p.chunk_s = 6e-5;
  p.submit_s = 2e-5;
  p.up = p.down = {.bytes_per_s = 5e9, .latency_s = 5e-6};
  p.input_bytes_per_s = 8e9;
  return p;
}

} // namespace troupe
