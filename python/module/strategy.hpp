// Strategies that are classes or functions of Python.
#pragma once

#include <pybind11/pybind11.h>

#include "troupe/own_strategy.hpp"

#include <memory>

namespace troupe::python {

namespace py = pybind11;

/// Returns a class or function of Python, or a `troupe.Strategy`, as a strategy of a session: it takes the GIL while it
/// is asked, on whichever thread has the stream, so who waits for an answer must not hold it. Throws what
/// `troupe.strategy` raises for anything else. Needs the GIL.
std::shared_ptr<const own_strategy> own_strategy_of(const py::handle& strategy);

} // namespace troupe::python
