// Model file → rewrite → plan → one run on the CPU. Models are changed as models, not only as bytes.
#include "fuzz/model_mutator.hpp"
#include "fuzz/sanitizer_options.hpp"
#include "fuzz/untrusted.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

bool parse(onnx::ModelProto& m, const uint8_t* data, size_t size) {
  return m.ParsePartialFromArray(data, static_cast<int>(size)) && m.has_graph();
}

/// Writes a model over the bytes; if it is too large, the bytes are changed instead.
size_t write(const onnx::ModelProto& m, uint8_t* data, size_t size, size_t max_size) {
  const size_t bytes = m.ByteSizeLong();
  if (bytes == 0 || bytes > max_size || !m.SerializePartialToArray(data, static_cast<int>(bytes)))
    return LLVMFuzzerMutate(data, size, max_size);
  return bytes;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = std::as_bytes(std::span(data, size));
  troupe::test::try_model(model, troupe::test::variant_of(model));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  constexpr unsigned bytes_once_in = 12;
  troupe::test::mutation_random random(seed);
  onnx::ModelProto m;
  if (random() % bytes_once_in == 0 || !parse(m, data, size))
    return LLVMFuzzerMutate(data, size, max_size);
  troupe::test::mutate_model(m, random);
  return write(m, data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other, size_t other_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  troupe::test::mutation_random random(seed);
  onnx::ModelProto m, from;
  if (!parse(m, data, size) || !parse(from, other, other_size))
    return 0;
  troupe::test::cross_models(m, from, random);
  const size_t bytes = m.ByteSizeLong();
  return bytes <= max_size && m.SerializePartialToArray(out, static_cast<int>(bytes)) ? bytes : 0;
}
