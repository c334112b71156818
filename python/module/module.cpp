// troupe._core: the C++ side of the Python package. Thin: what it says to people is in python/troupe.
#include "errors.hpp"
#include "policy.hpp"
#include "session.hpp"
#include "simulation.hpp"

PYBIND11_MODULE(_core, module) {
  troupe::python::translate_errors();
  troupe::python::bind_value(module);
  troupe::python::bind_engine(module);
  troupe::python::bind_session(module);
  troupe::python::bind_policy(module);
  troupe::python::bind_simulation(module);
  module.def("check_not_forked", &troupe::python::check_not_forked);
  module.attr("version") = TROUPE_VERSION;
}
