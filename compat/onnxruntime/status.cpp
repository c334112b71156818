#include "compat/onnxruntime/status.hpp"

#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"

#include <new>

namespace troupe::ort {
namespace {

/// As the Python package does: bytes that are not a model at all have a code of their own.
OrtErrorCode code_of_model(std::string_view message) {
  const bool no_model = message.find("not an ONNX model") != std::string_view::npos ||
                        message.find("not a valid ONNX file") != std::string_view::npos;
  return no_model ? ORT_INVALID_PROTOBUF : ORT_INVALID_GRAPH;
}

OrtErrorCode code_of(const error& e) {
  switch (e.code()) {
    case errc::invalid_model: return code_of_model(e.what());
    case errc::unsupported: return ORT_NOT_IMPLEMENTED;
    case errc::invalid_input:
    case errc::invalid_plan:
    case errc::invalid_argument: return ORT_INVALID_ARGUMENT;
    case errc::device_failed:
    case errc::device_lost: return ORT_EP_FAIL;
    case errc::io: // not of the model's own file: see CreateSession
    case errc::timeout:
    case errc::cancelled: return ORT_FAIL;
    case errc::out_of_memory:
    case errc::internal: break;
  }
  return ORT_RUNTIME_EXCEPTION;
}

} // namespace

void reject(const std::string& message) {
  throw api_error(ORT_INVALID_ARGUMENT, message);
}

OrtStatus* make_status(OrtErrorCode code, std::string_view message) noexcept {
  static OrtStatus out_of_memory{ORT_RUNTIME_EXCEPTION, "no memory"}; // short: the text is in the object
  try {
    return make_handle<OrtStatus>(code, std::string(message));
  } catch (const std::bad_alloc&) {
    return &out_of_memory;
  }
}

OrtStatus* status_of_current_exception() noexcept {
  try {
    throw;
  } catch (const api_error& e) {
    return make_status(e.code(), e.what());
  } catch (const error& e) {
    return make_status(code_of(e), e.what());
  } catch (const std::bad_alloc&) {
    return make_status(ORT_RUNTIME_EXCEPTION, "the host is out of memory");
  } catch (const std::exception& e) {
    return make_status(ORT_RUNTIME_EXCEPTION, e.what());
  } catch (...) {
    return make_status(ORT_RUNTIME_EXCEPTION, "an exception of no known kind");
  }
}

OrtStatus* refusal(const char* name, const char* why) noexcept {
  return guarded([&] { throw api_error(ORT_NOT_IMPLEMENTED, std::string(name) + ": " + why); });
}

OrtStatus* CreateStatus(OrtErrorCode code, const char* message) noexcept {
  return code == ORT_OK ? nullptr : make_status(code, message ? message : "");
}

OrtErrorCode GetErrorCode(const OrtStatus* status) noexcept {
  return status ? status->code : ORT_OK;
}

const char* GetErrorMessage(const OrtStatus* status) noexcept {
  return status ? status->message.c_str() : "";
}

void ReleaseStatus(OrtStatus* status) noexcept {
  release_handle(status, "ReleaseStatus");
}

} // namespace troupe::ort
