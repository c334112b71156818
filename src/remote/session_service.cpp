#include "remote/session_service.hpp"

#include "remote/weakly.hpp"

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
      room_(shared_->room), queues_(shared_->devices.size()),
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
  if (why.failed())
    refuse(why);
}

void session_service::refuse(const failure& why) {
  shared_->options.log("refused", {{"session", name_}, {"why", why.message}});
  link_->close();
}

void session_service::on(message& m) {
  if (!budget_.take(m))
    return;
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
  else if (auto* proofs = std::get_if<weight_proofs>(&m))
    weights_.tell(std::move(*proofs));
  else if (const auto* old = std::get_if<remote::retire>(&m))
    retire(*old);
  else if (const auto* over = std::get_if<stop_chunks>(&m))
    stop(over->execution);
  else if (const auto* over_there = std::get_if<end_chunks>(&m))
    end(*over_there);
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
  decltype(lent_) lent;
  decltype(values_) values;
  std::vector<served_chunk_ptr> waiting;
  std::vector<served_executions::place> idle;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    lent.swap(lent_);
    values.swap(values_);
    for (device_queue& queue : queues_) { // emptied, not replaced: somebody may be pumping
      waiting.insert(waiting.end(), queue.waiting.begin(), queue.waiting.end());
      queue.waiting.clear();
    }
    executions_.stop_all();
    for (const served_chunk_ptr& chunk : waiting)
      executions_.finish(chunk->at, chunk->work.chunk, false);
    idle = executions_.take_idle(); // the others when their chunks have ended
  }
  for (const auto& [key, entry] : values)
    if (entry.is_offered)
      shared_->offers.withdraw(key);
  for (const auto& at : idle)
    shared_->devices[at.device]->end(local(at.execution));
}

// -- plans

void session_service::install(remote::install order) {
  device(order.device);
  held_memory held;
  const failure full = capture([&] { held = room_.hold(static_cast<int64_t>(order.binding.size())); });
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
    return finish_install(order, nullptr, full);
  // The job, as long as it waits, counts its binding.
  plans_.enqueue([weak = weak_from_this(), order = std::move(order), held] {
    if (const auto self = weak.lock())
      self->make_and_install(order);
  });
}

void session_service::make_and_install(const remote::install& order) {
  if (const failure broken = capture([&] { plans_.check_numbers(order); }); broken.failed())
    return refuse(broken);
  bound_plan_ptr bound;
  held_memory held;
  loaded_bytes weights;
  const int64_t begin = now_ns();
  const failure why = capture([&] {
    bound = plans_.make(order, weights, [&](int64_t came, int64_t total) {
      say(loading{order.device, came, total});
    }); // weights of this device, too
    held = room_.hold(memory_of(*bound) + static_cast<int64_t>(order.binding.size()));
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
  device(order.device)
      .install(bound, order.self, [self = shared_from_this(), order, bound, held](const failure& failed) {
        lent_plan_ptr made;
        if (failed.failed())
          self->memory_->give_back(order.device, *bound, order.self);
        else
          made = std::make_shared<const lent_plan>(self->shared_->devices[order.device], order.device, bound,
                                                   order.self, self->memory_, held);
        self->finish_install(order, std::move(made), failed);
      });
}

void session_service::finish_install(const remote::install& order, lent_plan_ptr made, const failure& why) {
  {
    const std::lock_guard lock(mutex_);
    const lent_key key(order.bound_plan, order.device);
    if (made && !ended_) // else it is retired below, when nobody holds it
      lent_[key] = std::move(made);
    else
      lent_.erase(key);
  }
  say(installed{order.device, order.bound_plan, why});
}

void session_service::retire(const remote::retire& order) {
  lent_plan_ptr old; // goes when the lock is free
  const std::lock_guard lock(mutex_);
  const auto found = lent_.find({order.bound_plan, order.device});
  if (found == lent_.end())
    return; // its install failed
  if (!found->second)
    fail(errc::invalid_input, "bound plan {} is retired before it is installed", order.bound_plan);
  std::erase_if(retired_, [](const auto& entry) { return entry.second.expired(); });
  retired_[found->first] = found->second;
  old = std::move(found->second);
  lent_.erase(found);
}

lent_plan_ptr session_service::lent(uint64_t bound_plan, uint32_t device) const {
  const std::lock_guard lock(mutex_);
  const auto found = lent_.find({bound_plan, device});
  if (found == lent_.end() || !found->second)
    fail(errc::invalid_input, "bound plan {} is not installed on device {}", bound_plan, device);
  return found->second;
}

// -- values

held_memory session_service::hold(const sent_value& value) {
  return room_.hold(std::max(value.size, static_cast<int64_t>(value.bytes.size())));
}

value_ref session_service::kept(const hash128& key) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end())
    fail(errc::invalid_input, "a value that is not kept here is asked for");
  return found->second.value;
}

void session_service::keep(const hash128& key, value_ref value, const tensor& blob, held_memory held) {
  const std::lock_guard lock(mutex_);
  if (ended_)
    return;
  budget_.check_kept(values_.size());
  const auto [entry, is_new] = values_.try_emplace(key);
  // The key may be one that another session has told this one: its value stays what it is.
  if (is_new && blob.defined())
    entry->second.is_offered = shared_->offers.offer_new(key, blob);
  if (!is_new || (blob.defined() && !entry->second.is_offered)) {
    if (is_new)
      values_.erase(entry);
    fail(errc::invalid_input, "a value is to be kept under a key that another value has");
  }
  entry->second.value = std::move(value);
  entry->second.held = std::move(held);
}

void session_service::forget(const hash128& key) {
  kept_entry gone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = values_.extract(key);
    if (found.empty())
      return;
    gone = std::move(found.mapped());
  }
  if (gone.is_offered)
    shared_->offers.withdraw(key);
}

void session_service::fetch(const fetch_kept& question) {
  const value_ref value = kept(question.key);
  if (value->resident() && value->resident()->device() != device(question.device).info().name)
    fail(errc::invalid_input, "a value of device {} is asked for that another device has", question.device);
  const auto tell = [self = shared_from_this(), request = question.request](const fetch_result& result) {
    fetched answer{.request = request, .why = {result.code, result.message}};
    // A device's thread may call this, and has no use for what is thrown: the session waits for its answer.
    if (result.ok())
      answer.why = capture([&] {
        answer.value = self->keep({.key = new_key(), .home = destination::host, .send = true},
                                  std::make_shared<moved_value>(result.value));
      });
    self->say(std::move(answer));
  };
  if (value->resident())
    device(question.device).fetch(value->resident(), tell);
  else
    tell({.value = value->host()});
}

void session_service::put(put_value order) {
  device(order.device);
  held_memory held;
  if (const failure full = capture([&] { held = hold(order.value); }); full.failed())
    return say(was_put{order.request, full});
  const auto finish = [self = shared_from_this(), request = order.request, key = order.key,
                       held](const device_tensor& value, failure why) {
    if (!why.failed())
      why = capture([&] {
        self->keep({.key = key, .home = destination::device}, std::make_shared<moved_value>(value->host(), value),
                   inline_bytes, held);
      });
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
