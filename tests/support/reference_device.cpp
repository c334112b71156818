#include "support/reference_device.hpp"

#include "ops/evaluate.hpp"

namespace troupe::test {
namespace {

struct own_value final : resident {
  own_value(tensor bytes, std::string device, std::shared_ptr<std::atomic<int64_t>> held)
      : resident(bytes.type(), bytes.dims(), std::move(device)), hidden(std::move(bytes)), count(std::move(held)) {
    *count += hidden.bytes();
  }
  ~own_value() override { *count -= hidden.bytes(); }

  const tensor hidden;
  const std::shared_ptr<std::atomic<int64_t>> count;
};

} // namespace

reference_device::reference_device(std::string name)
    : info_{.name = std::move(name), .kind = device_kind::cpu, .memory_bytes = int64_t{1} << 40} {}

void reference_device::fetch(const device_tensor& value, const fetch_done& done) {
  downloaded_bytes_ += value->bytes();
  done({.value = dynamic_cast<const own_value&>(*value).hidden});
}

device_tensor reference_device::put(const tensor& value) {
  uploaded_bytes_ += value.bytes();
  return std::make_shared<const own_value>(copy_to_host_resident(value, info_.name)->host(), info_.name,
                                           resident_bytes_);
}

void reference_device::give_back(const tensor& value, moved_value& to) {
  downloaded_bytes_ += to.goes_to_host() ? value.bytes() : 0;
  to.fill(to.goes_to_host() ? value : tensor{},
          to.stays() ? std::make_shared<const own_value>(value, info_.name, resident_bytes_) : nullptr);
}

void reference_device::install(bound_plan_ptr bound, device_index) {
  const uint64_t id = bound->id;
  plans_[id] = std::move(bound);
}

tensor reference_device::find(const bound_plan& bound, const values& held, value_id v) {
  if (v == no_value)
    return {};
  if (const auto& constant = bound.source->program->values[v].constant)
    return materialise(*constant);
  return bound.known[v].defined() ? bound.known[v] : held.at(v);
}

void reference_device::run(const chunk_work& work) {
  const bound_plan& bound = *plans_.at(work.bound_plan);
  const plan& p = *bound.source;
  const chunk& c = p.chunks.at(work.chunk);
  values& held = slots_[work.bound_plan][work.slot];
  held.resize(p.program->values.size());
  for (size_t i = 0; i < c.uploads.size(); ++i) {
    const moved_value& given = *work.uploads.at(i);
    const device_tensor here = given.resident_on(info_.name);
    held.at(c.uploads[i]) = here ? dynamic_cast<const own_value&>(*here).hidden : given.host();
    uploaded_bytes_ += here ? 0 : given.host().bytes();
  }
  for (node_id n : c.nodes) {
    const node& call = p.program->nodes[n];
    std::vector<tensor> inputs;
    for (value_id v : call.inputs)
      inputs.push_back(find(bound, held, v));
    const std::vector<tensor> outputs = evaluate(*call.def, call.attrs, inputs, call.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      if (call.outputs[i] != no_value)
        held.at(call.outputs[i]) = outputs[i];
  }
  for (size_t i = 0; i < c.downloads.size(); ++i)
    give_back(held.at(c.downloads[i]), *work.downloads.at(i));
}

void reference_device::submit(chunk_work work, chunk_done done) {
  chunk_result result;
  ++chunks_;
  try {
    run(work);
  } catch (const std::exception& e) {
    result = {.code = errc::device_failed, .message = e.what()};
  }
  done(std::move(result));
}

device_stats reference_device::stats() const {
  return {.chunks = chunks_,
          .installed_plans = static_cast<int64_t>(plans_.size()),
          .resident_bytes = *resident_bytes_,
          .uploaded_bytes = uploaded_bytes_,
          .downloaded_bytes = downloaded_bytes_};
}

} // namespace troupe::test
