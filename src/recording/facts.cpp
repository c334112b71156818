#include "recording/facts.hpp"

#include <cstdlib>

namespace troupe::recording {
namespace {

/// A value in the memory of a device that is not there any more.
struct recorded_resident final : resident {
  explicit recorded_resident(const value_facts& f) : resident(f.type, f.dims, f.device, f.incarnation) {}
};

/// The most bytes of a value whose elements are not kept, and the most strings: recordings may come from strangers.
constexpr int64_t most_zeros = int64_t{4} << 30, most_strings = int64_t{1} << 20;

/// Returns zeros that take no memory until they are read.
tensor make_zeros(const wire::reader& in, dtype type, const shape& dims) {
  if (type == dtype::string && volume(dims) > most_strings)
    in.refuse("a value has {} strings", volume(dims));
  if (holds_objects(type))
    return {type, dims};
  const auto bytes = static_cast<size_t>(bytes_of(type, volume(dims)));
  if (bytes > static_cast<size_t>(most_zeros))
    in.refuse("a value has {} bytes", bytes);
  const std::shared_ptr<void> zeros(std::calloc(std::max<size_t>(bytes, 1), 1), &std::free);
  if (!zeros)
    fail(errc::out_of_memory, "a recorded value of {} bytes does not fit into the host's memory", bytes);
  return {type, dims, zeros, zeros.get()};
}

/// Adds that a value is on a device; nothing if `value` is null.
void add(value_facts& f, const device_tensor& value) {
  if (!value)
    return;
  f.type = value->type();
  f.dims = value->dims();
  f.is_resident = true;
  f.device = value->device();
  f.incarnation = value->incarnation();
}

} // namespace

value_facts facts_of(const tensor& value, int64_t most) {
  value_facts f{.type = value.type(), .dims = value.dims(), .on_host = true};
  if (value.type() == dtype::string ? volume(value.dims()) * 4 <= most : value.bytes() <= most) {
    wire::writer out(f.elements.emplace());
    wire::put_elements(out, value);
  }
  return f;
}

value_facts facts_of(const device_tensor& value) {
  value_facts f = value && value->host().defined() ? facts_of(value->host()) : value_facts();
  add(f, value);
  return f;
}

value_facts facts_of(const moved_value& value) {
  value_facts f = value.has_host() ? facts_of(value.host()) : value_facts();
  add(f, value.resident());
  if (value.away()) {
    f.type = value.type();
    f.dims = value.dims();
    f.away = value.away()->host();
  }
  f.promised = value.promised_for() != nullptr;
  return f;
}

tensor make_tensor(const value_facts& facts) {
  wire::reader in(facts.elements ? std::span<const uint8_t>(*facts.elements) : std::span<const uint8_t>(),
                  "a recorded value");
  wire::check_dims(in, facts.type, facts.dims);
  if (!facts.elements)
    return make_zeros(in, facts.type, facts.dims);
  tensor made = wire::get_elements(in, facts.type, facts.dims);
  in.finish();
  return made;
}

device_tensor make_resident(const value_facts& facts) {
  return facts.on_host ? make_host_resident(make_tensor(facts), facts.device)
                       : std::make_shared<const recorded_resident>(facts);
}

void fill(moved_value& value, const value_facts& facts) {
  if (facts.type == dtype::undefined)
    return;
  const tensor host = facts.on_host ? make_tensor(facts) : tensor();
  const device_tensor resident = facts.is_resident ? std::make_shared<const recorded_resident>(facts) : device_tensor();
  if (facts.away)
    value.fill_away(std::make_shared<const away_value>(facts.type, facts.dims, *facts.away), host, resident);
  else if (facts.promised)
    value.promise(host, std::make_shared<const arrival>(), resident);
  else
    value.fill(host, resident);
}

} // namespace troupe::recording
