// What a session knows about its model: from inputs to a bound plan, with everything cached that can be used again.
//
// Three levels, each a cache: the model is specialised to the ranks of inputs whose shape the file does not state and to the
// values of inputs that decide shapes (rewrite), planned for a device set, and bound to concrete dims. A change of any of
// them is a miss; a change of the device set forgets everything below it.
// Not thread-safe: the session's coordinator is the only user.
#pragma once

#include "actors/model.hpp"

#include <list>
#include <unordered_map>
#include <utility>

namespace troupe::actors {

/// What one run needs of the caches.
struct prepared_run {
  planned_model_ptr source;
  bindings symbols; // what the inputs say
  bool cached = false;
};

class session_plans {
public:
  session_plans(model_ptr m, std::vector<device_info> devices);

  /// Plans ahead where that needs no inputs, so that a model's errors show when it is loaded.
  void prepare_ahead();

  /// Returns what a run with these inputs executes. Throws what checking, rewriting and planning throw.
  prepared_run prepare(const named_tensors& inputs);

  /// Returns a segment bound to `symbols`, from the cache where it is there.
  /// Sets `*cached` to false where it was not.
  bound_plan_ptr bind(const planned_model_ptr& planned, uint32_t segment, const bindings& symbols,
                      bool* cached = nullptr);

  /// Removes a device (an index among the engine's devices) from the set: all plans are forgotten.
  void remove_device(size_t device);
  /// Forgets one bound plan, because it could not be installed.
  void forget(uint64_t bound_plan);

  /// Returns ids of bound plans that have left the cache since the last call.
  std::vector<uint64_t> take_evicted() { return std::exchange(evicted_, {}); }

  const session_stats& stats() const { return stats_; }
  session_stats& stats() { return stats_; }

private:
  struct specialisation {
    std::string key;
    std::shared_ptr<const graph> program;
    planned_model_ptr planned; // null after a change of the device set
  };
  struct bound_entry {
    std::string key;
    bound_plan_ptr bound;
  };

  specialisation& specialise(const named_tensors& inputs);
  planned_model_ptr make_planned(const std::shared_ptr<const graph>& program);
  void erase(std::list<bound_entry>::iterator entry);

  model_ptr model_;
  std::vector<device_info> devices_;
  std::vector<size_t> usable_;                                               // indices into devices_
  std::list<specialisation> specialisations_;                                // most recently used first
  std::list<bound_entry> bound_;                                             // most recently used first
  std::unordered_map<std::string, std::list<bound_entry>::iterator> by_key_; // of bound_
  std::vector<uint64_t> evicted_;
  session_stats stats_;
};

} // namespace troupe::actors
