#include "recording/session_facts.hpp"

#include "base/hash_file.hpp"
#include "cost/node_times.hpp"
#include "wire/facts.hpp"

namespace troupe::wire {

template <>
inline constexpr uint64_t count_of<placement_policy> = static_cast<uint64_t>(placement_policy::optimal) + 1;
template <>
inline constexpr uint64_t count_of<precision> = static_cast<uint64_t>(precision::automatic) + 1;
template <>
inline constexpr uint64_t count_of<completion_mode> = static_cast<uint64_t>(completion_mode::host) + 1;

template <class Archive>
void visit(Archive& a, placement_pin& p) {
  a(p.pattern, p.device);
}

template <class Archive>
void visit(Archive& a, output_slice& s) {
  a(s.output, s.axis, s.start, s.end);
}

template <class Archive>
void visit(Archive& a, session_options& o) {
  a(o.policy, o.policy_plugin, o.split_along, o.pins, o.plan_file, o.fuse, o.precision, o.outputs, o.output_slices,
    o.dims);
}

} // namespace troupe::wire

namespace troupe::recording {

template <class Archive>
void visit(Archive& a, device_facts& d) {
  a(d.info, d.info.incarnation, d.info.network_in, d.info.network_out, d.measured);
}

template <class Archive>
void visit(Archive& a, session_facts& s) {
  a(s.version, s.model_file, s.model_bytes, s.model_hash, s.profile_file, s.options, s.devices, s.lost, s.only,
    s.completion, s.follows_speeds);
}

namespace {

device_facts facts_of(const device_info& device) {
  return {device, device.profile.measured ? device.profile.measured->key() : hash128()};
}

} // namespace

session_facts facts_of(const session_plans& plans, const std::vector<device_info>& devices, completion_mode completion,
                       bool follows_speeds) {
  const model& m = plans.known_model();
  session_facts facts{.model_file = m.file,
                      .options = m.options,
                      .only = plans.devices().only(),
                      .completion = completion,
                      .follows_speeds = follows_speeds};
  if (const auto hashed = hash_file(m.file)) {
    facts.model_bytes = hashed->bytes;
    facts.model_hash = hashed->hash;
  }
  const std::vector<size_t>& usable = plans.devices().usable();
  for (size_t d = 0; d < devices.size(); ++d) {
    facts.devices.push_back(facts_of(devices[d]));
    if (plans.devices().may_use(d) && std::ranges::find(usable, d) == usable.end())
      facts.lost.push_back(d);
  }
  return facts;
}

std::vector<uint8_t> encode(const session_facts& facts) {
  return wire::encode(facts);
}

session_facts decode_session(std::span<const uint8_t> bytes) {
  return wire::decode<session_facts>(bytes, "its description of the session");
}

std::vector<uint8_t> encode(const device_info& device) {
  return wire::encode(facts_of(device));
}

device_facts decode_device(std::span<const uint8_t> bytes) {
  return wire::decode<device_facts>(bytes, "a device that joined");
}

} // namespace troupe::recording
