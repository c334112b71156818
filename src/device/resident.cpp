#include "device/resident.hpp"

#include "ops/strided_copy.hpp"

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
  copy_all(host.view(), copy.mutable_ref());
  return make_host_resident(std::move(copy), std::move(device));
}

} // namespace troupe
