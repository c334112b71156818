#include "remote/plan_shelf.hpp"

#include "remote/plan_limit.hpp"

namespace troupe::remote {

plan_shelf::plan_shelf(weight_loader& weights, std::shared_ptr<piece_puller> puller)
    : weights_(weights), puller_(std::move(puller)), thread_([queue = queue_] { work(*queue); }) {}

plan_shelf::~plan_shelf() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->closing = true;
    queue_->jobs.clear();
    queue_->wake.notify_one();
  }
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

void plan_shelf::enqueue(std::function<void()> job) {
  const std::lock_guard lock(queue_->mutex);
  queue_->jobs.push_back(std::move(job));
  queue_->wake.notify_one();
}

void plan_shelf::work(job_queue& queue) {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(queue.mutex);
      queue.wake.wait(lock, [&] { return queue.closing || !queue.jobs.empty(); });
      if (queue.closing)
        return;
      job = std::move(queue.jobs.front());
      queue.jobs.pop_front();
    }
    job();
  }
}

void plan_shelf::check_numbers(const install& order) const {
  const auto known = plans_.find(order.plan);
  if (known != plans_.end() && known->second.encoded != order.encoded)
    fail(errc::invalid_input, "plan {} is another one than before", order.plan);
  const auto made = bound_.find(order.bound_plan);
  const bound_plan_ptr bound = made == bound_.end() ? nullptr : made->second.bound.lock();
  if (bound &&
      (known == plans_.end() || known->second.plan.source != bound->source || made->second.binding != order.binding))
    fail(errc::invalid_input, "bound plan {} is another one than before", order.bound_plan);
}

bound_plan_ptr plan_shelf::make(const install& order, loaded_bytes& loaded, const load_told& told) {
  auto& [p, encoded, offered] = plan_of(order);
  if (order.self >= real_devices(*p.source).size())
    fail(errc::invalid_input, "the plan has no device {}", order.self);
  std::erase_if(layouts_,
                [](const auto& known) { return known.second.use_count() == 1; }); // no bound plan has it any more
  std::erase_if(bound_, [](const auto& known) { return known.second.bound.expired(); });
  const auto known = bound_.find(order.bound_plan);
  bound_plan_ptr bound = known == bound_.end() ? nullptr : known->second.bound.lock();
  if (!bound) {
    bound = wire::decode_binding(order.binding, p, layouts_).bound;
    bound_[order.bound_plan] = {order.binding, bound};
  }
  weights_.load(p, order.self, offered, loaded, told);
  return bound;
}

plan_shelf::shelved_plan& plan_shelf::plan_of(const install& order) {
  if (const auto known = plans_.find(order.plan); known != plans_.end())
    return known->second;
  if (order.encoded.size < 0 || order.encoded.size > max_plan_bytes)
    fail(errc::invalid_input, "a plan of {} bytes is too long", order.encoded.size);
  const tensor encoded(dtype::uint8, {order.encoded.size});
  pull_and_wait(pulling_from(puller_), order.encoded.key, encoded);
  wire::decoded_plan decoded = wire::decode_plan(encoded.values<uint8_t>());
  return plans_.try_emplace(order.plan, std::move(decoded), order.encoded, weights_.offers()).first->second;
}

} // namespace troupe::remote
