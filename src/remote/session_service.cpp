#include "remote/session_service.hpp"

#include "remote/weakly.hpp"

namespace troupe::remote {

session_service::session_service(std::shared_ptr<shared_service> shared, link_ptr connection, std::string name,
                                 uint64_t number, std::function<void()> ended)
    : shared_(std::move(shared)), link_(std::move(connection)), name_(std::move(name)), number_(number),
      when_ended_(std::move(ended)),
      puller_(std::make_shared<piece_puller>([l = link_](const piece_request& wanted) { l->send(encode(wanted)); })),
      from_session_{pulling_from(puller_), shared_->options.make},
      memory_(session_memory::make(shared_->memory,
                                   [l = link_](uint32_t device, int64_t bytes) {
                                     l->send(encode(memory_wanted{device, bytes}));
                                   })),
      queues_(shared_->devices.size()),
      weights_(*shared_, name_, puller_, [l = link_](const message& m) { l->send(encode(m)); }),
      plans_(weights_, puller_) {}

session_service::~session_service() {
  link_->close();
}

void session_service::start() {
  // The host service holds the session until its link has ended.
  link_->receive({.on_frame = weakly(weak_from_this(), &session_service::on_frame),
                  .on_closed = weakly(weak_from_this(), &session_service::on_closed)});
}

void session_service::on_frame(const frame& f) {
  const failure why = capture([&] {
    message m = decode(f);
    on(m);
  });
  if (!why.failed())
    return;
  shared_->options.log("refused", {{"session", name_}, {"why", why.message}});
  link_->close();
}

void session_service::on(message& m) {
  budget_.take(m);
  if (auto* order = std::get_if<run_chunk>(&m))
    run(std::move(*order));
  else if (const auto* wanted = std::get_if<piece_request>(&m))
    say(shared_->offers.answer(*wanted));
  else if (const auto* part = std::get_if<piece>(&m))
    puller_->on_piece(*part);
  else if (auto* plan = std::get_if<remote::install>(&m))
    install(std::move(*plan));
  else if (auto* source = std::get_if<weight_source>(&m))
    weights_.tell(std::move(*source));
  else if (const auto* old = std::get_if<remote::retire>(&m))
    retire(*old);
  else if (const auto* over = std::get_if<stop_chunks>(&m))
    stop(over->execution);
  else if (const auto* end = std::get_if<end_chunks>(&m))
    device(end->device).end(local(end->execution));
  else if (const auto* gone = std::get_if<forget_plan>(&m))
    plans_.enqueue([weak = weak_from_this(), id = gone->plan] {
      if (const auto self = weak.lock())
        self->plans_.forget(id);
    });
  else if (const auto* keys = std::get_if<release>(&m))
    for (const hash128& key : keys->keys)
      forget(key);
  else if (const auto* question = std::get_if<fetch_kept>(&m))
    fetch(*question);
  else if (auto* value = std::get_if<put_value>(&m))
    put(std::move(*value));
  else if (const auto* asked = std::get_if<ask_stats>(&m))
    device(asked->device).stats([self = shared_from_this(), request = asked->request](const device_stats& stats) {
      self->say(stats_told{request, stats});
    });
  else if (const auto* measured = std::get_if<ping>(&m)) {
    if (measured->answer_bytes > max_frame_bytes / 2)
      fail(errc::invalid_input, "an answer of {} bytes is asked for", measured->answer_bytes);
    say(pong{measured->request, now_ns(), std::vector<uint8_t>(measured->answer_bytes)});
  } else
    fail(errc::invalid_input, "message {} is none of a session's", m.index());
}

served_device& session_service::device(uint32_t index) const {
  if (index >= shared_->devices.size())
    fail(errc::invalid_input, "there is no device {}", index);
  return *shared_->devices[index];
}

void session_service::on_closed(const std::string& why) {
  puller_->close(why);
  weights_.close(why);
  memory_->stop_waiting();
  release_all();
  shared_->options.log("left", {{"session", name_}, {"why", why}});
  when_ended_();
}

void session_service::release_all() {
  decltype(bound_) bound;
  decltype(values_) values;
  std::vector<served_chunk_ptr> waiting;
  std::vector<std::pair<uint32_t, uint64_t>> ended;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    bound.swap(bound_);
    values.swap(values_);
    for (device_queue& queue : queues_) { // emptied, not replaced: somebody may be pumping
      waiting.insert(waiting.end(), queue.waiting.begin(), queue.waiting.end());
      queue.waiting.clear();
    }
    for (auto& [id, e] : executions_) {
      e.stop->store(true);
      for (uint32_t d = 0; d < queues_.size(); ++d)
        ended.emplace_back(d, id);
    }
  }
  for (const auto& [key, value] : values)
    shared_->offers.withdraw(key);
  for (const auto& [device, execution] : ended)
    shared_->devices[device]->end(local(execution));
  for (const auto& [id, plan] : bound)
    for (const auto& [device, self] : plan.devices)
      retire(device, *plan.bound, self);
}

// -- plans

void session_service::install(remote::install order) {
  device(order.device);
  {
    const std::lock_guard lock(mutex_);
    const auto known = bound_.find(order.bound_plan);
    if (known != bound_.end() && known->second.devices.contains(order.device))
      fail(errc::invalid_input, "bound plan {} is installed already", order.bound_plan);
  }
  plans_.enqueue([weak = weak_from_this(), order = std::move(order)] {
    if (const auto self = weak.lock())
      self->make_and_install(order);
  });
}

void session_service::make_and_install(const remote::install& order) {
  bound_plan_ptr bound;
  loaded_bytes weights;
  const int64_t begin = now_ns();
  const failure why = capture([&] {
    bound = made_[order.bound_plan].lock();
    bound_plan_ptr made = plans_.make(order, weights, [&](int64_t came, int64_t total) {
      say(loading{order.device, came, total});
    }); // weights of this device, too
    if (!bound)
      bound = std::move(made);
    std::erase_if(made_, [](const auto& known) { return known.second.expired(); });
    made_[order.bound_plan] = bound; // for other devices, whose installs may come before this one has ended
    const device_info& own = device(order.device).info();
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
    return finish_install(order, nullptr, why);
  shared_->options.log("loaded", {{"session", name_},
                                  {"device", device(order.device).info().name},
                                  {"plan", std::to_string(order.plan)},
                                  {"bytes_here", std::to_string(weights.here)},
                                  {"bytes_from_session", std::to_string(weights.session)},
                                  {"bytes_from_peers", std::to_string(weights.peers)},
                                  {"ms", fmt::format("{:.1f}", static_cast<double>(now_ns() - begin) * 1e-6)}});
  device(order.device).install(bound, order.self, [self = shared_from_this(), order, bound](const failure& failed) {
    self->finish_install(order, bound, failed);
  });
}

void session_service::finish_install(const remote::install& order, const bound_plan_ptr& bound, const failure& why) {
  bool is_late = false;
  if (!why.failed()) {
    const std::lock_guard lock(mutex_);
    is_late = ended_;
    if (!ended_) {
      installed_plan& plan = bound_[order.bound_plan];
      plan.bound = bound;
      plan.devices[order.device] = order.self;
    }
  }
  if (is_late)
    retire(order.device, *bound, order.self);
  else if (bound && why.failed())
    memory_->give_back(order.device, *bound, order.self);
  say(installed{order.device, order.bound_plan, why});
}

void session_service::retire(const remote::retire& order) {
  bound_plan_ptr bound;
  device_index self = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = bound_.find(order.bound_plan);
    if (found == bound_.end() || !found->second.devices.contains(order.device))
      return; // its install failed
    bound = found->second.bound;
    self = found->second.devices.at(order.device);
    found->second.devices.erase(order.device);
    if (found->second.devices.empty())
      bound_.erase(found);
  }
  retire(order.device, *bound, self);
}

void session_service::retire(uint32_t on, const bound_plan& bound, device_index self) {
  device(on).retire(bound.id);
  memory_->give_back(on, bound, self); // whoever gets it asks the device after that
}

// -- kept values

value_ref session_service::kept(const hash128& key) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end())
    fail(errc::invalid_input, "a value that is not kept here is asked for");
  return found->second;
}

void session_service::keep(const hash128& key, value_ref value, const tensor& blob) {
  {
    const std::lock_guard lock(mutex_);
    budget_.check_kept(values_.size());
  }
  if (blob.defined())
    shared_->offers.offer(key, blob);
  bool is_late = false;
  {
    const std::lock_guard lock(mutex_);
    is_late = ended_ || !values_.emplace(key, std::move(value)).second;
  }
  if (is_late)
    shared_->offers.withdraw(key);
}

void session_service::forget(const hash128& key) {
  value_ref value;
  {
    const std::lock_guard lock(mutex_);
    const auto found = values_.extract(key);
    if (found.empty())
      return;
    value = std::move(found.mapped());
  }
  shared_->offers.withdraw(key);
}

void session_service::fetch(const fetch_kept& question) {
  const value_ref value = kept(question.key);
  const auto tell = [self = shared_from_this(), request = question.request](const fetch_result& result) {
    fetched answer{.request = request, .why = {result.code, result.message}};
    if (result.ok())
      answer.value = self->keep({.key = new_key(), .home = destination::host, .send = true},
                                std::make_shared<moved_value>(result.value));
    self->say(std::move(answer));
  };
  if (value->resident())
    device(question.device).fetch(value->resident(), tell);
  else
    tell({.value = value->host()});
}

void session_service::put(put_value order) {
  device(order.device);
  const auto finish = [self = shared_from_this(), request = order.request, key = order.key](const device_tensor& value,
                                                                                            const failure& why) {
    if (!why.failed())
      self->keep({.key = key, .home = destination::device}, std::make_shared<moved_value>(value->host(), value));
    self->say(was_put{request, why});
  };
  take(std::move(order.value), {}, from_session_,
       [self = shared_from_this(), finish, device = order.device](const tensor& value, const failure& why) {
         if (why.failed())
           finish(nullptr, why);
         else
           self->device(device).put(value, finish);
       });
}

} // namespace troupe::remote
