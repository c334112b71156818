#include "simulation.hpp"

#include "arrays.hpp"
#include "options.hpp"
#include "session.hpp"

#include "troupe/built_model.hpp"
#include "troupe/simulation.hpp"
#include "troupe/statistics.hpp"
#include "troupe/task_graph.hpp"

#include <pybind11/stl.h>

namespace troupe::python {
namespace {

built_model parse(const py::buffer& model, const std::string& folder) {
  const py::buffer_info info = model.request();
  const py::gil_scoped_release unlocked;
  return parse_model(span_of(info), folder);
}

/// Columns: names and work of tasks; ends and bytes of edges.
using graph_columns =
    std::tuple<std::string, std::vector<std::string>, py::array_t<double>, py::array_t<int64_t>, py::array_t<double>>;

graph_columns columns_of(const task_graph& g) {
  std::vector<std::string> names;
  py::array_t<double> work(static_cast<py::ssize_t>(g.tasks.size()));
  py::array_t<int64_t> ends({static_cast<py::ssize_t>(g.edges.size()), py::ssize_t{2}});
  py::array_t<double> bytes(static_cast<py::ssize_t>(g.edges.size()));
  for (size_t n = 0; n < g.tasks.size(); ++n) {
    names.push_back(task_name(g, static_cast<uint32_t>(n)));
    work.mutable_at(static_cast<py::ssize_t>(n)) = g.tasks[n].work;
  }
  for (size_t i = 0; i < g.edges.size(); ++i) {
    const auto e = static_cast<py::ssize_t>(i);
    ends.mutable_at(e, 0) = g.edges[i].from;
    ends.mutable_at(e, 1) = g.edges[i].to;
    bytes.mutable_at(e) = g.edges[i].bytes;
  }
  return {g.name, names, work, ends, bytes};
}

task_graph graph_of(const graph_columns& from) {
  const auto& [name, names, work, ends, bytes] = from;
  task_graph g{.name = name, .tasks = {}, .edges = {}};
  for (size_t n = 0; n < names.size(); ++n)
    g.tasks.push_back({.kind = names[n], .work = work.at(static_cast<py::ssize_t>(n)), .name = names[n]});
  for (py::ssize_t e = 0; e < bytes.size(); ++e)
    g.edges.push_back({static_cast<uint32_t>(ends.at(e, 0)), static_cast<uint32_t>(ends.at(e, 1)), bytes.at(e)});
  return g;
}

simulation_report simulated(const built_model& model, const py::dict& inputs, const py::dict& options) {
  named_tensors given;
  for (const auto& [name, array] : inputs)
    given.emplace(py::str(name), tensor_of(array, py::str(name)));
  given_simulation how = simulation_options_of(options);
  how.trace = true;
  const py::gil_scoped_release unlocked;
  return simulate(model, given, how);
}

/// Mean, low and high end of the interval of the mean; NaN where there is none.
std::tuple<double, double, double> mean_interval(const std::vector<double>& samples, double confidence) {
  const experiments::summary s = experiments::summarise(samples, confidence);
  const double none = std::nan("");
  return {s.mean, s.mean_interval ? s.mean_interval->low : none, s.mean_interval ? s.mean_interval->high : none};
}

} // namespace

void bind_simulation(py::module_& module) {
  const py::class_<built_model> model(module, "Model");
  py::class_<simulation_report>(module, "Simulation")
      .def("json", [](const simulation_report& r) { return to_json(r); })
      .def("text", [](const simulation_report& r) { return to_text(r); })
      .def("trace", [](const simulation_report& r) {
        return r.trace ? py::cast(shared_trace{r.trace}) : py::object(py::none());
      });
  module.def("parse_model", &parse);
  module.def("read_task_graph", [](const std::string& name) { return columns_of(read_task_graph(name)); });
  module.def("model_of", [](const graph_columns& columns) { return model_of(graph_of(columns)); });
  module.def("save_task_graph",
             [](const graph_columns& columns, const std::string& file) { save_task_graph(graph_of(columns), file); });
  module.def("simulate", &simulated);
  module.def("read_arrivals", [](const std::string& file) {
    const arrivals a = read_arrivals(file);
    return py::dict(py::arg("times_s") = a.times_s, py::arg("rows") = a.rows, py::arg("deadlines_s") = a.deadlines_s);
  });
  module.def("cluster_devices", [](const py::dict& options) {
    py::list all;
    for (const device_summary& d : cluster_devices(simulation_options_of(options)))
      all.append(to_dict(d));
    return all;
  });
  module.def("mean_interval", &mean_interval);
  module.def("paired_t", [](const std::vector<double>& a, const std::vector<double>& b) {
    return experiments::paired_t_test(a, b).probability;
  });
  module.def("signed_rank", [](const std::vector<double>& a, const std::vector<double>& b) {
    return experiments::wilcoxon_signed_rank(a, b).probability;
  });
  module.def("holm_adjusted",
             [](const std::vector<double>& probabilities) { return experiments::holm_adjusted(probabilities); });
}

} // namespace troupe::python
