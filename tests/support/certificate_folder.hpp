// A cluster's CA and certificates in a temporary folder.
#pragma once

#include "actors/certificates.hpp"
#include "actors/network.hpp"

#include <unistd.h>

namespace troupe::test {

class certificate_folder {
public:
  /// Makes certificates for the names.
  explicit certificate_folder(const std::vector<std::string>& names, int days = 90) {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-keys-XXXXXX").string();
    path_ = mkdtemp(name.data());
    if (!names.empty())
      actors::make_certificates({.folder = path_, .names = names, .days = days});
  }
  ~certificate_folder() { std::filesystem::remove_all(path_); }
  certificate_folder(const certificate_folder&) = delete;
  certificate_folder& operator=(const certificate_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  host_credentials of(const std::string& name) const {
    return {file(name + ".crt"), file(name + ".key"), file("ca.crt")};
  }

private:
  std::filesystem::path path_;
};

} // namespace troupe::test
