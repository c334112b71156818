// troupe's errors as Python exceptions: the classes are in troupe/errors.py.
#pragma once

#include <pybind11/pybind11.h>

#include "troupe/error.hpp"

#include <exception>

namespace troupe::python {

namespace py = pybind11;

/// Returns the exception object for what was thrown: an instance of a class of troupe.errors, or MemoryError. Needs the
/// GIL.
py::object exception_of(const std::exception_ptr& thrown);

/// Has whatever functions of the module throw arrive in Python as `exception_of` says.
void translate_errors();

} // namespace troupe::python
