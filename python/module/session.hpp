// A session as Python holds it.
#pragma once

#include "value.hpp"

#include "troupe/model_file.hpp"
#include "troupe/session.hpp"

#include <mutex>
#include <set>

namespace troupe::python {

/// A session, the engine that it is of, and what is known of its outputs.
class shared_session {
public:
  shared_session(session model, std::shared_ptr<shared_engine> on, model_metadata about);

  /// Throws `errc::device_lost` after a fork.
  const session& get() const {
    check_not_forked();
    return *model_;
  }
  const std::shared_ptr<shared_engine>& on() const { return on_; }
  const model_metadata& about() const { return about_; }
  const std::vector<value_info>& inputs() const { return inputs_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  /// Whether a thread should look for the end of a run before it sleeps: there is a GPU, which may answer within
  /// microseconds.
  bool answers_fast() const { return answers_fast_; }

  /// Returns the outputs whose bytes are to be copied for Python, which may write to them: `shared_outputs`, found
  /// after the first run; all of them where that cannot be said. Without the GIL.
  std::set<std::string> to_copy(const named_tensors& inputs);

private:
  std::shared_ptr<session> model_;
  std::shared_ptr<shared_engine> on_;
  model_metadata about_;
  std::vector<value_info> inputs_;
  std::vector<std::string> output_names_;
  bool answers_fast_ = false;
  std::mutex mutex_;
  std::optional<std::set<std::string>> shared_; // guarded by mutex_
};

/// What happened in a run.
struct shared_trace {
  std::shared_ptr<const run_trace> trace;
};

/// Adds classes Session, BoundSession, Result, Trace and Stop to the module.
void bind_session(py::module_& module);
/// Adds class Engine to the module.
void bind_engine(py::module_& module);

/// Return counters and choices as dicts.
py::dict to_dict(const run_stats& stats);
py::dict to_dict(const session_stats& stats);
py::dict to_dict(const stream_stats& stats);
py::dict to_dict(const strategy_choice& choice);
py::dict to_dict(const device_summary& device);
py::dict to_dict(const device_stats& stats);
py::dict to_dict(const host_summary& host);

} // namespace troupe::python
