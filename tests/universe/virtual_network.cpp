#include "universe/virtual_internet.hpp"

#include "base/error.hpp"

namespace troupe::universe {

using clock = std::chrono::steady_clock;

namespace {

constexpr const char* process_is_gone = "cannot be reached: Connection reset";

} // namespace

/// The network of one process.
class virtual_internet::state::virtual_network final : public actors::network {
public:
  virtual_network(std::shared_ptr<state> s, const std::string& host) : state_(std::move(s)) {
    place_->host = host;
    {
      const std::lock_guard lock(state_->mutex);
      state_->places.push_back(place_);
    }
    place_->deliverer = std::thread([s = state_, p = place_] { s->deliver(p); });
  }
  ~virtual_network() override { state_->leave(place_); }

  uint16_t listen(const std::string&, uint16_t port, actors::link_acceptor accept) override {
    const std::lock_guard lock(state_->mutex);
    place_->accept = std::move(accept);
    place_->door = std::thread([s = state_, p = place_] { s->answer_calls(p); });
    state_->listening[place_->host] = place_;
    return port;
  }
  actors::opened_link connect(const std::string& host, uint16_t, frame hello,
                              std::chrono::milliseconds timeout) override {
    return state_->connect(place_, host, std::move(hello), timeout);
  }
  bool exposes(const std::string&) const override { return false; }

private:
  const std::shared_ptr<state> state_;
  const place_ptr place_ = std::make_shared<place>();
};

// -- calls

/// Links are as fast as they are told to be: copies of more bytes would take half of a universe's time.
constexpr remote::measuring_effort effort{.last_load = 4096, .repeats = 1};

actors::opened_link virtual_internet::state::connect(const place_ptr& from, const std::string& host, frame hello,
                                                     std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex);
  const time_point end = clock::now() + timeout;
  const auto found = listening.find(host);
  if (found == listening.end() || from->gone) {
    from->answered.wait_for(lock, ways[{from->host, host}].how.delay, [] { return false; });
    fail(errc::io, "{} cannot be reached: Connection refused", host);
  }
  const auto c = std::make_shared<call>();
  c->over = lay(from, found->second);
  c->hello = said_by(from->host, std::move(hello));
  c->arrival = clock::now() + ways[{from->host, host}].how.delay;
  found->second->calls.push_back(c);
  found->second->called.notify_all();
  const direction& back = c->over->to[0];
  for (;;) {
    const bool is_here = c->answered && !way_to(back).how.held && c->answer_arrival <= clock::now();
    if (is_here || clock::now() >= end)
      break;
    from->answered.wait_until(lock, c->answered && !way_to(back).how.held ? std::min(end, c->answer_arrival) : end);
  }
  c->given_up = true;
  const bool is_late = clock::now() >= end && !c->answered;
  if (!is_late && c->refusal.empty())
    return {end_of(c->over, 0), c->welcome, effort};
  cut(*c->over, "the call was not answered");
  from->cables.erase(c->over->number);
  if (is_late)
    fail(errc::timeout, "{} does not answer", host);
  fail(errc::io, "{} {}", host, c->refusal);
}

void virtual_internet::state::answer_calls(const place_ptr& p) {
  std::unique_lock lock(mutex);
  while (!p->closing) {
    time_point first = time_point::max();
    std::shared_ptr<call> next;
    for (const auto& c : p->calls)
      if (!way_to(c->over->to[1]).how.held && c->arrival < first) {
        first = c->arrival;
        next = c;
      }
    if (!next)
      p->called.wait(lock);
    else if (first > clock::now())
      p->called.wait_until(lock, first);
    else {
      std::erase(p->calls, next);
      answer(p, *next, lock);
    }
  }
}

void virtual_internet::state::answer(const place_ptr& p, call& c, std::unique_lock<std::mutex>& lock) {
  if (c.given_up)
    return;
  p->cables[c.over->number] = c.over;
  const remote::link_ptr end = end_of(c.over, 1);
  lock.unlock();
  std::string refusal;
  frame welcome;
  try {
    welcome = p->accept(c.hello, end);
  } catch (const error& e) {
    refusal = e.what();
  }
  lock.lock();
  if (p->gone)
    refusal = process_is_gone;
  if (!refusal.empty())
    p->cables.erase(c.over->number);
  c.answered = true;
  c.welcome = said_by(p->host, std::move(welcome));
  c.refusal = refusal;
  c.answer_arrival = clock::now() + way_to(c.over->to[0]).how.delay;
  if (c.over->to[0].to)
    c.over->to[0].to->answered.notify_all();
}

void virtual_internet::state::refuse_calls(place& p) {
  for (const auto& c : p.calls) {
    c->answered = true;
    c->refusal = process_is_gone;
  }
  p.calls.clear();
}

void virtual_internet::state::leave(const place_ptr& p) {
  std::vector<std::thread> enders;
  {
    const std::lock_guard lock(mutex);
    p->closing = true;
    if (const auto found = listening.find(p->host); found != listening.end() && found->second == p)
      listening.erase(found);
    refuse_calls(*p);
    for (const auto& [number, over] : std::map(p->cables))
      for (size_t e = 0; e < 2; ++e)
        if (over->to[e].to == p)
          close_locked(*over, e);
    wake_all();
  }
  if (p->door.joinable())
    p->door.join();
  p->deliverer.join();
  {
    const std::lock_guard lock(mutex);
    enders.swap(p->enders);
    p->cables.clear();
  }
  for (std::thread& t : enders)
    t.join();
}

// -- the internet

virtual_internet::virtual_internet() : state_(std::make_shared<state>()) {}
virtual_internet::~virtual_internet() = default;

std::unique_ptr<actors::network> virtual_internet::join(const std::string& host) {
  return std::make_unique<state::virtual_network>(state_, host);
}

void virtual_internet::set_way(const std::string& from, const std::string& to, const way& how) {
  const std::lock_guard lock(state_->mutex);
  known_way& known = state_->ways[{from, to}];
  if (how.held && !known.how.held)
    known.held_since = clock::now();
  known.how = how;
  // What is on the way gets through as the way is now: on a slow one it would have taken minutes.
  for (const auto& [number, weak] : state_->cables)
    if (const cable_ptr over = weak.lock())
      for (direction& d : over->to)
        if (d.from_host == from && d.to_host == to) {
          d.free_at = std::min(d.free_at, clock::now());
          for (item& each : d.items)
            each.arrival = std::min(each.arrival, clock::now() + how.delay);
        }
  state_->wake_all();
}

void virtual_internet::cut(const std::string& a, const std::string& b) {
  const std::lock_guard lock(state_->mutex);
  state_->cut_all([&](const auto& x, const auto& y) { return (x == a && y == b) || (x == b && y == a); },
                  "the connection was lost");
}

void virtual_internet::kill(const std::string& host) {
  const std::lock_guard lock(state_->mutex);
  if (const auto found = state_->listening.find(host); found != state_->listening.end()) {
    found->second->gone = true;
    state::refuse_calls(*found->second);
    state_->listening.erase(found);
  }
  state_->wake_all();
  state_->cut_all([&](const auto& x, const auto& y) { return x == host || y == host; }, "the connection was reset");
}

void virtual_internet::let_lie(const std::string& host, uint64_t seed, story& tale) {
  const std::lock_guard lock(state_->mutex);
  state_->liars.try_emplace(host, seed, tale);
}

void virtual_internet::await_frames(const std::string& host, uint64_t count, std::chrono::milliseconds limit) {
  std::unique_lock lock(state_->mutex);
  const uint64_t enough = state_->frames_come[host] + count;
  state_->frame_came.wait_for(lock, limit, [&] { return state_->frames_come[host] >= enough; });
}

} // namespace troupe::universe
