#include "plan/place/annotated.hpp"

#include "base/first_texts.hpp"
#include "graph/bodies.hpp"

#include <algorithm>

namespace troupe {
namespace {

std::optional<std::vector<device_index>> devices_for(const device_configuration& c,
                                                     std::span<const device_info> devices) {
  std::vector<device_index> found;
  for (const std::string& name : c.devices)
    if (const auto at = std::ranges::find(devices, name, &device_info::name); at != devices.end())
      found.push_back(static_cast<device_index>(at - devices.begin()));
  const auto count = static_cast<size_t>(c.count);
  if (found.size() == count)
    return found;
  found.clear();
  for (const bool fallback : {false, true})
    for (device_index d = 0; d < devices.size() && found.size() < count; ++d)
      if (devices[d].fallback == fallback)
        found.push_back(d);
  return found.size() == count ? std::optional(std::move(found)) : std::nullopt;
}

} // namespace

followed_configuration followed(const graph& g, std::span<const device_info> devices) {
  if (g.annotations)
    for (const device_configuration& c : g.annotations->configurations)
      if (auto found = devices_for(c, devices))
        return {&c, std::move(*found)};
  return {};
}

const node_annotation* annotation_of(const followed_configuration& c, const graph& g, const node& n) {
  if (!c.from)
    return nullptr;
  std::vector<std::string> results;
  for (value_id v : n.outputs)
    if (v != no_value)
      results.push_back(g.values[v].name);
  return c.from->find(n.name, results);
}

std::optional<device_index> stated_device(const followed_configuration& c, const node_annotation& a) {
  const std::optional<int64_t> index = a.device ? a.device : a.shardings.empty() ? a.stage : std::nullopt;
  if (!index || *index < 0 || *index >= c.from->count)
    return std::nullopt;
  return c.devices[static_cast<size_t>(*index)];
}

std::vector<std::string> annotation_remarks(const graph& g, std::span<const device_info> devices,
                                            std::span<const device_index> placement) {
  if (!g.annotations)
    return {};
  const followed_configuration c = followed(g, devices);
  const std::string& name = c.from ? c.from->name : g.annotations->configurations[0].name;
  if (!c.from)
    return {fmt::format("the file's configuration '{}' is for {} devices, and {} can be used: it is not followed", name,
                        g.annotations->configurations[0].count, devices.size())};
  std::vector<std::string> elsewhere, refused;
  for (node_id n = 0; n < static_cast<node_id>(g.nodes.size()); ++n) {
    const node_annotation* a = annotation_of(c, g, g.nodes[n]);
    if (a && !a->refused.empty())
      refused.push_back(fmt::format("{} ({})", describe(g.nodes[n]), a->refused));
    const auto stated = a && !has_body(g.nodes[n]) ? stated_device(c, *a) : std::nullopt;
    if (stated && *stated != placement[n])
      elsewhere.push_back(fmt::format("{} ({})", describe(g.nodes[n]), devices[placement[n]].name));
  }
  std::vector<std::string> remarks{fmt::format("placed as the file's configuration '{}' says", name)};
  if (!elsewhere.empty())
    remarks.push_back("on other devices than the file says: " + first_of(elsewhere));
  if (!refused.empty())
    remarks.push_back("what the file says of these nodes is not supported: " + first_of(refused));
  return remarks;
}

} // namespace troupe
