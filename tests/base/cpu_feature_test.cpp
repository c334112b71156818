// Limits of the processor's instructions by oneDNN's variable.
#include "base/cpu_feature.hpp"
#include "support/catch.hpp"

using namespace troupe;

TEST_CASE("oneDNN's variable limits the instructions of all kernels", "[base]") {
  using enum cpu_feature;
  for (const cpu_feature f : {avx2, avx2_vnni, avx512, avx512_vnni}) {
    CHECK_FALSE(allows("SSE41", f));
    CHECK_FALSE(allows("AVX", f));
    CHECK(allows("AVX2", f) == (f == avx2));
    CHECK(allows("AVX2_VNNI", f) == (f == avx2 || f == avx2_vnni));
    CHECK(allows("AVX512_CORE", f) == (f == avx2 || f == avx512));
    for (const char* limit : {"AVX512_CORE_VNNI", "AVX512_CORE_AMX", "DEFAULT", "", "avx2"})
      CHECK(allows(limit, f));
  }
}
