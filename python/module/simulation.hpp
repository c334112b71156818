// Simulations, task graphs and statistics of the laboratory.
#pragma once

#include <pybind11/pybind11.h>

namespace troupe::python {

/// Adds classes Model and Simulation, and the functions that make and compare them, to the module.
void bind_simulation(pybind11::module_& module);

} // namespace troupe::python
