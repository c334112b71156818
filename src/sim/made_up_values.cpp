#include "sim/made_up_values.hpp"

#include "plan/estimate/gpu_support.hpp"

#include <sys/mman.h>

namespace troupe::sim {
namespace {

/// A value in the memory of a device that does not exist.
struct made_up_resident final : resident {
  made_up_resident(dtype type, shape dims, const device_info& on)
      : resident(type, std::move(dims), on.name, on.incarnation) {}
};

/// The dims of a value; those that depend on data count as predictions count them, since the data is not
/// computed.
shape made_up_dims(const bound_plan& bound, value_id v) {
  if (bound.source->segment_of_value[v] <= bound.segment)
    return bound.dims[v];
  gpu_support support(*bound.source->program, bound.values);
  return support.representative_dims(v);
}

std::shared_ptr<const void> map_zeros(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    fail(errc::out_of_memory, "there are no {} bytes of addresses for a simulated value", bytes);
  return {memory, [size](void* p) { munmap(p, size); }};
}

} // namespace

tensor made_up_values::zeros(dtype type, shape dims) {
  if (is_container(type))
    fail(errc::unsupported, "sequences and optionals are not simulated: what is in them is not known before a run");
  if (type == dtype::string)
    return {type, std::move(dims)};
  const int64_t bytes = bytes_of(type, volume(dims));
  if (bytes > bytes_ || !memory_) {
    bytes_ = std::max({bytes, 2 * bytes_, int64_t{1} << 20});
    memory_ = map_zeros(bytes_);
  }
  return {type, std::move(dims), memory_, memory_.get()};
}

tensor made_up_values::value(const bound_plan& bound, value_id v) {
  const plan& p = *bound.source;
  const shape dims = made_up_dims(bound, v);
  if (p.program->values[v].type != dtype::boolean || volume(dims) != 1)
    return zeros(p.program->values[v].type, dims);
  tensor condition(dtype::boolean, dims);
  *condition.mutable_data<bool>() = ++conditions_[{&p, v}] % representative_dim != 0;
  return condition;
}

void made_up_values::fill(const bound_plan& bound, const chunk_work& work, const device_info& on) {
  const std::vector<value_id>& made = bound.source->chunks[work.chunk].downloads;
  for (size_t i = 0; i < work.downloads.size(); ++i) {
    moved_value& to = *work.downloads[i];
    tensor host = value(bound, made[i]);
    device_tensor resident;
    if (to.stays())
      resident = on.host_memory ? make_host_resident(host, on.name)
                                : std::make_shared<const made_up_resident>(host.type(), host.dims(), on);
    if (is_remote(on) && (to.goes_to_host() || on.host_memory))
      to.fill_away(std::make_shared<const away_value>(host.type(), host.dims(), on.host),
                   to.comes_here() ? host : tensor(), std::move(resident));
    else
      to.fill(to.goes_to_host() || on.host_memory ? host : tensor(), std::move(resident));
  }
}

} // namespace troupe::sim
