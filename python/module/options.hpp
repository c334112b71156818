// Options as Python gives them, dicts by the names of the C++ members, as plain data.
#pragma once

#include <pybind11/pybind11.h>

#include "troupe/options.hpp"
#include "troupe/results.hpp"

namespace troupe::python {

namespace py = pybind11;

/// Throw `errc::invalid_argument` for names and words that are not known, listing those that are.
engine_options engine_options_of(const py::dict& given);
session_options session_options_of(const py::dict& given);

/// Returns seconds as milliseconds, more than none for what is more than none. Throws `errc::invalid_argument` for
/// negative ones.
std::chrono::milliseconds milliseconds_of(double seconds);

/// Return the words for what a strategy chose.
std::string word_of(strategy how);
std::string word_of(placement_policy policy);

} // namespace troupe::python
