#include "remote/session_installs.hpp"

namespace troupe::remote {
namespace {

/// Returns about how much memory a bound plan takes beside its layout, which bound plans share.
int64_t memory_of(const bound_plan& bound) {
  auto bytes = static_cast<int64_t>(bound.dims.size() * (sizeof(shape) + sizeof(tensor)));
  for (const shape& dims : bound.dims)
    bytes += static_cast<int64_t>(dims.size() * sizeof(int64_t));
  for (const tensor& t : bound.known)
    bytes += t.defined() ? t.bytes() : 0;
  return bytes;
}

} // namespace

session_installs::session_installs(std::shared_ptr<shared_service> shared, std::shared_ptr<session_line> line,
                                   std::shared_ptr<piece_puller> puller)
    : shared_(std::move(shared)), line_(std::move(line)),
      memory_(session_memory::make(shared_->memory,
                                   [l = line_](uint32_t device, int64_t bytes) {
                                     l->say(memory_wanted{device, bytes});
                                   })),
      weights_(*shared_, *line_, puller), plans_(weights_, std::move(puller)) {}

void session_installs::forget(uint64_t plan) {
  plans_.enqueue([weak = weak_from_this(), plan] {
    if (const auto self = weak.lock())
      self->plans_.forget(plan);
  });
}

void session_installs::end(const std::string& why) {
  decltype(lent_) lent;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true; // before the one in hand ends: no other one begins
    lent.swap(lent_);
  }
  weights_.close(why);
  memory_->stop_waiting();
}

void session_installs::install(remote::install order) {
  shared_->device(order.device);
  held_memory held;
  const failure full = capture([&] { held = line_->room().hold(static_cast<int64_t>(order.binding.size())); });
  {
    const std::lock_guard lock(mutex_);
    if (ended_)
      return;
    const lent_key key(order.bound_plan, order.device);
    const auto old = retired_.find(key);
    if (lent_.contains(key) || (old != retired_.end() && !old->second.expired()))
      fail(errc::invalid_input, "bound plan {} is installed already", order.bound_plan);
    lent_[key] = nullptr;
  }
  if (full.failed())
    return finish(order, nullptr, full);
  // The job, as long as it waits, counts its binding.
  plans_.enqueue([weak = weak_from_this(), order = std::move(order), held] {
    if (const auto self = weak.lock())
      self->make_and_install(order);
  });
}

void session_installs::make_and_install(const remote::install& order) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_)
      return;
  }
  if (const failure broken = capture([&] { plans_.check_numbers(order); }); broken.failed())
    return line_->refuse(broken);
  bound_plan_ptr bound;
  held_memory held;
  loaded_bytes weights;
  const int64_t begin = now_ns();
  const failure why = capture([&] {
    bound = plans_.make(order, weights, [&](int64_t came, int64_t total) {
      line_->say(loading{order.device, came, total});
    }); // weights of this device, too
    held = line_->room().hold(memory_of(*bound) + static_cast<int64_t>(order.binding.size()));
    const device_info& own = shared_->device(order.device).info();
    const device_info& planned = bound->source->devices[order.self];
    if (planned.gpu != own.gpu || planned.host_memory != own.host_memory || planned.kind != own.kind)
      fail(errc::invalid_input, "the plan is for another device than '{}'", own.name);
    if (const int64_t needed = bytes_needed(*bound->layout, order.self); needed > own.memory_bytes)
      fail(errc::out_of_memory, "device '{}' lends {} bytes, the plan needs {}", own.name, own.memory_bytes, needed);
    if (!memory_->take(order.device, *bound, order.self, shared_->options.memory_patience))
      fail(errc::out_of_memory,
           "device '{}' has no room now: sessions hold too much of the {} bytes that it lends to add {}", own.name,
           own.memory_bytes, bytes_needed(*bound->layout, order.self));
  });
  if (why.failed())
    return finish(order, nullptr, why);
  line_->log("loaded", {{"device", shared_->device(order.device).info().name},
                        {"plan", std::to_string(order.plan)},
                        {"bytes_here", std::to_string(weights.here)},
                        {"bytes_from_session", std::to_string(weights.session)},
                        {"bytes_from_peers", std::to_string(weights.peers)},
                        {"ms", fmt::format("{:.1f}", static_cast<double>(now_ns() - begin) * 1e-6)}});
  shared_->device(order.device)
      .install(bound, order.self, [self = shared_from_this(), order, bound, held](const failure& failed) {
        lent_plan_ptr made;
        if (failed.failed())
          self->memory_->give_back(order.device, *bound, order.self);
        else
          made = std::make_shared<const lent_plan>(self->shared_->devices[order.device], order.device, bound,
                                                   order.self, self->memory_, held);
        self->finish(order, std::move(made), failed);
      });
}

void session_installs::finish(const remote::install& order, lent_plan_ptr made, const failure& why) {
  {
    const std::lock_guard lock(mutex_);
    const lent_key key(order.bound_plan, order.device);
    if (made && !ended_) // else it is retired below, with its last reference
      lent_[key] = std::move(made);
    else
      lent_.erase(key);
  }
  line_->say(installed{order.device, order.bound_plan, why});
}

void session_installs::retire(const remote::retire& order) {
  lent_plan_ptr old; // goes when the lock is free
  const std::lock_guard lock(mutex_);
  const auto found = lent_.find({order.bound_plan, order.device});
  if (found == lent_.end())
    return; // its install failed
  if (!found->second)
    fail(errc::invalid_input, "bound plan {} is retired before it is installed", order.bound_plan);
  std::erase_if(retired_, [](const auto& entry) { return entry.second.expired(); });
  // Chunks may still run by the plan. Its number is free again when the last of them has ended.
  retired_[found->first] = found->second;
  old = std::move(found->second);
  lent_.erase(found);
}

lent_plan_ptr session_installs::find(uint64_t bound_plan, uint32_t device) const {
  const std::lock_guard lock(mutex_);
  const auto found = lent_.find({bound_plan, device});
  if (found == lent_.end() || !found->second)
    fail(errc::invalid_input, "bound plan {} is not installed on device {}", bound_plan, device);
  return found->second;
}

} // namespace troupe::remote
