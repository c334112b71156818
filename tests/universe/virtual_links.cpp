// Links between virtual hosts, and how frames get over them.
#include "universe/virtual_internet.hpp"

#include "base/error.hpp"

namespace troupe::universe {

using clock = std::chrono::steady_clock;

/// One end of a link.
class virtual_internet::state::cable_end final : public remote::link {
public:
  cable_end(std::shared_ptr<state> s, cable_ptr over, size_t index)
      : state_(std::move(s)), over_(std::move(over)), index_(index), other_(over_->to[index].from_host) {}

  void send(frame f) override { state_->send(*over_, index_, std::move(f)); }
  void receive(remote::link_handler handler) override {
    const std::lock_guard lock(state_->mutex);
    over_->to[index_].handler = std::move(handler);
    state::wake(over_->to[index_]);
  }
  void close() override { state_->close(*over_, index_); }
  std::string other_host() const override { return other_; }

private:
  const std::shared_ptr<state> state_;
  const cable_ptr over_;
  const size_t index_;
  const std::string other_;
};

void virtual_internet::state::send(cable& over, size_t from, frame f) {
  const std::lock_guard lock(mutex);
  direction& d = over.to[1 - from];
  const auto liar = liars.find(d.from_host);
  if (liar == liars.end())
    return put_on_way(over, d, std::move(f));
  for (frame& other : liar->second.instead_of(std::move(f)))
    put_on_way(over, d, std::move(other));
}

frame virtual_internet::state::said_by(const std::string& host, frame sound) {
  const auto liar = liars.find(host);
  if (liar == liars.end())
    return sound;
  std::vector<frame> said = liar->second.instead_of(std::move(sound));
  return said.empty() ? frame() : std::move(said.front());
}

void virtual_internet::state::put_on_way(cable& over, direction& d, frame f) {
  if (!d.open)
    return;
  if (f.size() > remote::max_frame_bytes)
    return cut(over, "a frame is too long");
  const way& how = way_to(d).how;
  const double s = static_cast<double>(f.size()) / how.bytes_per_second;
  d.free_at = std::max(d.free_at, clock::now()) + std::chrono::nanoseconds(static_cast<int64_t>(1e9 * s));
  d.items.push_back({d.free_at + how.delay, std::move(f), ""});
  wake(d);
}

void virtual_internet::state::close(cable& over, size_t by) {
  const std::lock_guard lock(mutex);
  close_locked(over, by);
}

/// The other end still gets frames that were sent before.
void virtual_internet::state::close_locked(cable& over, size_t by) {
  direction &own = over.to[by], &other = over.to[1 - by];
  if (own.open) {
    own.items.clear();
    own.items.push_back({clock::now(), {}, "this end has closed the link"});
  }
  if (other.open)
    other.items.push_back(
        {std::max(other.free_at, clock::now()) + way_to(other).how.delay, {}, "the other end has closed the link"});
  own.open = other.open = false;
  wake(own);
  wake(other);
}

/// Both ends hear of it at once, and frames on their way are lost. Under the lock.
void virtual_internet::state::cut(cable& over, const std::string& why) {
  for (direction& d : over.to)
    if (d.open || !d.items.empty()) {
      d.items.clear();
      d.items.push_back({clock::now(), {}, why});
      d.open = false;
      wake(d);
    }
}

void virtual_internet::state::cut_all(const pair_of_hosts& which, const std::string& why) {
  for (const auto& [number, c] : std::map(cables))
    if (const cable_ptr over = c.lock(); !over)
      cables.erase(number);
    else if (which(over->to[0].to_host, over->to[1].to_host))
      cut(*over, why);
}

cable_ptr virtual_internet::state::lay(const place_ptr& from, const place_ptr& to) {
  const auto made = std::make_shared<cable>();
  made->number = ++last;
  made->to[0].to = from;
  made->to[1].to = to;
  made->to[0].from_host = made->to[1].to_host = to->host;
  made->to[1].from_host = made->to[0].to_host = from->host;
  cables[made->number] = made;
  from->cables[made->number] = made;
  return made;
}

remote::link_ptr virtual_internet::state::end_of(const cable_ptr& over, size_t index) {
  return std::make_shared<cable_end>(shared_from_this(), over, index);
}

// -- delivery

/// Returns when there is something for an end: the next item, or that nothing has come for too long.
std::optional<time_point> virtual_internet::state::next_time(const direction& d) {
  const known_way& over = way_to(d);
  if (over.how.held && d.open)
    return over.held_since + actors::network::silence_limit;
  const bool is_of_this_side = !d.items.empty() && !d.items.front().end.empty(); // a cut, or a close at this end
  if (!d.handler || d.items.empty() || (over.how.held && !is_of_this_side))
    return std::nullopt;
  return d.items.front().arrival;
}

void virtual_internet::state::deliver(const place_ptr& p) {
  std::unique_lock lock(mutex);
  for (;;) {
    cable_ptr over;
    size_t end = 0;
    std::optional<time_point> first;
    for (const auto& [number, c] : p->cables)
      for (size_t e = 0; e < 2; ++e)
        if (const auto at = c->to[e].to == p ? next_time(c->to[e]) : std::nullopt; at && (!first || *at < *first)) {
          over = c;
          end = e;
          first = at;
        }
    if (!first && p->closing)
      return;
    if (!first)
      p->due.wait(lock);
    else if (*first > clock::now())
      p->due.wait_until(lock, *first);
    else if (way_to(over->to[end]).how.held && over->to[end].open)
      cut(*over, "the other host is silent");
    else
      hand_over(p, over, end, lock);
  }
}

void virtual_internet::state::hand_over(const place_ptr& p, const cable_ptr& over, size_t end,
                                        std::unique_lock<std::mutex>& lock) {
  direction& d = over->to[end];
  item first = std::move(d.items.front());
  d.items.pop_front();
  if (first.end.empty()) {
    remote::link_handler& handler = *d.handler; // no other thread changes it
    lock.unlock();
    handler.on_frame(first.content);
    lock.lock();
    ++frames_come[p->host];
    frame_came.notify_all();
    return;
  }
  std::optional<remote::link_handler> last;
  last.swap(d.handler);
  d.to = nullptr;
  if (over->to[1 - end].to != p)
    p->cables.erase(over->number);
  p->enders.emplace_back([handler = std::move(last), why = first.end]() mutable {
    handler->on_closed(why);
    handler.reset();
  });
}

} // namespace troupe::universe
