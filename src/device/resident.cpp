#include "device/resident.hpp"

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

} // namespace troupe
