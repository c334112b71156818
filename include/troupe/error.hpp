// The one exception type of troupe.
#pragma once

#include "troupe/export.hpp"

#include <stdexcept>
#include <string_view>

namespace troupe {

/// What kind of thing went wrong. The message says what, where and what to do.
enum class errc : unsigned char {
  /// The model file is not a valid ONNX model (malformed bytes, cyclic graph, missing names, wrong arity …).
  invalid_model = 1,
  /// The model is valid but asks for an operator, opset, element type or feature that troupe does not have.
  unsupported,
  /// A run's inputs do not fit the model: missing, extra, wrong element type, rank or size.
  invalid_input,
  /// A file cannot be opened, read or written.
  io,
  /// A device, or all of them together, has not enough memory; the message holds bytes needed and allowed.
  out_of_memory,
  /// A chunk failed on a device; the message names the device.
  device_failed,
  /// A device is gone for good; the message names it.
  device_lost,
  /// A deadline passed.
  timeout,
  /// The caller cancelled the run, or the engine was closed before it ended.
  cancelled,
  /// A saved plan is malformed, or does not fit the model or the devices; the message names the node or device.
  invalid_plan,
  /// A wrong argument from the caller (an unknown device name, a malformed option).
  invalid_argument,
  /// A defect of troupe itself.
  internal,
};

/// Returns the enumerator's name, e.g. "invalid_model".
TROUPE_API std::string_view to_string(errc code);

/// An error with its kind.
class TROUPE_API error : public std::runtime_error {
public:
  /// The message becomes printable: names in it may be a file's.
  error(errc code, std::string_view message);

  errc code() const noexcept { return code_; }

private:
  errc code_;
};

} // namespace troupe
