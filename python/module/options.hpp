// Options as Python gives them, dicts by the names of the C++ members, as plain data.
#pragma once

#include <pybind11/pybind11.h>

#include "troupe/options.hpp"
#include "troupe/results.hpp"
#include "troupe/simulation.hpp"

#include <memory>
#include <vector>

namespace troupe::python {

namespace py = pybind11;

/// Options, and what of Python is their policy or strategy: they must be known by their handles until a model is
/// loaded.
struct given_session : session_options {
  std::vector<std::shared_ptr<const void>> own;
};
struct given_simulation : simulation_options {
  std::vector<std::shared_ptr<const void>> own;
};

/// Throw `errc::invalid_argument` for names and words that are not known, listing those that are.
engine_options engine_options_of(const py::dict& given);
given_session session_options_of(const py::dict& given);
given_simulation simulation_options_of(const py::dict& given);

/// Returns seconds as milliseconds, more than none for what is more than none. Throws `errc::invalid_argument` for
/// negative ones.
std::chrono::milliseconds milliseconds_of(double seconds);

/// Return the words for what a strategy chose.
std::string word_of(strategy how);
std::string word_of(placement_policy policy);

} // namespace troupe::python
