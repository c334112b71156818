// A cluster in one process: an engine and workers with devices, their hosts and the ways between them, callers who run
// models, and a fate that makes trouble. All of it comes from a seed. What runs is the program itself; only sockets,
// threads, clocks and kernels are replaced.
#pragma once

#include "actors/engine_access.hpp"
#include "actors/worker.hpp"
#include "support/fault_device.hpp"
#include "support/random_models.hpp"
#include "troupe/engine.hpp"
#include "universe/story.hpp"
#include "universe/virtual_network.hpp"

#include <array>
#include <filesystem>
#include <thread>

namespace troupe::universe {

using test::random_source;

/// Which member of a cluster lies: its frames are not what its program sends (lying_host.hpp).
enum class liar : uint8_t {
  none,
  guest, // an engine of its own, with a caller
  worker // one of its own, which that guest has beside the other workers
};

/// What a seed decides about a cluster, before anything happens.
struct world_rules {
  uint64_t seed = 0;
  size_t homes = 1, workers = 1;
  size_t home_devices = 1;            // of each home; the first is always well
  size_t callers = 1, operations = 1; // of each caller
  size_t troubles = 0;
  bool failing_devices = false; // devices fail, stall, hang or die, the first of each home excepted
  int64_t memory = 0;           // of each device; 0: as they say
  double full_disk_chance = 0;  // of a weight's file
  bool is_busy = false;         // ways and devices are slow, so that much is in flight
  std::chrono::milliseconds device_timeout{2000};
  liar lies = liar::none;
};

/// A number among the rules, with its least value.
struct named_size {
  const char* name;
  size_t world_rules::*member;
  size_t least;
};
inline constexpr std::array<named_size, 6> sizes{{{"homes", &world_rules::homes, 1},
                                                  {"workers", &world_rules::workers, 1},
                                                  {"home_devices", &world_rules::home_devices, 1},
                                                  {"callers", &world_rules::callers, 1},
                                                  {"operations", &world_rules::operations, 1},
                                                  {"troubles", &world_rules::troubles, 0}}};

/// Draws the rules of a seed.
world_rules rules_of(uint64_t seed);

/// The errors that may come, beside those that a caller has asked for.
struct excuses {
  bool failing_devices = false;
  bool parted_workers = false; // a way between two workers was in trouble
  bool lost_devices = false;
  bool silences = false; // a way was held or slow: a device may have been silent for too long
};

/// A process with an engine, on a host.
struct home {
  std::string name;
  std::unique_ptr<engine> lives; // null in the end
};

/// A worker's host.
struct site {
  std::string name;
  std::filesystem::path weights;
  std::unique_ptr<actors::worker> worker; // null while its process is gone
  size_t devices = 0;                     // of that worker
  bool may_hang = false;                  // a device may never answer: what it reads is held until it does
  std::thread killed = {};                // ends the worker that was killed last

  /// Waits until nothing of a killed process is left. A real one is gone at once.
  void await_end() {
    if (killed.joinable())
      killed.join();
  }
};

/// See the top of this file.
class world {
public:
  world(const world_rules& rules, story& tale);
  ~world();
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  /// Lets callers and fate do what they do, then mends all and looks whether everything is well.
  void play();

  // -- for callers
  /// Opens an engine with one device and all workers, on a host of that name. Throws as `engine` does.
  engine open_guest(const std::string& name);
  story& tale() { return tale_; }
  const world_rules& rules() const { return rules_; }
  const excuses& excused() const { return excuses_; }

private:
  engine open_engine(const std::string& name, size_t devices, const std::vector<std::string>& more_hosts = {});
  void let_in_liar();
  void open_worker(site& at);
  static device_factory device_of(const std::string& name, const fault_script& script);
  fault_script script_of(bool may_fail);

  // -- fate (fate.cpp)
  void make_troubles();
  void kill(site& at);
  void drain(site& at);
  const char* activity_at(const site& at) const;
  void await_activity(const site& at);
  /// Counts what was in flight at a worker when something happens there.
  void note(const std::string& what, const site& at);
  void replace_device(home& at);
  void trouble_way(const std::string& a, const site& at);
  void damage_weights(const site& at);
  void mend_all();
  void set_usual_ways(const std::string& a, const std::string& b);

  // -- what must hold in the end (invariants.cpp)
  void check_hosts_are_back();
  void check_devices_are_back();
  void check_nothing_is_left();

  const world_rules rules_;
  story& tale_;
  random_source random_; // of fate
  const std::filesystem::path folder_;
  virtual_internet internet_;
  std::vector<site> sites_;
  std::vector<home> homes_;
  site liar_{.name = "liar"};
  std::unique_ptr<engine> misled_; // the guest that lies, or that has a worker that does
  excuses excuses_;
  size_t joined_ = 0; // devices, so far
  std::vector<std::shared_ptr<hang_latch>> latches_;
};

/// A caller's thread: runs models of all kinds, and accuses the world of each answer that is wrong. `is_misled`: the
/// engine lies, or has a worker that does; any answer will do, but there must be one.
void call_models(world& w, engine& with, size_t number, bool is_misled);

} // namespace troupe::universe
