// What a session sees of values, as plain data: types, dims, where they are, and few elements. A session decides by no
// more than that, except for elements that decide shapes or steer control flow, which are few.
#pragma once

#include "device/moved_value.hpp"
#include "wire/tensors.hpp"

namespace troupe::recording {

/// The most bytes of a value whose elements are kept though they are not known to decide anything.
inline constexpr int64_t few_bytes = 256;

/// A value as a session sees it.
struct value_facts {
  dtype type = dtype::undefined; // of a value that was not filled
  shape dims;
  bool on_host = false;
  bool promised = false;                        // on the host, later
  std::optional<std::vector<uint8_t>> elements; // of one on the host, as `wire` has them; otherwise they count as zeros
  bool is_resident = false;
  std::string device; // where it is resident
  uint64_t incarnation = 0;
  std::optional<std::string> away; // the host that it is on

  bool operator==(const value_facts&) const = default;
};

template <class Archive>
void visit(Archive& a, value_facts& f) {
  a(f.type, f.dims, f.on_host, f.promised, f.elements, f.is_resident, f.device, f.incarnation, f.away);
}

/// Returns whether values of the type can be told by facts: sequences and optionals cannot.
inline bool has_facts(dtype type) {
  return !is_container(type);
}

/// Return what a session sees of a value; of a tensor on the host with its elements if these have at most `most` bytes.
/// The value's type must have facts.
value_facts facts_of(const tensor& value, int64_t most = few_bytes);
value_facts facts_of(const device_tensor& value);
value_facts facts_of(const moved_value& value);

/// Returns a tensor of that type and of those dims, with the elements or zeros. Throws `errc::invalid_input` if there
/// cannot be one, `errc::out_of_memory`.
tensor make_tensor(const value_facts& facts);
/// Returns a handle to a value that is, or is said to be, on a device.
device_tensor make_resident(const value_facts& facts);
/// Says in `value`, which has not been filled, what a device has said.
void fill(moved_value& value, const value_facts& facts);

} // namespace troupe::recording
