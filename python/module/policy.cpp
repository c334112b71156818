#include "policy.hpp"

#include "episode.hpp"
#include "keep_alive.hpp"

#include "troupe/error.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <span>

namespace troupe::python {
namespace {

/// Returns an array over the question's own memory, to be read only; it keeps the question.
template <class T>
py::array view(const std::vector<T>& values, std::vector<size_t> dims, const py::object& owner) {
  py::array_t<T> array(std::move(dims), values.data(), owner);
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

/// Returns an array of one figure for each edge.
template <class T, class Of>
py::array_t<T> by_edge(question& q, Of&& of) {
  py::array_t<T> array(static_cast<py::ssize_t>(q.edges().size()));
  for (size_t e = 0; e < q.edges().size(); ++e)
    array.mutable_at(static_cast<py::ssize_t>(e)) = of(e);
  return array;
}

py::array_t<int64_t> ends_of(question& q) {
  py::array_t<int64_t> array({static_cast<py::ssize_t>(q.edges().size()), py::ssize_t{2}});
  for (size_t e = 0; e < q.edges().size(); ++e) {
    array.mutable_at(static_cast<py::ssize_t>(e), 0) = q.edges()[e].from;
    array.mutable_at(static_cast<py::ssize_t>(e), 1) = q.edges()[e].to;
  }
  return array;
}

using places = py::array_t<uint32_t, py::array::c_style | py::array::forcecast>;

double makespan(question& q, const places& placed) {
  const std::span<const uint32_t> each(placed.data(), static_cast<size_t>(placed.size()));
  if (each.size() != q.asked().task_count ||
      std::any_of(each.begin(), each.end(), [&](uint32_t d) { return d >= q.asked().device_count; }))
    throw error(errc::invalid_argument, "a device is needed for each task");
  return q.makespan(each);
}

/// Returns the name alone of "Conv 'name'"; the whole text if there is none.
std::string name_of(std::string text) {
  const size_t first = text.find('\''), last = text.rfind('\'');
  return first < last && last != std::string::npos ? text.substr(first + 1, last - first - 1) : text;
}

py::list task_names(const question& q) {
  py::list names;
  for (uint32_t n = 0; n < q.asked().task_count; ++n)
    names.append(name_of(q.asked().task_name(q.asked().context, n)));
  return names;
}

template <class Of>
py::list by_device(const question& q, Of&& of) {
  py::list all;
  for (uint32_t d = 0; d < q.asked().device_count; ++d)
    all.append(of(q.asked().devices[d]));
  return all;
}

template <class To, class From>
py::array_t<To> copy_of(const std::vector<From>& values) {
  py::array_t<To> array(static_cast<py::ssize_t>(values.size()));
  std::copy(values.begin(), values.end(), array.mutable_data());
  return array;
}

py::array_t<float> observation(const episode& e) {
  py::array_t<float> seen({e.device_count(), episode::features});
  e.observe({seen.mutable_data(), static_cast<size_t>(seen.size())});
  return seen;
}

py::array_t<bool> allowed(const episode& e) {
  py::array_t<bool> where(static_cast<py::ssize_t>(e.device_count()));
  for (size_t d = 0; d < e.device_count(); ++d)
    where.mutable_data()[d] = e.allowed(d);
  return where;
}

/// Asks a `troupe.Policy`; what it raises is reported.
int32_t ask(PyObject* policy, const policy_problem* problem, policy_result* result) {
  const py::gil_scoped_acquire locked;
  const auto q = std::make_shared<question>(problem);
  int32_t status = 1;
  try {
    const places answer = py::reinterpret_borrow<py::object>(policy).attr("_place")(q).cast<places>();
    std::copy_n(answer.data(), problem->task_count, result->device);
    status = 0;
  } catch (py::error_already_set& e) {
    problem->report(problem->context, 0, std::string(py::str(e.value())).c_str());
  }
  q->close();
  return status;
}

} // namespace

std::shared_ptr<const own_policy> own_policy_of(const py::handle& function) {
  const py::object policy = py::module_::import("troupe._policy").attr("policy")(function);
  const std::shared_ptr<const void> kept = keep_alive(policy);
  return std::make_shared<const own_policy>(
      policy.attr("name").cast<std::string>(), [kept](const policy_problem* problem, policy_result* result) {
        return ask(static_cast<PyObject*>(const_cast<void*>(kept.get())), problem, result);
      });
}

void bind_policy(py::module_& module) {
  py::class_<question, std::shared_ptr<question>>(module, "Question")
      .def("times",
           [](const py::object& self) {
             auto& q = self.cast<question&>();
             return view(q.times(), {q.tasks(), q.devices()}, self);
           })
      .def("ranks",
           [](const py::object& self) {
             auto& q = self.cast<question&>();
             return view(q.ranks(), {q.tasks()}, self);
           })
      .def("edges", &ends_of)
      .def("bytes",
           [](question& q) {
             return by_edge<int64_t>(
                 q, [&](size_t e) { return q.asked().value_bytes(q.asked().context, q.edges()[e].value); });
           })
      .def("moves", [](question& q) { return by_edge<double>(q, [&](size_t e) { return q.mean_move_seconds(e); }); })
      .def("move_seconds", &question::move_seconds)
      .def("makespan", &makespan)
      .def("task_names", &task_names)
      .def("device_names",
           [](const question& q) { return by_device(q, [](const policy_device& d) { return std::string(d.name); }); })
      .def("memory",
           [](const question& q) { return by_device(q, [](const policy_device& d) { return d.memory_bytes; }); });
  py::class_<episode>(module, "Episode")
      .def(py::init<std::shared_ptr<question>, bool>())
      .def("restart", &episode::restart)
      .def("allowed", &allowed)
      .def("observe", &observation)
      .def("put", &episode::put)
      .def_property_readonly("done", &episode::done)
      .def_property_readonly("task", &episode::task)
      .def_property_readonly("makespan", &episode::makespan)
      .def_property_readonly("scale", &episode::scale)
      .def_property_readonly("order", [](const episode& e) { return copy_of<int64_t>(e.order()); })
      .def_property_readonly("devices", [](const episode& e) { return copy_of<int64_t>(e.devices()); });
}

} // namespace troupe::python
