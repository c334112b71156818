// Where the time goes: what slows a traced run down, and how an engine and a session do over time.
//
//   troupe::monitor watch(engine, session);
//   …                                            // requests; watch.sample() now and then, e.g. each second
//   std::cout << to_text(watch.report());
#pragma once

#include "troupe/engine.hpp"

namespace troupe {

// -- one run

/// How much a finding matters.
enum class severity : uint8_t {
  note,     // worth knowing
  warning,  // costs a tenth of the time or more
  critical, // costs three tenths or more
};

/// Returns the enumerator's name.
TROUPE_API std::string_view to_string(severity how);

/// What keeps a run or a stream from going faster.
struct finding {
  troupe::severity severity = troupe::severity::note;
  /// For programs; of a run: "imbalance", "slow_device", "taking_turns", "moves", "inputs", "outputs", "small_chunks",
  /// "one_node", "fallback", "prediction"; of a stream: "queue_full", "queue_empty", "requests_late", "replica_lost",
  /// "replica_idle", "small_pieces".
  std::string cause;
  std::string where; // the device, devices joined by ", "; of a stream the replica; empty: all
  std::string what;  // in words, with figures
  double lost = 0;   // part of the time
  /// What to do, naming the option to change.
  std::string advice;
  /// Part of the time that following the advice is predicted to save; 0 if there is nothing to predict it from.
  double gain = 0;
};

/// Returns what slows a traced run down (`run_options::trace`), what gains most first; nothing if there is nothing to
/// gain.
///
/// A gain is computed from the trace: its chunks are played through again, in the order of their dependencies and
/// devices, without what the cause costs; work that would be elsewhere takes as much longer or shorter there as is
/// predicted.
TROUPE_API std::vector<finding> find_bottlenecks(const run_trace& trace);

// -- over time

/// A device's counters, and whose they are.
struct device_sample {
  std::string name;
  device_stats stats;
};

/// Counters of an engine and a session at one time.
struct monitor_sample {
  double at_s = 0;   // on any clock that only rises
  uint64_t runs = 0; // of plans; a request is one or, if it is cut, several
  stream_stats queue;
  std::vector<device_sample> devices;
};

/// How a figure goes over a window.
struct trend {
  std::string name; // "requests/s", "runs/s", "rows/s", "parallel efficiency", "utilisation of cpu"
  double now = 0;   // between the last two samples
  double mean = 0;  // over the window
  double slope = 0; // per cent of the mean a minute; 0 if it is no more than chance makes
};

/// A device over a window.
struct device_report {
  std::string name;
  double utilisation = 0; // the part of the time that it was busy
  device_stats stats;     // the newest: since it was opened
};

/// What samples say about the window from the first to the last of them.
struct monitor_report {
  double window_s = 0;
  size_t samples = 0;
  double requests_per_s = 0; // of the queue
  double runs_per_s = 0;
  double rows_per_s = 0; // of replicas; a request that runs whole counts as one
  /// Of the devices that were busy at all, as in `run_stats::parallel_efficiency`.
  double parallel_efficiency = 0;
  std::vector<device_report> devices;
  std::vector<finding> findings; // of the stream
  std::vector<trend> trends;     // none before there are five samples over ten seconds
  monitor_sample last;
};

/// Returns what samples say, which are in the order of their times; a default report if there are none. Counters that
/// fall, as those of a device that was opened again do, count from 0.
TROUPE_API monitor_report report_of(std::span<const monitor_sample> samples);

/// Returns a table for people.
TROUPE_API std::string to_text(const monitor_report& report);
/// Returns one line for each finding and one for its advice, e.g. "warning, cpu: …".
TROUPE_API std::string to_text(std::span<const finding> findings);

/// Returns one JSON object; of findings, an array.
TROUPE_API std::string to_json(const monitor_report& report);
TROUPE_API std::string to_json(std::span<const finding> findings);

/// Returns counters and gauges in Prometheus' text exposition format, version 0.0.4; their names begin with "troupe_".
TROUPE_API std::string to_prometheus(const monitor_report& report);

struct monitor_options {
  /// Samples that are older than this are forgotten, but for the newest two.
  std::chrono::milliseconds window = std::chrono::minutes(1);
};

/// Watches an engine and one of its sessions: its owner takes samples at any time. The engine must outlive it.
/// Thread-safe.
class TROUPE_API monitor {
public:
  /// Takes the first sample.
  monitor(const engine& devices, session model, const monitor_options& options = {});
  ~monitor();
  monitor(monitor&&) noexcept;
  monitor& operator=(monitor&&) noexcept;

  /// Takes a sample, which costs a message to each device and to the queue.
  void sample();

  /// Returns what the samples of the window say; takes none.
  monitor_report report() const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace troupe
