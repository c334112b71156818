#include "device/resident.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

class host_resident final : public resident {
public:
  host_resident(tensor host, std::string device) : resident(std::move(host), std::move(device)) {}
};

} // namespace

device_tensor make_host_resident(tensor host, std::string device) {
  return std::make_shared<const host_resident>(std::move(host), std::move(device));
}

device_tensor copy_to_host_resident(const tensor& host, std::string device) {
  tensor copy(host.type(), host.dims());
  if (host.type() == dtype::string)
    std::copy_n(host.data<std::string>(), host.size(), copy.mutable_data<std::string>());
  else if (host.bytes() > 0)
    std::memcpy(copy.mutable_data(), host.data(), static_cast<size_t>(host.bytes()));
  return make_host_resident(std::move(copy), std::move(device));
}

} // namespace troupe
