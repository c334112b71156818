// Statuses: what a function returns where something is wrong. Inside, functions throw; `guarded` turns what they throw
// into a status, so that no exception enters a client, which may be no C++ program.
#pragma once

#include "compat/onnxruntime/api.hpp"
#include "troupe/error.hpp"

#include <stdexcept>
#include <string>

/// A status that is not success; success is a null pointer.
struct OrtStatus {
  OrtErrorCode code;
  std::string message;
};

namespace troupe::ort {

/// An error with a code of ONNX Runtime's.
class api_error : public std::runtime_error {
public:
  api_error(OrtErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  OrtErrorCode code() const noexcept { return code_; }

private:
  OrtErrorCode code_;
};

/// Throws ORT_INVALID_ARGUMENT.
[[noreturn]] void reject(const std::string& message);

/// Returns a new status for the client to release. If the host is out of memory, one that is never released and says
/// that.
OrtStatus* make_status(OrtErrorCode code, std::string_view message) noexcept;

/// Returns the status of the exception that is being handled; requires one.
OrtStatus* status_of_current_exception() noexcept;

/// Returns the status by which a slot is refused: "NAME: WHY".
OrtStatus* refusal(const char* name, const char* why) noexcept;

/// Runs `work`; returns success, or the status of what it throws.
template <class Work>
OrtStatus* guarded(Work&& work) noexcept {
  try {
    work();
    return nullptr;
  } catch (...) {
    return status_of_current_exception();
  }
}

/// Returns what a pointer of the client's points to; throws ORT_INVALID_ARGUMENT, naming it, if it is null.
template <class T>
T& given(T* pointer, const char* name) {
  if (!pointer)
    reject(std::string(name) + " is null");
  return *pointer;
}

} // namespace troupe::ort
