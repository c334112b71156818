#include "plan/bind/fit_memory.hpp"

#include "ops/op.hpp"
#include "plan/arena_space.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr int max_rounds = 12;

/// Lowers the budgets of devices that were short, by how much they were.
void shrink(std::vector<int64_t>& budgets, const std::vector<device_info>& devices,
            const std::vector<int64_t>& needed) {
  for (size_t d = 0; d < budgets.size(); ++d) {
    if (needed[d] <= devices[d].memory_bytes)
      continue;
    const double ratio = static_cast<double>(devices[d].memory_bytes) / static_cast<double>(needed[d]);
    // By a fiftieth at least: with a ratio near 1, the rounds would end before anything is placed elsewhere.
    budgets[d] = static_cast<int64_t>(static_cast<double>(budgets[d]) * std::min(ratio, 0.98));
  }
}

/// What the devices got, the first ones one by one.
std::string describe_shares(const plan& p) {
  std::string text;
  size_t used = 0;
  for (device_index d = 0; d < p.devices.size(); ++d) {
    const auto nodes = std::count(p.placement.begin(), p.placement.end(), d);
    if (nodes > 0 && p.devices[d].kind != device_kind::control && used++ < devices_in_message)
      text += fmt::format("{}{} {} on '{}' with {} bytes of weights", text.empty() ? "" : ", ", nodes,
                          nodes == 1 ? "node" : "nodes", p.devices[d].name, p.weight_bytes[d]);
  }
  return used > devices_in_message ? fmt::format("{}, and so on over {} devices", text, used) : text;
}

/// Returns the real devices of a plan, each with the memory that is left of it.
std::vector<device_info> devices_beside(const plan& p, std::span<const int64_t> taken) {
  std::vector<device_info> devices = real_devices(p);
  for (size_t d = 0; d < taken.size(); ++d)
    devices.at(d).memory_bytes = std::max<int64_t>(0, devices[d].memory_bytes - taken[d]);
  return devices;
}

/// Binds the segments whose dims follow from `symbols`.
void bind_known_segments(const std::shared_ptr<const plan>& p, const bindings& symbols) {
  for (uint32_t segment = 0; segment < p->segment_count; ++segment) {
    const std::vector<std::string> names = symbols_of(*p, segment);
    if (!std::all_of(names.begin(), names.end(), [&](const std::string& name) { return symbols.contains(name); }))
      return;
    bind_segment(p, segment, symbols);
  }
}

} // namespace

std::shared_ptr<const plan> plan_that_fits(const plan& failed, const bindings& symbols, std::span<const int64_t> taken,
                                           const memory_shortage& first) {
  if (failed.options.saved)
    throw first;
  const std::vector<device_info> devices = devices_beside(failed, taken);
  plan_options options = failed.options;
  options.policy = placement_policy::greedy_memory;
  options.expected = symbols;
  options.budgets.clear();
  for (const device_info& d : devices)
    options.budgets.push_back(d.memory_bytes);
  std::string last = first.what();
  for (int round = 0; round < max_rounds; ++round) {
    std::shared_ptr<const plan> p;
    try {
      p = make_plan(failed.given, devices, options);
    } catch (const error& e) {
      if (e.code() != errc::out_of_memory)
        throw;
      fail(errc::out_of_memory, "the model does not fit the devices together. {}. On its own: {}", e.what(),
           first.what());
    }
    try {
      bind_known_segments(p, symbols);
      auto spilled = std::make_shared<plan>(*p);
      spilled->remarks.push_back(fmt::format("spilled, because {}; now {}", first.what(), describe_shares(*p)));
      return spilled;
    } catch (const memory_shortage& e) {
      last = e.what();
      shrink(options.budgets, devices, e.needed());
    }
  }
  fail(errc::out_of_memory, "the model does not fit the devices together: {}", last);
}

} // namespace troupe
