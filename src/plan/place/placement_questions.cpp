// A model as plain structs (troupe/policy.hpp): what is small is written down, the rest is asked of
// `placement_problem`.
#include "graph/bodies.hpp"
#include "plan/place/placement_problem.hpp"

#include <unordered_map>

namespace troupe {

void placement_problem::describe_devices() {
  std::unordered_map<std::string_view, uint32_t> hosts;
  for (device_index d = 0; d < devices_.size(); ++d) {
    const device_info& info = devices_[d];
    device_rows_.push_back({.name = info.name.c_str(),
                            .flags = (info.fallback ? policy_device_fallback : 0u) |
                                     (info.gpu ? policy_device_gpu : 0u) |
                                     (info.host_memory ? policy_device_host_memory : 0u),
                            .host = hosts.try_emplace(info.host, d).first->second,
                            .memory_bytes = budget(d),
                            .handover_s = info.profile.chunk_s});
  }
  asked_.devices = device_rows_.data();
  asked_.device_count = static_cast<uint32_t>(device_rows_.size());
  asked_.move_weight = regular_ < 2 ? 0 : 1 - 1 / static_cast<double>(regular_);
}

void placement_problem::describe_values() {
  for (size_t v = 0; v < program_.values.size(); ++v) {
    const value& info = program_.values[v];
    value_flags_.push_back((info.constant ? policy_value_constant : 0) | (info.known ? policy_value_known : 0) |
                           (edges_.is_output[v] ? policy_value_answer : 0));
    producer_.push_back(edges_.producer[v] < 0 ? policy_none : static_cast<uint32_t>(edges_.producer[v]));
    storage_.push_back(static_cast<uint32_t>(v));
    for (node_id reader : edges_.consumers[v])
      readers_.push_back(static_cast<uint32_t>(reader));
    reader_begin_.push_back(readers_.size());
  }
  asked_.value_count = static_cast<uint32_t>(value_flags_.size());
  asked_.value_flags = value_flags_.data();
  asked_.producer = producer_.data();
  asked_.reader_begin = reader_begin_.data();
  asked_.readers = readers_.data();
}

void placement_problem::describe_edges() {
  const auto add = [](const std::vector<value_id>& values, std::vector<uint32_t>& all, std::vector<uint64_t>& begin) {
    for (value_id v : values)
      if (v != no_value)
        all.push_back(static_cast<uint32_t>(v));
    begin.push_back(all.size());
  };
  for (const node& call : program_.nodes) {
    task_flags_.push_back(has_body(call) ? policy_task_control : 0);
    add(call.inputs, inputs_, input_begin_);
    add(call.outputs, outputs_, output_begin_);
    if (is_view(call))
      storage_[call.outputs[0]] = storage_[call.inputs[0]];
  }
  asked_.task_count = static_cast<uint32_t>(task_flags_.size());
  asked_.task_flags = task_flags_.data();
  asked_.pinned = pinned_.empty() ? nullptr : pinned_.data();
  asked_.input_begin = input_begin_.data();
  asked_.inputs = inputs_.data();
  asked_.output_begin = output_begin_.data();
  asked_.outputs = outputs_.data();
  asked_.storage = storage_.data();
}

void placement_problem::set_questions() {
  using self = placement_problem;
  asked_.allowed = [](void* context, uint32_t task, uint32_t device) {
    return answered<self>(context, 0, [&](self& p) { return p.allows(static_cast<node_id>(task), device) ? 1 : 0; });
  };
  asked_.seconds = [](void* context, uint32_t task, uint32_t device) {
    return answered<self>(context, 0.0, [&](self& p) { return p.seconds(static_cast<node_id>(task), device); });
  };
  asked_.value_bytes = [](void* context, uint32_t value) {
    return answered<self>(context, int64_t{0}, [&](self& p) { return p.bytes(static_cast<value_id>(value)); });
  };
  asked_.has_guessed = [](void* context) {
    return answered<self>(context, 0, [](self& p) { return p.has_guessed() ? 1 : 0; });
  };
  asked_.task_name = [](void* context, uint32_t task) {
    return answered<self>(context, "", [&](self& p) {
      p.text_ = describe(p.program_.nodes[task]);
      return p.text_.c_str();
    });
  };
  asked_.why_not = [](void* context, uint32_t task) {
    return answered<self>(context, "", [&](self& p) {
      p.text_ = p.why_not(static_cast<node_id>(task));
      return p.text_.c_str();
    });
  };
}

void placement_problem::set_move_questions() {
  using self = placement_problem;
  asked_.move_seconds = [](void* context, uint32_t value, uint32_t from, uint32_t to) {
    return answered<self>(context, 0.0,
                          [&](self& p) { return p.move_seconds(static_cast<value_id>(value), from, to); });
  };
  asked_.mean_move_seconds = [](void* context, uint32_t value) {
    return answered<self>(context, 0.0, [&](self& p) { return p.mean_move_seconds(static_cast<value_id>(value)); });
  };
  asked_.send_seconds = [](void* context, double bytes, uint32_t device) {
    return answered<self>(context, 0.0, [&](self& p) { return link_seconds(bytes, p.devices_[device].profile.down); });
  };
  asked_.receive_seconds = [](void* context, double bytes, uint32_t device) {
    return answered<self>(context, 0.0, [&](self& p) { return link_seconds(bytes, p.devices_[device].profile.up); });
  };
  asked_.network_seconds = [](void* context, double bytes, uint32_t from, uint32_t to) {
    return answered<self>(context, 0.0, [&](self& p) {
      const auto end = [&](uint32_t d) { return d == policy_caller ? nullptr : &p.devices_[d]; };
      return network_seconds(bytes, end(from), end(to));
    });
  };
}

double placement_problem::move_seconds(value_id v, device_index from, device_index to) {
  const auto size = static_cast<double>(bytes(v));
  if (from == policy_caller) {
    const device_info& d = devices_[to];
    return network_seconds(size, nullptr, &d) + size / d.profile.input_bytes_per_s + link_seconds(size, d.profile.up);
  }
  if (to == policy_caller) {
    const device_info& d = devices_[from];
    return link_seconds(size, d.profile.down) + network_seconds(size, &d, nullptr);
  }
  return troupe::move_seconds(size, devices_[from], devices_[to]);
}

/// A move is one device's down and another's up.
double placement_problem::mean_move_seconds(value_id v) {
  if (regular_ < 2)
    return 0;
  const auto size = static_cast<double>(bytes(v));
  double sum = 0;
  for (size_t i = 0; i < regular_; ++i) {
    const device_info& d = devices_[order_[i]];
    sum += d.profile.chunk_s + link_seconds(size, d.profile.up) + link_seconds(size, d.profile.down) +
           network_seconds(size, nullptr, &d) + network_seconds(size, &d, nullptr);
  }
  return sum / static_cast<double>(regular_);
}

} // namespace troupe
