#include "graph/weight.hpp"

#include "base/limits.hpp"

namespace troupe {
namespace {

hash128 key_of(const tensor& bytes, const std::string& source) {
  hasher h;
  h.add(bytes.type());
  h.add(std::span<const int64_t>(bytes.dims()));
  if (bytes.type() == dtype::string) {
    for (const auto& text : bytes.values<std::string>())
      h.add(text);
  } else if (source.empty() || bytes.bytes() <= limits::hashed_bytes) {
    h.add_bytes(bytes.data(), static_cast<size_t>(bytes.bytes()));
  } else {
    h.add(source);
  }
  return h.digest();
}

} // namespace

weight_ptr weight::from_tensor(tensor bytes, const std::string& source) {
  auto w = std::make_shared<weight>();
  w->type = bytes.type();
  w->dims = bytes.dims();
  w->key = key_of(bytes, source);
  w->leaf = std::move(bytes);
  return w;
}

} // namespace troupe
