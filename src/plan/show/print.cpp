#include "plan/show/print.hpp"

#include "base/printable.hpp"
#include "plan/cut/waves.hpp"
#include "plan/estimate/predict.hpp"
#include "plan/place/policy_library.hpp"
#include "plan/show/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace troupe {
namespace {

class text_printer {
public:
  text_printer(const plan& p, const bound_plan* bound)
      : p_(p), bound_(bound), reasons_(placement_reasons(p)), growing_(growing_caches(p)) {
    if (bound && p.segment_count == 1)
      predicted_ = predict(p, bound->dims);
  }

  std::string run() {
    print_summary();
    print_decisions();
    print_devices();
    if (predicted_ && p_.options.policy == placement_policy::pipeline)
      print_stages(predicted_->busy_s);
    print_reasons();
    for (const transfer& t : p_.transfers)
      print_transfer(t);
    for (chunk_id id = 0; id < p_.chunks.size(); ++id)
      print_chunk(id);
    for (const planned_body& body : p_.bodies)
      print_body(body);
    return std::move(out_);
  }

private:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  static std::string count(size_t number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  }

  std::string value_text(value_id v) const {
    const value& info = p_.program->values[v];
    return fmt::format("{} {}{}", printable(info.name), to_string(info.type), dims_text(p_, bound_, v));
  }

  size_t real_devices() const {
    return static_cast<size_t>(std::count_if(p_.devices.begin(), p_.devices.end(),
                                             [](const device_info& d) { return d.kind != device_kind::control; }));
  }

  void print_summary() {
    const auto crossing = std::count_if(p_.transfers.begin(), p_.transfers.end(), [&](const transfer& t) {
      return t.from && t.to && p_.chunks[*t.from].device != p_.chunks[*t.to].device;
    });
    size_t barriers = 0;
    for (const chunk& c : p_.chunks)
      barriers += c.barrier_count();
    print("plan {}: {} in {} on {}, {}, {} between devices, {}\n", to_hex(p_.key),
          count(p_.program->nodes.size(), "node"), count(p_.chunks.size(), "chunk"), count(real_devices(), "device"),
          count(p_.segment_count, "segment"), count(static_cast<size_t>(crossing), "transfer"),
          count(barriers, "barrier"));
  }

  /// The policy, what it says about its choice, and how long a run should take.
  void print_decisions() {
    print("policy {}", policy_name(p_.options));
    if (predicted_)
      print(", predicted {:.3f} ms", predicted_->makespan_s * 1e3);
    out_ += '\n';
    for (const std::string& remark : p_.remarks)
      print("note: {}\n", remark);
  }

  void print_devices() {
    for (device_index d = 0; d < real_devices(); ++d) {
      const auto nodes = static_cast<size_t>(std::count(p_.placement.begin(), p_.placement.end(), d));
      print("device {}: {} ({}), {}, weights {}", d, p_.devices[d].name, bytes_text(p_.devices[d].memory_bytes),
            count(nodes, "node"), bytes_text(p_.weight_bytes[d]));
      if (bound_) {
        const device_memory& m = bound_->layout->memory[d];
        print(", arena {} ({} live at most, {} without reuse, {} saved by reuse), inputs and outputs {}",
              bytes_text(m.arena_bytes), bytes_text(m.peak_bytes), bytes_text(m.bytes_without_reuse),
              bytes_text(m.bytes_without_reuse - m.arena_bytes), bytes_text(m.transfer_bytes));
      }
      if (const device_info& device = p_.devices[d]; is_remote(device))
        print(", on host {} (network {:.1f} MB/s there, {:.1f} MB/s back)", device.host,
              device.network_in.bytes_per_s / 1e6, device.network_out.bytes_per_s / 1e6);
      out_ += '\n';
    }
  }

  /// What each device of a pipeline is predicted to be busy in a run, in the order in which they begin.
  void print_stages(const std::vector<double>& busy_s) {
    std::vector<device_index> stages;
    for (const chunk& c : p_.chunks)
      if (c.device < real_devices() && std::find(stages.begin(), stages.end(), c.device) == stages.end())
        stages.push_back(c.device);
    if (stages.empty())
      return;
    const auto faster = [&](device_index a, device_index b) { return busy_s[a] < busy_s[b]; };
    const device_index slowest = *std::max_element(stages.begin(), stages.end(), faster);
    for (size_t i = 0; i < stages.size(); ++i) {
      const device_index d = stages[i];
      print("stage {} of {}, {}: {:.3f} ms", i + 1, stages.size(), p_.devices[d].name, busy_s[d] * 1e3);
      if (d == slowest && busy_s[d] > 0)
        print("; the slowest stage bounds the throughput at {:.3g} runs/s", 1 / busy_s[d]);
      out_ += '\n';
    }
  }

  /// Counts nodes by device and reason, so that a large model's are one line each.
  void print_reasons() {
    std::map<std::pair<device_index, std::string_view>, size_t> counts;
    for (size_t n = 0; n < reasons_.size(); ++n)
      ++counts[{p_.placement[n], reasons_[n].text}];
    for (const auto& [key, number] : counts)
      print("placed: {} on {}: {}\n", count(number, "node"), p_.devices[key.first].name, key.second);
  }

  std::string end_text(const std::optional<chunk_id>& chunk) const {
    return chunk ? fmt::format("{} (chunk {})", p_.devices[p_.chunks[*chunk].device].name, *chunk) : "caller";
  }

  void print_transfer(const transfer& t) {
    const auto bytes = bytes_in(p_, bound_, t.value);
    const auto network_s = network_seconds(p_, bound_, t);
    print("transfer: {} from {} to {}{}, {}{}\n", value_text(t.value), end_text(t.from), end_text(t.to),
          bytes ? ", " + bytes_text(*bytes) : "", to_string(t.route),
          network_s ? fmt::format(", {:.3f} ms", *network_s * 1e3) : "");
  }

  void print_chunk(chunk_id id) {
    const chunk& c = p_.chunks[id];
    print("chunk {} on {}, {}", id, p_.devices[c.device].name, count(c.nodes.size(), "node"));
    if (!c.wave_begin.empty())
      print(", {} ({} at most in one), {}", count(c.wave_count(), "wave"), widest_wave(p_, c),
            count(c.barrier_count(), "barrier"));
    if (p_.segment_count > 1)
      print(", segment {}", c.segment);
    if (!c.predecessors.empty())
      print(", after {}", fmt::join(c.predecessors, ", "));
    out_ += c.produces_outputs ? ", makes outputs\n" : "\n";
    print_values("upload  ", c.uploads);
    for (uint32_t i = 0, wave = 0; i < c.nodes.size(); ++i) {
      if (wave < c.wave_count() && c.wave_begin[wave] == i)
        print("  wave {}\n", wave++);
      print_node(c.nodes[i]);
    }
    print_values("download", c.downloads);
  }

  void print_values(const char* title, const std::vector<value_id>& values) {
    for (value_id v : values)
      print("  {} {}\n", title, value_text(v));
  }

  void print_node(node_id n) {
    const node& call = p_.program->nodes[n];
    print("  run      {} →", describe(call));
    for (value_id v : call.outputs)
      if (v != no_value)
        print(" {}{}", value_text(v),
              p_.storage[v] == v ? ""
                                 : fmt::format(" ({} of {})", is_part(p_, v) ? "part" : "view",
                                               printable(p_.program->values[p_.storage[v]].name)));
    if (is_joined(p_, call))
      print(" (of parts that are in place)");
    if (!reasons_[n].ordinary)
      print(" ({})", reasons_[n].text);
    if (growing_[n])
      print(" (in place where it is bound to {})", printable(p_.program->values[call.inputs[0]].name));
    out_ += '\n';
  }

  /// Bodies are plans too; they stand after the chunks, indented.
  void print_body(const planned_body& body) {
    print("{}, body '{}'\n", describe(p_.program->nodes[body.node]), body.name);
    std::istringstream lines(to_text(*body.compiled));
    for (std::string line; std::getline(lines, line);)
      print("  {}\n", line);
  }

  const plan& p_;
  const bound_plan* bound_;
  const std::vector<placement_reason> reasons_;
  const std::vector<bool> growing_;     // by node
  std::optional<prediction> predicted_; // if the dims are bound and all in one segment
  std::string out_;
};

} // namespace

std::string to_text(const plan& p, const bound_plan* bound) {
  return text_printer(p, bound).run();
}

} // namespace troupe
