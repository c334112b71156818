// Messages of other hosts: plans, bindings, facts about devices and results.
#include "fuzz/sanitizer_options.hpp"
#include "fuzz/untrusted.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::test::try_message(std::as_bytes(std::span(data, size)));
  return 0;
}
