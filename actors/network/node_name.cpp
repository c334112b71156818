#include "actors/network/node_name.hpp"

#include "base/error.hpp"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>

namespace troupe::actors {
namespace {

using data = caf::node_id::default_data;

// Process numbers of Linux are below 2^22: with this bit it is a name of ours.
constexpr uint32_t ours = uint32_t{1} << 31;
constexpr size_t nonce_size = 4;

/// Returns the host's part of the name: the beginning that is given, and the hash.
data::host_id_type host_part(uint32_t process, const data::host_id_type& beginning, const std::string& certificate) {
  std::string text = "troupe node";
  text.append(reinterpret_cast<const char*>(&process), sizeof process);
  text.append(beginning.begin(), beginning.begin() + nonce_size);
  text += certificate;
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), hash.data(), &size, EVP_sha256(), nullptr) != 1)
    fail(errc::internal, "OpenSSL cannot hash a node's name");
  data::host_id_type part = beginning;
  std::copy_n(hash.begin(), part.size() - nonce_size, part.begin() + nonce_size);
  return part;
}

} // namespace

caf::node_id make_node_name(const std::string& certificate) {
  uint32_t process = 0;
  data::host_id_type beginning{};
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&process), sizeof process) != 1 ||
      RAND_bytes(beginning.data(), nonce_size) != 1)
    fail(errc::internal, "OpenSSL has no random numbers");
  process |= ours;
  return caf::make_node_id(process, host_part(process, beginning, certificate));
}

bool may_be_named(const caf::node_id& name, const std::string& certificate) {
  if (!name || name->implementation_id() != data::class_id)
    return false;
  const auto& parts = static_cast<const data&>(*name);
  if ((parts.process_id() & ours) == 0 || certificate.empty()) // without TLS everybody may be anybody
    return true;
  return parts.host_id() == host_part(parts.process_id(), parts.host_id(), certificate);
}

} // namespace troupe::actors
