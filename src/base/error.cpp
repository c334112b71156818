#include "base/error.hpp"

#include "base/limits.hpp"
#include "base/printable.hpp"

namespace troupe {
namespace {

/// Returns a message without its middle where it is very long: names in files may have megabytes.
std::string shortened(std::string_view message) {
  constexpr size_t longest = limits::max_message_characters, kept = longest / 2;
  if (message.size() <= longest)
    return std::string(message);
  const auto inside_character = [&](size_t at) { return (static_cast<unsigned char>(message[at]) & 0xc0) == 0x80; };
  size_t head = kept, tail = message.size() - kept;
  while (head > 0 && inside_character(head))
    --head;
  while (tail < message.size() && inside_character(tail))
    ++tail;
  return fmt::format("{} [...] {}", message.substr(0, head), message.substr(tail));
}

} // namespace

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

error::error(errc code, std::string_view message) : std::runtime_error(printable(shortened(message))), code_(code) {}

} // namespace troupe
