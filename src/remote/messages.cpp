#include "remote/messages.hpp"

#include "wire/facts.hpp"
#include "wire/tensors.hpp"

#include <algorithm>

namespace troupe {

namespace wire {

template <>
inline constexpr uint64_t count_of<remote::role> = 2;
template <>
inline constexpr uint64_t count_of<remote::origin> = 4;
template <>
inline constexpr uint64_t count_of<destination> = 3;
template <>
inline constexpr uint64_t count_of<remote::weight_fault> = 3;

} // namespace wire

namespace remote {
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

template <class Archive>
void visit(Archive& a, hello& m) {
  a(m.protocol, m.version, m.role, m.name);
}
template <class Archive>
void visit(Archive& a, welcome& m) {
  a(m.protocol, m.version, m.devices);
  if constexpr (Archive::reads)
    check_lent(m.devices);
}
template <class Archive>
void visit(Archive& a, sent_value& v) {
  a(v.from, v.type, v.dims, v.bytes, v.key, v.size, v.peer);
}
template <class Archive>
void visit(Archive& a, sent_blob& b) {
  a(b.key, b.size);
}
template <class Archive>
void visit(Archive& a, install& m) {
  a(m.device, m.plan, m.encoded, m.bound_plan, m.binding, m.self);
}
template <class Archive>
void visit(Archive& a, wanted_value& v) {
  a(v.key, v.home, v.send);
}
template <class Archive>
void visit(Archive& a, run_chunk& m) {
  a(m.device, m.bound_plan, m.chunk, m.execution, m.slot, m.timed, m.uploads, m.downloads);
}
template <class Archive>
void visit(Archive& a, stop_chunks& m) {
  a(m.execution);
}
template <class Archive>
void visit(Archive& a, end_chunks& m) {
  a(m.device, m.execution);
}
template <class Archive>
void visit(Archive& a, retire& m) {
  a(m.device, m.bound_plan);
}
template <class Archive>
void visit(Archive& a, forget_plan& m) {
  a(m.plan);
}
template <class Archive>
void visit(Archive& a, release& m) {
  a(m.keys);
}
template <class Archive>
void visit(Archive& a, fetch_kept& m) {
  a(m.request, m.device, m.key);
}
template <class Archive>
void visit(Archive& a, put_value& m) {
  a(m.request, m.device, m.key, m.value);
}
template <class Archive>
void visit(Archive& a, ask_stats& m) {
  a(m.request, m.device);
}
template <class Archive>
void visit(Archive& a, installed& m) {
  a(m.device, m.bound_plan, m.why);
}
template <class Archive>
void visit(Archive& a, loading& m) {
  a(m.device, m.came, m.total);
}
template <class Archive>
void visit(Archive& a, chunk_made& m) {
  a(m.device, m.execution, m.chunk, m.result, m.downloads);
}
template <class Archive>
void visit(Archive& a, fetched& m) {
  a(m.request, m.why, m.value);
}
template <class Archive>
void visit(Archive& a, was_put& m) {
  a(m.request, m.why);
}
template <class Archive>
void visit(Archive& a, stats_told& m) {
  a(m.request, m.stats);
}
template <class Archive>
void visit(Archive& a, leaving& m) {
  a(m.why);
}
template <class Archive>
void visit(Archive& a, memory_wanted& m) {
  a(m.device, m.bytes);
}
template <class Archive>
void visit(Archive& a, ping& m) {
  a(m.request, m.answer_bytes, m.load);
}
template <class Archive>
void visit(Archive& a, pong& m) {
  a(m.request, m.clock_ns, m.load);
}
template <class Archive>
void visit(Archive& a, weight_source& m) {
  a(m.content, m.peer, m.key);
}
template <class Archive>
void visit(Archive& a, want_weight& m) {
  a(m.content, m.fault);
}
template <class Archive>
void visit(Archive& a, offered_weight& w) {
  a(w.content, w.key);
}
template <class Archive>
void visit(Archive& a, have_weights& m) {
  a(m.weights);
}
template <class Archive>
void visit(Archive& a, give_up_weight& m) {
  a(m.content);
}
template <class Archive>
void visit(Archive& a, prove_weights& m) {
  a(m.challenge, m.contents);
}
template <class Archive>
void visit(Archive& a, weight_proofs& m) {
  a(m.challenge, m.proofs);
}
template <class Archive>
void visit(Archive& a, piece_request& m) {
  a(m.request, m.key, m.offset, m.bytes);
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

} // namespace remote
} // namespace troupe
