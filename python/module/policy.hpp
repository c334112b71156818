// Placement policies that are functions of Python.
#pragma once

#include <pybind11/pybind11.h>

#include "troupe/own_policy.hpp"

namespace troupe::python {

namespace py = pybind11;

/// Returns a function of Python, or a `troupe.Policy`, as a policy of a session: it takes the GIL while it is asked, on
/// whichever thread makes the plan, so who waits for a plan must not hold it. Throws what `troupe.policy` raises for
/// anything else. Needs the GIL.
std::shared_ptr<const own_policy> own_policy_of(const py::handle& function);

/// Adds the classes Question and Episode to the module.
void bind_policy(py::module_& module);

} // namespace troupe::python
