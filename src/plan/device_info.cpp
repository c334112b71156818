#include "plan/device_info.hpp"

#include "cost/cost_model.hpp"
#include "cost/profile_file.hpp"

#include <algorithm>
#include <map>

namespace troupe {

std::string_view to_string(device_kind kind) {
  switch (kind) {
    case device_kind::cpu: return "cpu";
    case device_kind::vulkan: return "vulkan";
    case device_kind::null: return "null";
    case device_kind::slow: return "slow";
    case device_kind::control: return "control";
  }
  return "unknown";
}

std::string_view to_string(transfer_path path) {
  switch (path) {
    case transfer_path::shared: return "shared";
    case transfer_path::mapped: return "mapped";
    case transfer_path::imported: return "imported";
    case transfer_path::staged: return "staged";
  }
  return "unknown";
}

std::vector<size_t> first_of_processors(std::span<const device_info> devices) {
  std::map<std::pair<std::string, std::string>, size_t> known;
  std::vector<size_t> first;
  for (size_t d = 0; d < devices.size(); ++d) {
    const std::string& processor = devices[d].processor;
    first.push_back(processor.empty() ? d : known.try_emplace({devices[d].host, processor}, d).first->second);
  }
  return first;
}

double network_seconds(double bytes, const device_info* from, const device_info* to) {
  const double out = from && is_remote(*from) ? link_seconds(bytes, from->network_out) : 0;
  const double in = to && is_remote(*to) ? link_seconds(bytes, to->network_in) : 0;
  return from && to && from->host == to->host ? 0 : std::max(out, in);
}

double move_seconds(double bytes, const device_info& from, const device_info& to) {
  return link_seconds(bytes, from.profile.down) + network_seconds(bytes, &from, &to) +
         link_seconds(bytes, to.profile.up);
}

profile_key key_of(const device_info& device) {
  return {std::string(to_string(device.kind)), device.description, device.units};
}

} // namespace troupe
