// Which of the processor's instructions kernels may use: all that it has, or fewer if oneDNN's own variable says so.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

/// Instructions that kernels are written for, beyond those that the compiler may use everywhere.
enum class cpu_feature : uint8_t {
  avx2,        // with FMA
  avx2_vnni,   // for registers of 256 bits; with AVX2 and FMA
  avx512,      // F, BW, VL and DQ
  avx512_vnni, // with all of `avx512`
};

/// Returns whether `max_isa`, a value of oneDNN's variable DNNL_MAX_CPU_ISA, allows `feature`. As for oneDNN, a value
/// that it does not know limits nothing.
bool allows(std::string_view max_isa, cpu_feature feature);

/// Returns whether this processor has `feature` and DNNL_MAX_CPU_ISA allows it. So one variable makes kernels and
/// oneDNN run as on a lesser processor. It is read once.
bool cpu_has(cpu_feature feature);

} // namespace troupe
