#include "base/hash_file.hpp"

#include <fstream>
#include <vector>

namespace troupe {

std::optional<hashed_file> hash_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  hashed_file found;
  hasher h;
  std::vector<char> piece(1 << 20);
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
    h.add_bytes(piece.data(), static_cast<size_t>(in.gcount()));
    found.bytes += static_cast<uint64_t>(in.gcount());
  }
  if (!in.eof() || in.bad())
    return std::nullopt;
  found.hash = h.digest();
  return found;
}

} // namespace troupe
