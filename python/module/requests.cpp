#include "errors.hpp"
#include "options.hpp"
#include "run.hpp"

namespace troupe::python {
namespace {

/// A call that waits for a run's end: objects of Python, to be released where the GIL is held.
struct awaited_call {
  py::object done;
  shared_result result;
  named_tensors given;

  /// On a thread of the engine. The Python side closes engines before the interpreter ends, so the GIL can be had.
  void end(run_outcome outcome) {
    if (!outcome.failure) {
      result.result = std::move(outcome.result);
      result.to_copy = result.of->to_copy(given);
    }
    const py::gil_scoped_acquire locked;
    release_dropped();
    const py::object call = std::move(done);
    try {
      if (outcome.failure)
        call(py::none(), exception_of(std::make_exception_ptr(*outcome.failure)));
      else
        call(std::move(result), py::none());
    } catch (py::error_already_set& e) {
      e.discard_as_unraisable("a callback of a run");
    }
  }
};

} // namespace

void apply(const run_wishes& wishes, run_options& options) {
  options.keep = wishes.keep;
  options.timeout = milliseconds_of(wishes.timeout);
  options.trace = wishes.trace;
  options.priority = wishes.priority;
}

stop_link forward(const stop_ptr& from, std::stop_source& to) {
  return from ? std::make_unique<std::stop_callback<std::function<void()>>>(from->source.get_token(),
                                                                            [&to] { to.request_stop(); })
              : nullptr;
}

shared_result run(const std::shared_ptr<shared_session>& s, const py::dict& inputs, const run_wishes& wishes,
                  const stop_ptr& stop) {
  const session& model = s->get();
  run_request request = request_of(inputs, *s);
  apply(wishes, request.options);
  std::stop_source mine;
  request.options.cancel = mine.get_token();
  const stop_link linked = forward(stop, mine);
  shared_result r{.of = s, .taken = ranges_of(request.tensors)};
  const named_tensors given = request.tensors;
  std::future<run_result> future;
  {
    const py::gil_scoped_release unlocked; // a queue that is full waits; so does a strategy's choice
    future = model.run_async(std::move(request.tensors), request.options);
  }
  r.result = wait_for(std::move(future), mine, s->answers_fast());
  const py::gil_scoped_release unlocked;
  r.to_copy = s->to_copy(given);
  return r;
}

py::list run_arrays(const std::shared_ptr<shared_session>& s, const std::optional<std::vector<std::string>>& names,
                    const py::dict& inputs, const stop_ptr& stop) {
  const shared_result r = run(s, inputs, {}, stop);
  hand_over give{.to_copy = &r.to_copy, .taken = r.taken};
  py::list arrays;
  for (const std::string& name : names ? *names : s->output_names()) {
    const auto found = r.result.outputs.find(name);
    if (found == r.result.outputs.end())
      throw error(errc::invalid_argument, "the model has no output '" + name + "'");
    arrays.append(give(name, found->second));
  }
  return arrays;
}

stop_ptr start(const std::shared_ptr<shared_session>& s, const py::dict& inputs, const run_wishes& wishes, bool queued,
               py::object done) {
  const session& model = s->get();
  run_request request = request_of(inputs, *s);
  apply(wishes, request.options);
  auto stop = std::make_shared<stop_switch>();
  request.options.cancel = stop->source.get_token();
  auto call = std::make_shared<awaited_call>();
  call->done = std::move(done);
  call->result.of = s;
  call->result.taken = ranges_of(request.tensors);
  call->given = request.tensors;
  // The callback is destroyed on any thread; the Python object in it has gone by then, unless the run could not be
  // started.
  const auto ended = [call](run_outcome outcome) { call->end(std::move(outcome)); };
  try {
    const py::gil_scoped_release unlocked;
    if (queued)
      model.submit(std::move(request.tensors), request.options, ended);
    else
      model.run_async(std::move(request.tensors), request.options, ended);
  } catch (...) {
    call->done = {};
    throw;
  }
  return stop;
}

} // namespace troupe::python
