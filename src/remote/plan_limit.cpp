#include "remote/plan_limit.hpp"

#include <algorithm>
#include <unordered_set>

namespace troupe::remote {
namespace {

int64_t text_bytes(const tensor& t) {
  int64_t bytes = 0;
  for (const std::string& text : t.values<std::string>())
    bytes += static_cast<int64_t>(sizeof(uint32_t) + text.size());
  return bytes;
}

} // namespace

void check_strings(const graph& program, int64_t most) {
  std::unordered_set<const weight*> seen;
  int64_t total = 0, longest = -1;
  std::string name;
  for (const value& v : program.values) {
    if (!v.constant || v.constant->leaf.type() != dtype::string || !seen.insert(v.constant.get()).second)
      continue;
    const int64_t bytes = text_bytes(v.constant->leaf);
    total += bytes;
    if (bytes > longest) {
      longest = bytes;
      name = v.name;
    }
  }
  if (total > most)
    fail(errc::unsupported,
         "the model's constant strings have {} bytes, '{}' alone {}: they travel with its plan, which may have {} to a "
         "worker; run the model on devices of this host (--devices)",
         total, name, longest, most);
}

} // namespace troupe::remote
