#include "graph/weight.hpp"

#include "base/content_hasher.hpp"
#include "base/limits.hpp"

namespace troupe {
namespace {

/// `what` follows: two kinds of keys never meet.
void add_kind(content_hasher& h, std::string_view what, const tensor& bytes) {
  h.add(what);
  h.add(bytes.type());
  h.add(std::span<const int64_t>(bytes.dims()));
}

hash128 key_of(const tensor& bytes, const std::string& source) {
  if (bytes.type() == dtype::string || source.empty() || bytes.bytes() <= limits::hashed_bytes)
    return content_hash(bytes);
  content_hasher h;
  add_kind(h, "source", bytes);
  h.add(source);
  return h.digest();
}

} // namespace

hash128 content_hash(const tensor& bytes) {
  content_hasher h;
  add_kind(h, "content", bytes);
  if (bytes.type() == dtype::string)
    for (const auto& text : bytes.values<std::string>())
      h.add(text);
  else
    h.add_block({static_cast<const std::byte*>(bytes.data()), static_cast<size_t>(bytes.bytes())});
  return h.digest();
}

weight_ptr weight::from_tensor(tensor bytes, const std::string& source) {
  auto w = std::make_shared<weight>();
  w->type = bytes.type();
  w->dims = bytes.dims();
  w->key = key_of(bytes, source);
  w->leaf = std::move(bytes);
  return w;
}

} // namespace troupe
