#include "remote/plan_shelf.hpp"

#include "remote/values.hpp"

#include <future>

namespace troupe::remote {
namespace {

/// A plan names its nodes and small constants; no sensible one is longer.
constexpr int64_t max_plan_bytes = int64_t{1} << 30;

} // namespace

plan_shelf::plan_shelf(weight_store& weights, model_folder* models, std::shared_ptr<piece_puller> puller)
    : weights_(weights), models_(models), puller_(std::move(puller)), thread_([queue = queue_] { work(*queue); }) {}

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

bound_plan_ptr plan_shelf::make(const install& order) {
  wire::decoded_plan& p = plan_of(order);
  if (order.self >= real_devices(*p.source).size())
    fail(errc::invalid_input, "the plan has no device {}", order.self);
  std::erase_if(layouts_,
                [](const auto& known) { return known.second.use_count() == 1; }); // no bound plan has it any more
  bound_plan_ptr bound = wire::decode_binding(order.binding, p, layouts_).bound;
  load_weights(p, order.self);
  return bound;
}

wire::decoded_plan& plan_shelf::plan_of(const install& order) {
  if (const auto known = plans_.find(order.plan); known != plans_.end())
    return known->second;
  if (order.encoded.size < 0 || order.encoded.size > max_plan_bytes)
    fail(errc::invalid_input, "a plan of {} bytes is too long", order.encoded.size);
  const tensor encoded(dtype::uint8, {order.encoded.size});
  pull(order.encoded.key, encoded);
  return plans_.emplace(order.plan, wire::decode_plan(encoded.values<uint8_t>())).first->second;
}

void plan_shelf::load_weights(wire::decoded_plan& p, device_index self) {
  const auto fill = [&](const hash128& content, const tensor& bytes) {
    weight& leaf = *p.leaves.at(content);
    wire::fill(leaf, from_blob(leaf.type, leaf.dims, to_blob(bytes)));
  };
  std::vector<hash128> missing;
  for (const hash128& content : wire::leaves_needed(*p.source, self)) {
    const weight& leaf = *p.leaves.at(content);
    if (const tensor bytes = weights_.find(content, leaf.type, leaf.dims); bytes.defined())
      fill(content, bytes);
    else
      missing.push_back(content);
  }
  if (models_ && !missing.empty())
    for (const auto& [content, bytes] : models_->find(missing)) {
      fill(content, weights_.share(content, bytes));
      std::erase(missing, content);
    }
  for (const hash128& content : missing) {
    const weight& leaf = *p.leaves.at(content);
    weight_writer to = weights_.begin(content, leaf.type, leaf.dims);
    pull(content, to.destination());
    fill(content, weights_.commit(to));
  }
}

void plan_shelf::pull(const hash128& key, const tensor& to) {
  std::promise<failure> ended;
  puller_->pull(key, to, [&](const failure& why) { ended.set_value(why); });
  if (const failure why = ended.get_future().get(); why.failed())
    fail(why.code, "{}", why.message);
}

} // namespace troupe::remote
