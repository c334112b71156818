#include "compat/onnxruntime/run.hpp"

#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/status.hpp"
#include "troupe/inspect.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::ort {
namespace {

using range = std::pair<const char*, const char*>;

bool has_bytes(const tensor& t) {
  return t.defined() && !holds_objects(t.type()) && t.bytes() > 0;
}

range range_of(const tensor& t) {
  return {t.data<char>(), t.data<char>() + t.bytes()};
}

std::vector<range> ranges_of(const named_tensors& tensors) {
  std::vector<range> all;
  for (const auto& [name, t] : tensors)
    if (has_bytes(t))
      all.push_back(range_of(t));
  return all;
}

/// Returns the same value in memory of its own, unless it has such already; `taken` are the ranges of others.
tensor own(const tensor& made, bool shared, std::vector<range>& taken) {
  if (is_container(made.type())) { // lists are the run's own, what is in them may not be
    tensor copy(made.type(), made.dims());
    std::ranges::transform(made.values<tensor>(), copy.mutable_data<tensor>(),
                           [&](const tensor& t) { return own(t, shared, taken); });
    return copy;
  }
  if (made.type() == dtype::string || shared)
    return copy_of(made);
  if (!has_bytes(made))
    return made;
  const range r = range_of(made);
  if (std::ranges::any_of(taken, [&](const range& t) { return r.first < t.second && t.first < r.second; }))
    return copy_of(made);
  taken.push_back(r);
  return made;
}

std::string names_of(const std::vector<value_info>& infos) {
  std::string names;
  for (const value_info& info : infos)
    names.append(names.empty() ? "" : ", ").append(info.name);
  return names;
}

std::string map_text(const map_types& types) {
  return "a map from " + std::string(to_string(types.key)) + " to " + std::string(to_string(types.value));
}

dtype type_of_input(const OrtSession& session, const char* name) {
  const auto found = session.input_types.find(std::string_view(&given(name, "the name of an input")));
  if (found == session.input_types.end())
    reject("the model has no input '" + std::string(name) + "'; it has: " + names_of(session.inputs));
  return found->second;
}

/// The model was sound when it was loaded: what is wrong with it in a run comes from values.
[[noreturn]] void rethrow_of_run(const error& e) {
  if (e.code() == errc::invalid_model)
    throw api_error(ORT_FAIL, e.what());
  throw e;
}

/// Gives the outputs to the client: into values that it made, else as new ones.
void hand_over(std::vector<OrtValue> made, const char* const* names, OrtValue** outputs) {
  for (size_t i = 0; i < made.size(); ++i)
    if (outputs[i])
      fill(*outputs[i], made[i], names[i]);
  std::vector<OrtValue**> filled;
  try {
    for (size_t i = 0; i < made.size(); ++i)
      if (!outputs[i]) {
        outputs[i] = make_handle<OrtValue>(std::move(made[i]));
        filled.push_back(&outputs[i]);
      }
  } catch (...) { // of memory that is short: the client gets all or none
    for (OrtValue** place : filled)
      ReleaseValue(std::exchange(*place, nullptr));
    throw;
  }
}

/// A run that was started: what its end needs. The client keeps all that the pointers point to until it is called.
struct started_run {
  const OrtSession& session;
  std::optional<std::string> profile_prefix;
  loan inputs;
  const char* const* names;
  OrtValue** outputs;
  size_t count;
  RunAsyncCallbackFn call;
  void* user_data;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

/// Counts the asynchronous runs of a session that need it.
void count_run(const OrtSession& session, int by) {
  const std::lock_guard lock(session.mutex);
  session.asynchronous += by;
  session.fewer.notify_all();
}

std::optional<std::string> profile_prefix_of(const OrtRunOptions* options) {
  return options ? options->profile_prefix : std::nullopt;
}

void end(started_run& run, run_outcome outcome) {
  OrtStatus* status = guarded([&] {
    if (outcome.failure) {
      run.inputs.wait(*run.session.sink);
      rethrow_of_run(*outcome.failure);
    }
    add_profile(run.session, run.profile_prefix, outcome.result, run.begin);
    hand_over(take_outputs(run.session, run.inputs.tensors(), outcome.result, run.names, run.count), run.names,
              run.outputs);
  });
  count_run(run.session, -1); // from here on the client may release it
  run.call(run.user_data, run.outputs, run.count, status);
}

} // namespace

loan::loan(const OrtSession& session, const named_values& inputs) {
  // The end of this token returns the loan: the client keeps the memory until then. Memory that is the value's own is
  // kept with it: a client may release the value while an asynchronous run reads it.
  const std::shared_ptr<const void> token(returned_.get(),
                                          [returned = returned_](const void*) { returned->release(); });
  for (size_t i = 0; i < inputs.count; ++i) {
    const char* name = (&given(inputs.names, "the names of the inputs"))[i];
    const OrtValue* value = (&given(inputs.values, "the inputs"))[i];
    const dtype type = type_of_input(session, name);
    if (const auto map = session.maps.find(std::string_view(name)); map != session.maps.end()) {
      add_map(name, value, map->second);
      continue;
    }
    tensor t = input_of(value, type, name);
    if (t.defined() && !is_container(t.type()) && t.size() > 0) {
      const auto kept = std::make_shared<std::pair<std::shared_ptr<const void>, tensor>>(token, std::move(t));
      const tensor& own = kept->second;
      t = tensor(own.type(), own.dims(), kept, own.data());
    }
    tensors_.insert_or_assign(name, std::move(t));
  }
  take_loosely(tensors_, session.model_inputs);
}

void loan::add_map(const std::string& name, const OrtValue* value, const map_types& types) {
  const auto& parts = given(value, "the input").parts;
  const bool is_map = value->kind == ONNX_TYPE_MAP;
  if (!is_map || parts[0].type() != types.key || parts[1].type() != types.value)
    reject("input '" + name + "' is " +
           (is_map ? map_text({.key = parts[0].type(), .value = parts[1].type()}) : "not a map") +
           "; the model takes " + map_text(types));
  tensors_.insert_or_assign(name + ".keys", parts[0]);
  tensors_.insert_or_assign(name + ".values", parts[1]);
}

void loan::wait(const log_sink& sink) {
  tensors_.clear();
  if (!returned_->try_acquire_for(std::chrono::minutes(1)))
    sink.write(ORT_LOGGING_LEVEL_ERROR, "a device may still read the inputs of a run that has ended");
}

run_options options_of(const OrtSession& session, const OrtRunOptions* options) {
  run_options how;
  how.trace = session.profile || (options && options->profile_prefix);
  if (options)
    how.cancel = options->token();
  return how;
}

void check_outputs(const OrtSession& session, const char* const* names, size_t count) {
  if (count == 0)
    reject("a run needs the name of at least one output");
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = &given((&given(names, "the names of the outputs"))[i], "the name of an output");
    if (std::ranges::find(session.outputs, name, &value_info::name) == session.outputs.end())
      reject("the model has no output '" + std::string(name) + "'; it has: " + names_of(session.outputs));
  }
}

std::vector<OrtValue> take_outputs(const OrtSession& session, const named_tensors& inputs, const run_result& result,
                                   const char* const* names, size_t count) {
  const std::set<std::string>& shared = session.shared_outputs(inputs);
  std::vector<range> taken = ranges_of(inputs);
  std::vector<OrtValue> values;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const tensor& made = result.outputs.at(names[i]);
    if (const auto zip = session.zips.find(std::string_view(names[i])); zip != session.zips.end())
      values.push_back(zipped(made, zip->second));
    else
      values.push_back(value_of(own(made, shared.contains(names[i]), taken)));
  }
  return values;
}

void fill(OrtValue& target, const OrtValue& made, const char* name) {
  if (target.kind != made.kind)
    reject("output '" + std::string(name) + "' is of another kind than the value given for it");
  if (made.kind != ONNX_TYPE_TENSOR) {
    target = made;
    return;
  }
  if (target.held.type() != made.held.type() || target.held.dims() != made.held.dims())
    reject("output '" + std::string(name) + "' is " + std::string(to_string(made.held.type())) + " " +
           to_string(made.held.dims()) + ", the value given for it " + std::string(to_string(target.held.type())) +
           " " + to_string(target.held.dims()));
  if (made.held.type() == dtype::string)
    std::ranges::copy(made.held.values<std::string>(), target.held.mutable_data<std::string>());
  else if (has_bytes(made.held))
    std::memcpy(target.held.mutable_data(), made.held.data(), static_cast<size_t>(made.held.bytes()));
}

void add_profile(const OrtSession& session, const std::optional<std::string>& run_prefix, const run_result& result,
                 std::chrono::steady_clock::time_point begin) {
  if (!result.trace)
    return;
  if (session.profile)
    session.profile->add(*result.trace, begin);
  if (run_prefix) {
    profile alone(*run_prefix);
    alone.add(*result.trace, std::chrono::steady_clock::now());
    alone.write();
  }
}

std::vector<OrtValue> run_model(const OrtSession& session, const OrtRunOptions* options, const named_values& inputs,
                                const char* const* names, size_t count) {
  check_outputs(session, names, count);
  loan lent(session, inputs);
  const auto begin = std::chrono::steady_clock::now();
  run_result result;
  try {
    result = session.model.run(lent.tensors(), options_of(session, options));
  } catch (const error& e) {
    lent.wait(*session.sink);
    rethrow_of_run(e);
  } catch (...) {
    lent.wait(*session.sink);
    throw;
  }
  add_profile(session, profile_prefix_of(options), result, begin);
  return take_outputs(session, lent.tensors(), result, names, count);
}

OrtStatus* Run(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
               const OrtValue* const* inputs, size_t input_count, const char* const* output_names, size_t output_count,
               OrtValue** outputs) noexcept {
  return guarded([&] {
    given(outputs, "the place for the outputs");
    hand_over(run_model(living(session, "the session"), options, {input_names, inputs, input_count}, output_names,
                        output_count),
              output_names, outputs);
  });
}

OrtStatus* RunAsync(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
                    const OrtValue* const* inputs, size_t input_count, const char* const* output_names,
                    size_t output_count, OrtValue** outputs, RunAsyncCallbackFn call, void* user_data) noexcept {
  return guarded([&] {
    const OrtSession& s = living(session, "the session");
    given(outputs, "the place for the outputs");
    given(call, "the callback");
    check_outputs(s, output_names, output_count);
    const auto run = std::make_shared<started_run>(started_run{s, profile_prefix_of(options),
                                                               loan(s, {input_names, inputs, input_count}),
                                                               output_names, outputs, output_count, call, user_data});
    count_run(s, 1);
    try {
      s.model.run_async(run->inputs.tensors(), options_of(s, options),
                        [run](run_outcome outcome) { end(*run, std::move(outcome)); });
    } catch (...) {
      count_run(s, -1);
      throw;
    }
  });
}

} // namespace troupe::ort

OrtSession::~OrtSession() {
  std::unique_lock lock(mutex);
  fewer.wait(lock, [&] { return asynchronous == 0; });
}

const std::set<std::string>& OrtSession::shared_outputs(const troupe::named_tensors& inputs) const {
  const std::lock_guard lock(mutex);
  if (shared)
    return *shared;
  try {
    for (const std::string& line : troupe::warnings_of(model, inputs))
      sink->write(ORT_LOGGING_LEVEL_WARNING, line);
    const std::vector<std::string> names = troupe::shared_outputs(model, inputs);
    shared.emplace(names.begin(), names.end());
  } catch (const troupe::error&) { // a device may have been lost since: then all are copied
    shared.emplace();
    for (const troupe::value_info& output : outputs)
      shared->insert(output.name);
  }
  return *shared;
}
