// A model on devices that need not exist, in virtual time: the plan, the strategy and the session are those of a real
// run; the devices and links are what a cluster file says (docs of the format: src/sim/README.md, examples in
// examples/clusters). It is in the laboratory, a library that a program links for it: troupe::lab.
//
//   troupe::simulation_options how{.cluster_file = "two_gpus.json"};
//   how.session.policy = troupe::placement_policy::heft;
//   std::cout << to_text(troupe::simulate("model.onnx", {{"input", image}}, how));
#pragma once

#include "troupe/options.hpp"
#include "troupe/results.hpp"

namespace troupe {

class built_model;
struct run_trace;

/// When requests come.
struct arrivals {
  enum class process : uint8_t {
    closed,  // `in_flight` at a time: the next one comes when one has its answer
    poisson, // `per_second` on average, whatever is answered
    listed,  // at `times_s`
  };
  process how = process::closed;
  size_t in_flight = 1;
  double per_second = 0;
  std::vector<double> times_s = {}; // seconds, ascending, from 0 to 1e9, as many as requests
  /// Of listed requests, as many as times, or none. Rows: how many each has, instead of the inputs' own; for models of
  /// which one dim counts rows (src/strategy/README.md), with a strategy. Deadlines: within how many seconds of its
  /// time each must be answered, else it fails with `errc::timeout`; 0: no limit. A strategy gives late requests up;
  /// without one they run to their ends.
  std::vector<int64_t> rows = {};
  std::vector<double> deadlines_s = {};
};

/// Reads listed arrivals of a file: a time in seconds a line; or CSV whose first line names the columns, in any order:
/// "arrival", in seconds, then if they are there "rows" and "deadline", in seconds after the arrival, empty for none.
/// Empty lines count for nothing. Throws `errc::io` if it cannot be read, and `errc::invalid_argument`, naming the
/// line, unless the times are from 0 to 1e9, ascending, and 1 to ten million.
TROUPE_API arrivals read_arrivals(const std::string& file);

/// A device that is lost at some time.
struct simulated_loss {
  std::string device;
  double at_ms = 0;
  double back_ms = 0; // when one comes back in its place; 0: never
};

/// A device that becomes slower, or faster again, at some time.
struct simulated_speed {
  std::string device;
  double at_ms = 0;
  double percent = 100; // of the speed that the cluster states; above 0
};

struct simulation_options {
  /// The cluster: a file, or its text; JSON or a platform of SimGrid.
  std::string cluster_file = {};
  std::string cluster_text = {};
  /// Measured profiles of devices that the cluster names; empty: the file in the user's cache folder.
  std::string profile_file = {};
  session_options session = {};
  /// Of a task graph (troupe/task_graph.hpp): the seconds of each task on each device of the cluster, in their orders,
  /// [task * devices + device], instead of what work and speeds say; what a device adds to each task, such as a launch,
  /// is in them. At most 20,000 tasks. Empty for none.
  std::vector<double> task_seconds = {};
  size_t requests = 1;
  /// Requests before these, one after the other, which count for nothing: by them strategies learn how fast their
  /// replicas are.
  size_t warm_up = 0;
  troupe::arrivals arrivals = {};
  std::vector<simulated_loss> losses = {};
  std::vector<simulated_speed> speeds = {};
  /// The standard deviation of the logarithm of each chunk's time; 0: none. Equal seeds give equal results.
  double noise = 0;
  uint64_t seed = 1;
  /// Whether `simulation_report::trace` is wanted: of the first request that is a run of its own.
  bool trace = false;
};

/// A device of a simulation.
struct simulated_device {
  std::string name;
  double utilisation = 0; // the part of the makespan in which it worked
  double work_ms = 0, copy_ms = 0;
  double bytes_in = 0, bytes_out = 0;
  int64_t memory_bytes = 0; // that it has for plans
  int64_t peak_bytes = 0;   // that plans held at once
  size_t chunks = 0;
};

/// A link that several devices or hosts share, in one direction or in both.
struct simulated_link {
  std::string name;
  double bytes = 0;
  double utilisation = 0; // the part of the makespan in which something was under way
};

/// A chunk on the critical path.
struct critical_chunk {
  std::string device;
  std::string first_node; // empty if the chunk only moves values
  size_t nodes = 0;
  double begin_ms = 0, end_ms = 0;
  /// Why it did not begin earlier: "start", "dependency" (it waited for the chunk before), "device" (its device was
  /// busy with it).
  std::string waited_for;
};

struct simulation_report {
  double makespan_ms = 0; // from the first request to the last answer
  size_t requests = 0;
  size_t failed = 0;
  std::string first_failure;
  size_t late = 0; // of those that failed: without an answer by their deadlines
  double requests_per_s = 0;
  double p50_ms = 0, p90_ms = 0, p99_ms = 0, max_ms = 0; // from a request to its answer
  strategy_choice choice;                                // of `strategy::automatic`: what it chose
  size_t chunks = 0;
  size_t plan_chunks = 0; // of the first plan that ran
  /// No schedule of these nodes on these devices is faster, whatever it moves where: the longest path with each node on
  /// its fastest device, and the best spread of all work (the linear program's bound, by duality). Of one request; 0 if
  /// they were not computed, for more than ten million pairs of node and kind of device.
  double path_bound_ms = 0, area_bound_ms = 0;
  std::vector<simulated_device> devices;
  std::vector<simulated_link> links; // that carried anything
  std::vector<critical_chunk>
      critical_path;                 // of the request that was answered last, the first chunk first; at most 1,000
  double plan_s = 0, simulate_s = 0; // that planning and simulating took, in real time
  std::shared_ptr<const run_trace> trace;
};

/// Simulates requests with these inputs, of which only types and shapes count, and elements that decide shapes. Those
/// that are not given are zeros of the declared shape, in which dims that `session_options::dims` does not say are 1.
/// Conditions that depend on data are true seven times out of eight. Throws `errc::invalid_argument`, `errc::io` for
/// the cluster, and what loading and planning throw; what happens to requests, such as a lack of memory, is in the
/// report.
TROUPE_API simulation_report simulate(const std::string& model, const named_tensors& inputs,
                                      const simulation_options& options);
TROUPE_API simulation_report simulate(const built_model& model, const named_tensors& inputs,
                                      const simulation_options& options);

/// Returns the devices of the cluster that the options name, in their order. Throws as `simulate` does for a cluster.
TROUPE_API std::vector<device_summary> cluster_devices(const simulation_options& options);

struct device_facts;
/// Returns devices as the text of a cluster file: `troupe cluster --capture`. Measured times of nodes are not in it.
TROUPE_API std::string to_cluster(const device_facts& devices);

/// Returns a table for people, and one JSON object.
TROUPE_API std::string to_text(const simulation_report& report);
TROUPE_API std::string to_json(const simulation_report& report);

} // namespace troupe
