#include "base/cpu_feature.hpp"

#include <array>
#include <cstdlib>

namespace troupe {
namespace {

bool processor_has(cpu_feature feature) {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  switch (feature) {
    case cpu_feature::avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
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
  if (max_isa == "AVX2" || max_isa == "AVX2_VNNI" || max_isa == "AVX2_VNNI_2")
    return feature == cpu_feature::avx2;
  return max_isa != "AVX512_CORE" || feature != cpu_feature::avx512_vnni;
}

bool cpu_has(cpu_feature feature) {
  static const std::array<bool, 3> usable{is_usable(cpu_feature::avx2), is_usable(cpu_feature::avx512),
                                          is_usable(cpu_feature::avx512_vnni)};
  return usable[static_cast<size_t>(feature)];
}

} // namespace troupe
