#include "base/error.hpp"

#include "base/printable.hpp"

namespace troupe {

std::string_view to_string(errc code) {
  switch (code) {
    case errc::invalid_model: return "invalid_model";
    case errc::unsupported: return "unsupported";
    case errc::invalid_input: return "invalid_input";
    case errc::io: return "io";
    case errc::out_of_memory: return "out_of_memory";
    case errc::device_failed: return "device_failed";
    case errc::device_lost: return "device_lost";
    case errc::timeout: return "timeout";
    case errc::cancelled: return "cancelled";
    case errc::invalid_plan: return "invalid_plan";
    case errc::invalid_argument: return "invalid_argument";
    case errc::internal: return "internal";
  }
  return "unknown";
}

error::error(errc code, std::string_view message) : std::runtime_error(printable(message)), code_(code) {}

} // namespace troupe
