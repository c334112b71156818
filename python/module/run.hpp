// One run from Python: its inputs taken from a dict, the wait for it, its outputs handed over.
#pragma once

#include "session.hpp"

#include <functional>
#include <future>
#include <optional>

namespace troupe::python {

/// What Python gives for a run.
struct run_request {
  named_tensors tensors;
  run_options options; // inputs that are on a device among them
};

/// Takes a dict from names to arrays and values, loosely (troupe/inspect.hpp). Arrays' memory is read where it is,
/// until the run has ended; that of those in `copied` is copied. Throws `errc::invalid_input`.
run_request request_of(const py::dict& inputs, const shared_session& s, const std::set<std::string>& copied = {});

/// Where a run's inputs are, to tell whether an output is one of them.
using memory_ranges = std::vector<std::pair<const char*, const char*>>;
memory_ranges ranges_of(const named_tensors& tensors);

/// How outputs become arrays.
struct hand_over {
  const std::set<std::string>* to_copy; // null: all
  memory_ranges taken;                  // copied as well: inputs; outputs join them
  py::array operator()(const std::string& name, const tensor& output);
};

/// Waits without the GIL; Ctrl-C, or what else a signal's handler raises, asks `stop` for the end of the run and is
/// thrown when that has come.
run_result wait_for(std::future<run_result> future, std::stop_source& stop, bool answers_fast);

/// What ends runs from outside of them: RunOptions.terminate, a Future's cancel.
struct stop_switch {
  std::stop_source source;
};
using stop_ptr = std::shared_ptr<stop_switch>;

/// How a run is asked for, beside its inputs.
struct run_wishes {
  std::vector<std::string> keep;
  double timeout = 0; // seconds
  bool trace = false;
  int priority = 0;
};

/// What a run gave, until Python asks for it.
struct shared_result {
  run_result result;
  std::shared_ptr<shared_session> of; // null: outputs are copied
  std::set<std::string> to_copy;
  memory_ranges taken;

  py::dict arrays() const {
    hand_over give{.to_copy = of ? &to_copy : nullptr, .taken = taken};
    py::dict all;
    for (const auto& [name, output] : result.outputs)
      all[py::str(name)] = give(name, output);
    return all;
  }

  /// Outputs in the host's memory and those kept on devices, as values.
  py::dict values(const std::shared_ptr<shared_engine>& on) const {
    py::dict all;
    for (const auto& [name, output] : result.outputs)
      all[py::str(name)] = value{.host = output};
    for (const auto& [name, output] : result.kept)
      all[py::str(name)] = value{.device = output, .on = on};
    return all;
  }
};

/// Runs a session's model, without the GIL; `stop` may be null. Throws what `session::run` throws, and what `wait_for`
/// does.
shared_result run(const std::shared_ptr<shared_session>& s, const py::dict& inputs, const run_wishes& wishes,
                  const stop_ptr& stop);

/// As `run`, and gives the arrays of some outputs in the order of `names`; of none: all, in the model's order.
py::list run_arrays(const std::shared_ptr<shared_session>& s, const std::optional<std::vector<std::string>>& names,
                    const py::dict& inputs, const stop_ptr& stop);

/// Starts a run, or puts a request into the queue; calls `done(result, None)` or `done(None, exception)` on a thread of
/// the engine.
stop_ptr start(const std::shared_ptr<shared_session>& s, const py::dict& inputs, const run_wishes& wishes, bool queued,
               py::object done);

/// Asks for what a run is to do beside computing.
void apply(const run_wishes& wishes, run_options& options);

/// Passes a stop on to one run, as long as what is returned lives; null for none.
using stop_link = std::unique_ptr<std::stop_callback<std::function<void()>>>;
stop_link forward(const stop_ptr& from, std::stop_source& to);

} // namespace troupe::python
