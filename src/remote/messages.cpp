#include "remote/messages.hpp"

#include "wire/facts.hpp"
#include "wire/members.hpp"
#include "wire/tensors.hpp"

#include <algorithm>

namespace troupe::wire {

template <>
inline constexpr uint64_t count_of<remote::role> = 2;
template <>
inline constexpr uint64_t count_of<remote::origin> = 4;
template <>
inline constexpr uint64_t count_of<destination> = 3;
template <>
inline constexpr uint64_t count_of<remote::weight_fault> = 3;

} // namespace troupe::wire

namespace troupe::remote {
namespace {

/// What a message takes beside its longest list of bytes, about.
constexpr size_t usual_bytes = 512;

/// Names of devices are shown to people: they have no control characters.
bool is_printable(std::string_view name) {
  return std::none_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

/// Throws `errc::invalid_input` unless a worker can lend these.
void check_lent(const std::vector<device_info>& devices) {
  if (devices.size() > max_lent_devices)
    fail(errc::invalid_input, "a worker lends {} devices, more than the {} that a session plans over", devices.size(),
         max_lent_devices);
  for (const device_info& d : devices)
    if (d.kind == device_kind::control)
      fail(errc::invalid_input, "a worker lends '{}' as a device of kind '{}', which no host has", d.name,
           to_string(d.kind));
    else if (!is_printable(d.name) || !is_printable(d.description))
      fail(errc::invalid_input, "a worker lends a device whose name has control characters");
}

} // namespace

/// All members cross, in their order, unless a function below says otherwise.
template <class Archive, class T>
void visit(Archive& a, T& m) {
  wire::visit_members(a, m);
}
template <class Archive>
void visit(Archive& a, welcome& m) {
  wire::visit_members(a, m);
  if constexpr (Archive::reads)
    check_lent(m.devices);
}
/// The bytes of a piece that is read are the frame's.
template <class Archive>
void visit(Archive& a, piece& m) {
  a(m.request, m.gone);
  if constexpr (Archive::reads) {
    m.bytes = std::as_bytes(a.raw(a.count(1)));
  } else {
    a.count(m.bytes.size());
    a.raw(m.bytes.data(), m.bytes.size());
  }
}

frame encode(const message& m) {
  frame f;
  const auto* part = std::get_if<piece>(&m);
  f.reserve(usual_bytes + (part ? part->bytes.size() : 0));
  wire::writer{f}(m);
  return f;
}

message decode(std::span<const uint8_t> f) {
  return wire::decode<message>(f);
}

} // namespace troupe::remote
