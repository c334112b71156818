// Python objects that C++ keeps: whichever thread lets the last one go, it is released by a thread that has the
// interpreter's lock (the GIL).
//
// Devices drop a run's inputs on their own threads, at any time. Waiting for the GIL there could wait for a thread that
// waits for the device; so they only note the object, and the next thread that has the GIL anyway releases it.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

namespace troupe::python {

namespace py = pybind11;

/// Returns a handle that keeps `object` alive and may die on any thread. Needs the GIL.
std::shared_ptr<const void> keep_alive(py::object object);

/// Releases the objects that have been let go. Needs the GIL.
void release_dropped();

/// Ends what is not to be ended in a process that was forked off: there, threads of devices do not exist, and waiting
/// for them would never end. Makes shared handles whose end does not hold the GIL.
template <class T>
std::shared_ptr<T> own_outside_of_python(T value);

/// Throws `errc::device_lost` if this process was forked off after an engine was opened: its devices are not here.
void check_not_forked();
/// Says that there is an engine now; called before the first is opened.
void note_engine();
/// Whether this process was forked off one that had an engine.
bool is_forked();

template <class T>
std::shared_ptr<T> own_outside_of_python(T value) {
  return {new T(std::move(value)), [](T* owned) {
            if (is_forked())
              return;
            if (PyGILState_Check()) {
              const py::gil_scoped_release unlocked;
              delete owned;
            } else {
              delete owned;
            }
          }};
}

} // namespace troupe::python
