#include "cli/calibrate.hpp"

#include "cli/command.hpp"
#include "measure/measure_nodes.hpp"
#include "plan/show/print.hpp"

#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <thread>
#include <unistd.h>

namespace troupe::cli {
namespace {

/// A file that lives as long as this object.
class temporary_file {
public:
  explicit temporary_file(const std::string& text) {
    const int file = mkstemp(path_.data());
    if (file < 0)
      fail(errc::io, "'{}' cannot be made", path_);
    close(file);
    std::ofstream out(path_, std::ios::binary);
    if (!out.write(text.data(), static_cast<std::streamsize>(text.size())).flush()) {
      std::filesystem::remove(path_);
      fail(errc::io, "'{}' cannot be written", path_);
    }
  }
  ~temporary_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  const std::string& path() const { return path_; }

private:
  std::string path_ = (std::filesystem::temp_directory_path() / "troupe-plan-XXXXXX").string();
};

/// Runs probes on one device of an engine.
class probe_session {
public:
  probe_session(engine& devices, const device_info& device) : engine_(devices), device_(device) {}

  std::vector<probe_times> operator()(const probe& p) const {
    try {
      const session s = engine_.load(p.model, {.pins = {{"*", device_.name}}, .fuse = false});
      if (p.chunks == 1)
        return time(s, p);
      const std::string plan = to_json(*plan_of(s, complete_inputs(s.inputs(), {}, {}, 1)), nullptr);
      const temporary_file file(cut_plan(plan, p.chunks));
      return time(engine_.load(p.model, {.plan_file = file.path(), .fuse = false}), p);
    } catch (const error& e) {
      if (e.code() == errc::unsupported || e.code() == errc::out_of_memory)
        return {};
      throw;
    }
  }

private:
  std::vector<probe_times> time(const session& s, const probe& p) const {
    named_tensors inputs = complete_inputs(s.inputs(), {}, {}, 1);
    for (auto& [name, t] : inputs)
      if (p.reachable_inputs) {
        tensor there = engine_.allocate(t.type(), t.dims());
        std::memcpy(there.mutable_data(), t.data(), static_cast<size_t>(t.bytes()));
        t = std::move(there);
      }
    warm_up(s, inputs, probe_warm_up_s(device_));
    std::vector<probe_times> runs;
    for (int i = 0; i < probe_repeats; ++i) {
      std::this_thread::sleep_for(std::chrono::duration<double>(p.pause_s));
      const run_stats untraced = s.run(inputs).stats;
      runs.push_back({untraced.total_ms * 1e-3, busy_seconds(untraced, device_.name),
                      node_seconds(*s.run(inputs, {.trace = true}).trace)});
    }
    return runs;
  }

  engine& engine_;
  const device_info& device_;
};

/// The fastest of a few values' ways to a device and back, in seconds.
struct value_times {
  double there_s = std::numeric_limits<double>::infinity();
  double back_s = std::numeric_limits<double>::infinity();
};

value_times time_values(engine& devices, const std::string& device, int64_t bytes) {
  constexpr int repeats = 5; // the first ones find out how much the link carries
  tensor value = devices.allocate(dtype::uint8, {bytes});
  std::memset(value.mutable_data(), 1, static_cast<size_t>(bytes));
  value_times best;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const device_tensor there = devices.put(value, device);
    const auto arrived = std::chrono::steady_clock::now();
    const tensor back = devices.fetch(there);
    const auto end = std::chrono::steady_clock::now();
    best.there_s = std::min(best.there_s, std::chrono::duration<double>(arrived - begin).count());
    best.back_s = std::min(best.back_s, std::chrono::duration<double>(end - arrived).count());
  }
  return best;
}

/// A host's device whose values cross nothing but the network, if it has one: its CPU.
std::optional<std::string> device_of(const engine& devices, const std::string& host) {
  std::optional<std::string> found;
  for (const device_info& d : device_infos(devices))
    if (d.host == host && d.kind != device_kind::null && (!found || d.kind == device_kind::cpu))
      found = d.name;
  return found;
}

} // namespace

measured_link calibrate_link(engine& devices, const std::string& host) {
  constexpr double value_s = 0.1;
  constexpr double least_bytes = 1 << 20, most_bytes = 64 << 20;
  measured_link link = troupe::calibrate_link(devices, host);
  const std::optional<std::string> device = device_of(devices, host);
  if (!device)
    return link;
  const double bytes =
      std::clamp(std::min(link.to_bytes_per_s, link.from_bytes_per_s) * value_s, least_bytes, most_bytes);
  try {
    const value_times best = time_values(devices, *device, static_cast<int64_t>(bytes));
    constexpr double shortest_s = 1e-6;
    link.to_bytes_per_s = bytes / std::max(best.there_s - link.round_trip_s, shortest_s);
    link.from_bytes_per_s = bytes / std::max(best.back_s - link.round_trip_s, shortest_s);
  } catch (const error& e) {
    if (e.code() != errc::out_of_memory && e.code() != errc::unsupported) // then messages say it
      throw;
  }
  return link;
}

measured_profile calibrate(engine& devices, size_t index, const std::function<void(double, double)>& progress) {
  const device_info device = device_infos(devices)[index];
  return calibrate(device, probe_session(devices, device), progress);
}

} // namespace troupe::cli
