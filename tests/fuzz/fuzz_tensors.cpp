// Tensor files: .npy, .npz, .pb.
#include "fuzz/sanitizer_options.hpp"
#include "fuzz/untrusted.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::test::try_tensor_file(std::as_bytes(std::span(data, size)));
  return 0;
}
