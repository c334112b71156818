#include "arrays.hpp"
#include "options.hpp"
#include "session.hpp"

#include "troupe/engine.hpp"
#include "troupe/inspect.hpp"
#include "troupe/simulation.hpp"

#include <pybind11/stl.h>

namespace troupe::python {
namespace {

std::shared_ptr<shared_engine> open_engine(const py::dict& given) {
  check_not_forked();
  const engine_options options = engine_options_of(given);
  note_engine();
  const py::gil_scoped_release unlocked;
  return std::make_shared<shared_engine>(shared_engine{own_outside_of_python(engine(options))});
}

/// `path` is bytes, as the file system has them.
std::shared_ptr<shared_session> load_file(const std::shared_ptr<shared_engine>& on, const py::bytes& path,
                                          const py::dict& given) {
  const std::shared_ptr<engine> holder = on->get();
  const given_session options = session_options_of(given);
  const std::string file = path;
  const py::gil_scoped_release unlocked;
  session loaded = holder->load(file, options);
  return std::make_shared<shared_session>(std::move(loaded), on, read_metadata(file));
}

/// `folder`: where external data is looked for; empty: nowhere.
std::shared_ptr<shared_session> load_bytes(const std::shared_ptr<shared_engine>& on, const py::buffer& model,
                                           const std::string& folder, const py::dict& given) {
  const std::shared_ptr<engine> holder = on->get();
  const given_session options = session_options_of(given);
  const py::buffer_info info = model.request(); // keeps the bytes where they are
  const std::span bytes = span_of(info);
  const py::gil_scoped_release unlocked;
  session loaded = holder->load(parse_model(bytes, folder), options);
  return std::make_shared<shared_session>(std::move(loaded), on, parse_metadata(bytes));
}

template <class List>
py::list dicts_of(const List& all) {
  py::list shown;
  for (const auto& one : all)
    shown.append(to_dict(one));
  return shown;
}

value put(const std::shared_ptr<shared_engine>& on, const value& v, const std::string& device) {
  const tensor bytes = v.fetch();
  const std::shared_ptr<engine> holder = on->get();
  const py::gil_scoped_release unlocked;
  return {.device = holder->put(bytes, device), .on = on};
}

py::array allocate(const std::shared_ptr<shared_engine>& on, shape dims, int onnx_type) {
  return array_of(on->get()->allocate(static_cast<dtype>(onnx_type), std::move(dims)), "the array", false);
}

} // namespace

void bind_engine(py::module_& module) {
  py::class_<shared_engine, std::shared_ptr<shared_engine>>(module, "Engine")
      .def(py::init(&open_engine))
      .def("close",
           [](shared_engine& e) {
             if (!is_forked())
               e.open.reset();
           })
      .def_property_readonly("closed", [](const shared_engine& e) { return !e.open; })
      .def("devices", [](const shared_engine& e) { return dicts_of(e.get()->devices()); })
      .def("stats",
           [](const shared_engine& e) {
             const std::shared_ptr<engine> holder = e.get();
             std::vector<device_stats> all;
             {
               const py::gil_scoped_release unlocked;
               all = holder->stats();
             }
             return dicts_of(all);
           })
      .def("hosts", [](const shared_engine& e) { return dicts_of(e.get()->hosts()); })
      .def("add_host",
           [](const shared_engine& e, const std::string& host) {
             const std::shared_ptr<engine> holder = e.get();
             const py::gil_scoped_release unlocked;
             holder->add_host(host);
           })
      .def("lost_devices", [](const shared_engine& e) { return e.get()->lost_devices(); })
      .def("no_gpu_because", [](const shared_engine& e) { return e.get()->no_gpu_because(); })
      .def("profile_problem", [](const shared_engine& e) { return e.get()->profile_problem(); })
      .def("cluster",
           [](const shared_engine& e) {
             const std::shared_ptr<engine> holder = e.get();
             const py::gil_scoped_release unlocked;
             return to_cluster(*facts_of(*holder));
           })
      .def("put", &put)
      .def("allocate", &allocate)
      .def("load_file", &load_file)
      .def("load_bytes", &load_bytes);
  module.def("input_dims_of_file", [](const py::bytes& path) { return read_metadata(std::string(path)).input_dims; });
  module.def("input_dims_of_bytes",
             [](const py::buffer& model) { return parse_metadata(span_of(model.request())).input_dims; });
}

} // namespace troupe::python
