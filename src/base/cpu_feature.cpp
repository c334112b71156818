#include "base/cpu_feature.hpp"

#include <array>
#include <cpuid.h>
#include <cstdlib>

namespace troupe {
namespace {

/// VNNI for registers of 256 bits: leaf 7, subleaf 1. Compilers do not all know its name.
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4) != 0;
}

bool processor_has(cpu_feature feature) {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  switch (feature) {
    case cpu_feature::avx2: return avx2;
    case cpu_feature::avx2_vnni: return avx2 && has_avx_vnni();
    case cpu_feature::avx512: return avx512;
    case cpu_feature::avx512_vnni: return avx512 && __builtin_cpu_supports("avx512vnni");
  }
  return false;
}

bool is_usable(cpu_feature feature) {
  const char* limit = std::getenv("DNNL_MAX_CPU_ISA");
  return processor_has(feature) && (!limit || allows(limit, feature));
}

} // namespace

bool allows(std::string_view max_isa, cpu_feature feature) {
  if (max_isa == "SSE41" || max_isa == "AVX")
    return false;
  if (max_isa == "AVX2")
    return feature == cpu_feature::avx2;
  if (max_isa == "AVX2_VNNI" || max_isa == "AVX2_VNNI_2")
    return feature == cpu_feature::avx2 || feature == cpu_feature::avx2_vnni;
  if (max_isa == "AVX512_CORE")
    return feature == cpu_feature::avx2 || feature == cpu_feature::avx512;
  return true;
}

bool cpu_has(cpu_feature feature) {
  static const std::array usable{is_usable(cpu_feature::avx2), is_usable(cpu_feature::avx2_vnni),
                                 is_usable(cpu_feature::avx512), is_usable(cpu_feature::avx512_vnni)};
  return usable[static_cast<size_t>(feature)];
}

} // namespace troupe
