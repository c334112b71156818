// Saved plans and profile files: JSON.
#include "fuzz/sanitizer_options.hpp"
#include "fuzz/untrusted.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::test::try_plan_file(std::as_bytes(std::span(data, size)));
  return 0;
}
