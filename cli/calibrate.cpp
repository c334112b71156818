#include "cli/calibrate.hpp"

#include "cli/command.hpp"
#include "measure/measure_nodes.hpp"
#include "plan/show/print.hpp"

#include <cstring>
#include <fstream>
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

} // namespace

measured_profile calibrate(engine& devices, size_t index, const std::function<void(double, double)>& progress) {
  const device_info device = device_infos(devices)[index];
  return calibrate(device, probe_session(devices, device), progress);
}

} // namespace troupe::cli
