// A session: a model on the process's devices.
#pragma once

#include "compat/onnxruntime/log.hpp"
#include "compat/onnxruntime/profile.hpp"
#include "compat/onnxruntime/zip_maps.hpp"
#include "troupe/engine.hpp"
#include "troupe/model_file.hpp"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

namespace troupe::ort {

/// What a map's keys and its values are.
struct map_types {
  dtype key = dtype::undefined, value = dtype::undefined;
};

} // namespace troupe::ort

/// Immutable but for what the mutex guards: several threads may run it at once.
struct OrtSession {
  std::shared_ptr<troupe::engine> on;
  troupe::session model;
  std::shared_ptr<const troupe::ort::log_sink> sink;
  troupe::model_metadata about;
  std::vector<troupe::value_info> model_inputs; // as troupe has them: a map is two
  std::vector<troupe::value_info> inputs;       // that a run must be given
  std::vector<troupe::value_info> outputs;
  std::vector<troupe::value_info> overridable;                     // inputs for which the file has a value
  std::map<std::string, troupe::dtype, std::less<>> input_types;   // of both
  std::map<std::string, troupe::ort::map_types, std::less<>> maps; // inputs; of undefined type there
  troupe::ort::zips_by_name zips;                                  // outputs that are sequences of maps
  std::unique_ptr<troupe::ort::profile> profile;                   // null unless the client asked for it
  uint64_t made_ns = 0;                                            // since 1970

  /// Returns the outputs of which a run's value is not the run's own (troupe/inspect.hpp), asked once, after a first
  /// run with such inputs; tells the client's log what the engine warns of.
  const std::set<std::string>& shared_outputs(const troupe::named_tensors& inputs) const;

  /// Waits for asynchronous runs: a client that releases the session too early would take it from them.
  ~OrtSession();

  mutable std::mutex mutex;
  mutable std::optional<std::set<std::string>> shared;
  mutable int asynchronous = 0; // runs that still need the session
  mutable std::condition_variable fewer;
};
