// A tensor as Python holds it: in the host's memory, or on a device.
#pragma once

#include "arrays.hpp"

#include "troupe/engine.hpp"

namespace troupe::python {

/// An engine that Python objects share; its end joins threads, so it never holds the GIL.
struct shared_engine {
  std::shared_ptr<engine> open; // null once it is closed

  /// Throws `errc::cancelled` if it is closed, `errc::device_lost` after a fork.
  std::shared_ptr<engine> get() const;
};

/// What an OrtValue holds. Immutable but for `assign`.
struct value {
  tensor host;                       // undefined if it is on a device
  device_tensor device;              // null if it is in the host's memory
  bool writable = false;             // false for a run's output, which others may share
  std::shared_ptr<shared_engine> on; // null if it is in the host's memory

  dtype type() const { return device ? device->type() : host.type(); }
  const shape& dims() const { return device ? device->dims() : host.dims(); }
  std::string where() const { return device ? device->device() : "cpu"; }
  /// Returns the bytes in the host's memory; asks the device for them, without the GIL.
  tensor fetch() const;
};

/// Adds class Value to the module.
void bind_value(py::module_& module);

/// Returns a DLPack capsule of a value's bytes; a copy where they are not its own. Throws BufferError for types that
/// DLPack does not have.
py::capsule to_dlpack(const value& v);
/// Takes an object with `__dlpack__` over without a copy. Throws `errc::invalid_input` for what is not in the host's
/// memory, or not dense.
value from_dlpack(const py::object& object);

} // namespace troupe::python
