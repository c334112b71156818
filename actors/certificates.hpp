// The private CA of a small cluster and the certificates of its members, as PEM files.
#pragma once

#include <filesystem>
#include <vector>

namespace troupe::actors {

struct certificate_wish {
  std::filesystem::path folder;
  /// Of the members; a name may be a host's name or IP address.
  std::vector<std::string> names;
  /// How long the members' certificates are valid; below zero: they expired so long ago (tests).
  int days = 90;
  /// Whether members' files that exist are overwritten. The CA's never are.
  bool force = false;
};

struct made_certificates {
  /// Whether the CA was made too.
  bool made_ca = false;
  std::filesystem::path ca;
  /// Of each name, in order.
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> members; // certificate, key
};

/// Makes FOLDER/ca.crt and ca.key unless both are there, and NAME.crt, NAME.key for each name: EC P-256, keys readable
/// by their owner alone. Throws `errc::invalid_argument` or `errc::io`; then no member's file has been changed, unless
/// writing failed.
made_certificates make_certificates(const certificate_wish& wish);

/// Throws `errc::invalid_argument` if others than its owner may read or change a key file.
void check_private(const std::filesystem::path& key);

} // namespace troupe::actors
