#include "session.hpp"

#include "options.hpp"
#include "run.hpp"

#include "troupe/inspect.hpp"
#include "troupe/monitor.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>

namespace troupe::python {
namespace {

/// A bound session; the inputs that its own outputs become are copied when they are given, since they stay.
struct shared_bound {
  std::shared_ptr<bound_session> state;
  std::shared_ptr<shared_session> of;
  std::set<std::string> bound_inputs;
};

py::list describe(const std::vector<value_info>& infos) {
  py::list all;
  for (const value_info& info : infos) {
    py::object dims = py::none();
    if (info.dims) {
      py::list each;
      for (const dim& d : *info.dims)
        each.append(d.is_constant() ? py::object(py::int_(d.constant())) : py::object(py::str(d.to_string())));
      dims = std::move(each);
    }
    all.append(py::make_tuple(info.name, static_cast<int>(info.type), std::string(to_string(info.type)), dims));
  }
  return all;
}

plan_format format_of(const std::string& name) {
  if (name == "text")
    return plan_format::text;
  if (name == "json")
    return plan_format::json;
  if (name == "dot")
    return plan_format::dot;
  throw error(errc::invalid_argument, "a plan has no format '" + name + "'; they are: text, json, dot");
}

std::string plan(const shared_session& s, const py::dict& inputs, const std::string& format) {
  const plan_format how = format_of(format);
  const run_request request = request_of(inputs, s);
  const py::gil_scoped_release unlocked;
  return s.get().plan(request.tensors, how);
}

/// None for inputs that lie on devices: their plan is that of such a run alone.
std::vector<std::string> warnings(const shared_session& s, const py::dict& inputs) {
  const run_request request = request_of(inputs, s);
  const py::gil_scoped_release unlocked;
  return request.options.device_inputs.empty() ? warnings_of(s.get(), request.tensors) : std::vector<std::string>();
}

void prepare(const shared_session& s, const py::dict& inputs, double timeout) {
  const run_request request = request_of(inputs, s);
  const py::gil_scoped_release unlocked;
  s.get().prepare(request.tensors, {.timeout = milliseconds_of(timeout)});
}

py::list compare(const shared_session& s, const py::dict& inputs) {
  const run_request request = request_of(inputs, s);
  std::vector<strategy_choice> choices;
  {
    const py::gil_scoped_release unlocked;
    choices = s.get().compare(request.tensors);
  }
  py::list all;
  for (const strategy_choice& c : choices)
    all.append(to_dict(c));
  return all;
}

py::object choice(const shared_session& s) {
  const std::optional<strategy_choice> chosen = s.get().choice();
  return chosen ? py::object(to_dict(*chosen)) : py::object(py::none());
}

template <class Stats>
py::dict stats_of(const shared_session& s, Stats (session::*get)() const) {
  const session& model = s.get();
  Stats stats;
  {
    const py::gil_scoped_release unlocked;
    stats = (model.*get)();
  }
  return to_dict(stats);
}

py::dict about(const shared_session& s) {
  const model_metadata& m = s.about();
  const auto text = [](const std::string& t) {
    return py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(t.data(), static_cast<Py_ssize_t>(t.size()), "replace"));
  };
  py::dict properties;
  for (const auto& [key, property] : m.properties)
    properties[text(key)] = text(property);
  return py::dict(py::arg("producer_name") = text(m.producer_name),
                  py::arg("producer_version") = text(m.producer_version), py::arg("domain") = text(m.domain),
                  py::arg("description") = text(m.description), py::arg("graph_name") = text(m.graph_name),
                  py::arg("graph_description") = text(m.graph_description), py::arg("version") = m.version,
                  py::arg("custom_metadata_map") = properties);
}

shared_bound bind(const std::shared_ptr<shared_session>& s,
                  const std::vector<std::pair<std::string, std::string>>& pairs, uint64_t checkpoint, bool heal) {
  shared_bound bound{.of = s};
  std::vector<output_binding> bindings;
  for (const auto& [output, input] : pairs) {
    bindings.push_back({output, input});
    bound.bound_inputs.insert(input);
  }
  const session& model = s->get();
  const py::gil_scoped_release unlocked;
  bound.state = own_outside_of_python(model.bind(std::move(bindings), {.checkpoint = checkpoint, .heal = heal}));
  return bound;
}

/// A step waits on a thread of its own, so that this one hears Ctrl-C.
shared_result step(const shared_bound& bound, const py::dict& inputs, const run_wishes& wishes, const stop_ptr& stop) {
  check_not_forked();
  run_request request = request_of(inputs, *bound.of, bound.bound_inputs);
  apply(wishes, request.options);
  std::stop_source mine;
  request.options.cancel = mine.get_token();
  const stop_link linked = forward(stop, mine);
  auto future = std::async(std::launch::async, [state = bound.state, request = std::move(request)]() mutable {
    return state->run(std::move(request.tensors), std::move(request.options));
  });
  return {.result = wait_for(std::move(future), mine, bound.of->answers_fast())};
}

value fetch(const shared_bound& bound, const std::string& output) {
  check_not_forked();
  const py::gil_scoped_release unlocked;
  return {.host = bound.state->fetch(output)};
}

py::list findings_of(const shared_trace& t) {
  py::list all;
  for (const finding& f : find_bottlenecks(*t.trace))
    all.append(py::dict(py::arg("severity") = std::string(to_string(f.severity)), py::arg("cause") = f.cause,
                        py::arg("where") = f.where, py::arg("what") = f.what, py::arg("lost") = f.lost,
                        py::arg("advice") = f.advice, py::arg("gain") = f.gain));
  return all;
}

/// Returns what devices did as columns: kind (0: a node, 1: a value came, 2: one left), name, device, bytes, begin and
/// end in seconds.
py::tuple work_rows(const shared_trace& t) {
  const std::vector<traced_work> all = work_of(*t.trace);
  const auto column = [&]<class T>(T (*of)(const traced_work&)) {
    py::array_t<T> values(static_cast<py::ssize_t>(all.size()));
    std::transform(all.begin(), all.end(), values.mutable_data(), of);
    return values;
  };
  py::list names, devices;
  for (const traced_work& w : all) {
    names.append(w.name);
    devices.append(w.device);
  }
  return py::make_tuple(column(+[](const traced_work& w) { return static_cast<uint8_t>(w.kind); }), names, devices,
                        column(+[](const traced_work& w) { return w.bytes; }),
                        column(+[](const traced_work& w) { return w.begin_s; }),
                        column(+[](const traced_work& w) { return w.end_s; }));
}

void bind_results(py::module_& module) {
  py::class_<stop_switch, stop_ptr>(module, "Stop")
      .def(py::init<>())
      .def(
          "request", [](stop_switch& s) { s.source.request_stop(); }, py::call_guard<py::gil_scoped_release>());
  py::class_<shared_trace>(module, "Trace")
      .def("json", [](const shared_trace& t) { return to_chrome_json(*t.trace); })
      .def("html", [](const shared_trace& t) { return to_html(*t.trace); })
      .def("paje", [](const shared_trace& t) { return py::bytes(to_paje(*t.trace)); })
      .def("chakra",
           [](const shared_trace& t) {
             py::list all;
             for (const std::string& text : to_chakra(*t.trace))
               all.append(py::bytes(text));
             return all;
           })
      .def("tasks_rec", [](const shared_trace& t) { return py::bytes(to_tasks_rec(*t.trace)); })
      .def("work", &work_rows)
      .def("findings", &findings_of);
  py::class_<shared_result>(module, "Result")
      .def("arrays", &shared_result::arrays)
      .def("values", [](const shared_result& r, const std::shared_ptr<shared_session>& s) { return r.values(s->on()); })
      .def("stats", [](const shared_result& r) { return to_dict(r.result.stats); })
      .def("trace", [](const shared_result& r) {
        return r.result.trace ? py::cast(shared_trace{r.result.trace}) : py::object(py::none());
      });
  py::class_<shared_bound>(module, "BoundSession")
      .def("run",
           [](const shared_bound& b, const py::dict& inputs, const std::vector<std::string>& keep, double timeout,
              bool trace, int priority, const stop_ptr& stop) {
             return step(b, inputs, {keep, timeout, trace, priority}, stop);
           })
      .def("fetch", &fetch)
      .def("step", [](const shared_bound& b) {
        check_not_forked();
        const py::gil_scoped_release unlocked;
        return b.state->step();
      });
}

} // namespace

shared_session::shared_session(session model, std::shared_ptr<shared_engine> on, model_metadata about)
    : model_(own_outside_of_python(std::move(model))), on_(std::move(on)), about_(std::move(about)),
      inputs_(model_->inputs()) {
  for (const value_info& output : model_->outputs())
    output_names_.push_back(output.name);
  if (const std::shared_ptr<engine> holder = on_->open)
    for (const device_summary& d : holder->devices())
      answers_fast_ = answers_fast_ || d.kind == "vulkan";
}

std::set<std::string> shared_session::to_copy(const named_tensors& inputs) {
  const std::lock_guard lock(mutex_);
  if (shared_)
    return *shared_;
  try {
    const std::vector<std::string> names = shared_outputs(*model_, inputs);
    shared_.emplace(names.begin(), names.end());
    return *shared_;
  } catch (const error&) { // of inputs that are on devices nothing is said; a device may have been lost since
    return {output_names_.begin(), output_names_.end()};
  }
}

void bind_session(py::module_& module) {
  bind_results(module);
  py::class_<shared_session, std::shared_ptr<shared_session>>(module, "Session")
      .def("inputs", [](const shared_session& s) { return describe(s.get().inputs()); })
      .def("outputs", [](const shared_session& s) { return describe(s.get().outputs()); })
      .def("optional_inputs", [](const shared_session& s) { return describe(optional_inputs(s.get())); })
      .def("about", &about)
      .def("run_arrays", &run_arrays)
      .def("run",
           [](const std::shared_ptr<shared_session>& s, const py::dict& inputs, const std::vector<std::string>& keep,
              double timeout, bool trace, int priority, const stop_ptr& stop) {
             return run(s, inputs, {keep, timeout, trace, priority}, stop);
           })
      .def("start",
           [](const std::shared_ptr<shared_session>& s, const py::dict& inputs, const std::vector<std::string>& keep,
              double timeout, bool trace, int priority, bool queued, py::object done) {
             return start(s, inputs, {keep, timeout, trace, priority}, queued, std::move(done));
           })
      .def("plan", &plan)
      .def("warnings", &warnings)
      .def("prepare", &prepare)
      .def("compare", &compare)
      .def("choice", &choice)
      .def("stats", [](const shared_session& s) { return stats_of(s, &session::stats); })
      .def("queue_stats", [](const shared_session& s) { return stats_of(s, &session::queue_stats); })
      .def("bind", &bind);
}

} // namespace troupe::python
