#include "support/link_pair.hpp"

#include <algorithm>

namespace troupe::test {

using remote::frame;
using remote::link_handler;

struct link_pair::wire {
  struct item {
    time_point arrival;
    frame content;
    std::string end; // why the link has ended, in the place of a frame
  };
  struct direction {
    std::deque<item> items;
    time_point free_at{}; // when all sent frames have left
    int64_t sent = 0;
    std::optional<link_handler> handler; // of the end that this leads to
    bool open = true;                    // whether frames may be added
  };

  wire(link_conditions how, link_driver driver) : conditions(how), by_hand(driver == link_driver::by_hand) {}

  time_point now() const { return by_hand ? virtual_now : std::chrono::steady_clock::now(); }

  void send(size_t from, frame f) {
    const std::lock_guard lock(mutex);
    direction& d = to[1 - from];
    if (!d.open)
      return;
    d.sent += static_cast<int64_t>(f.size());
    if (f.size() > remote::max_frame_bytes)
      return cut("a frame is too long");
    if (conditions.cut_after >= 0 && to[0].sent + to[1].sent > conditions.cut_after)
      return cut("the connection was lost");
    d.free_at = std::max(d.free_at, now());
    if (conditions.bytes_per_second > 0)
      d.free_at += std::chrono::nanoseconds(
          static_cast<int64_t>(1e9 * static_cast<double>(f.size()) / conditions.bytes_per_second));
    d.items.push_back({d.free_at + conditions.delay, std::move(f), ""});
    changed.notify_all();
  }

  /// Both ends hear of the end at once, and frames on their way are lost. Under the lock.
  void cut(const std::string& why) {
    for (direction& d : to)
      if (d.open || !d.items.empty()) {
        d.items.clear();
        d.items.push_back({now(), {}, why});
        d.open = false;
      }
    changed.notify_all();
  }

  /// The other end still gets frames that were sent before.
  void close(size_t by) {
    const std::lock_guard lock(mutex);
    direction &own = to[by], &other = to[1 - by];
    if (own.open) {
      own.items.clear();
      own.items.push_back({now(), {}, "this end has closed the link"});
    }
    if (other.open)
      other.items.push_back(
          {std::max(other.free_at, now()) + conditions.delay, {}, "the other end has closed the link"});
    own.open = other.open = false;
    changed.notify_all();
  }

  bool deliverable(const direction& d) const { return !held && d.handler && !d.items.empty(); }

  /// Delivers the first item, without the lock.
  void deliver(std::unique_lock<std::mutex>& lock, direction& d) {
    item next = std::move(d.items.front());
    d.items.pop_front();
    std::optional<link_handler> last;
    if (!next.end.empty())
      d.handler.swap(last);
    link_handler& handler = last ? *last : *d.handler; // it stays: no other thread changes it
    lock.unlock();
    if (next.end.empty())
      handler.on_frame(next.content);
    else
      handler.on_closed(next.end);
    lock.lock();
  }

  void run(direction& d) {
    std::unique_lock lock(mutex);
    while (!stopping) {
      if (!deliverable(d))
        changed.wait(lock);
      else if (const time_point arrival = d.items.front().arrival; arrival > now())
        changed.wait_until(lock, arrival);
      else
        deliver(lock, d);
    }
  }

  link_conditions conditions;
  const bool by_hand;
  std::mutex mutex;
  std::condition_variable changed;
  std::array<direction, 2> to; // to end 0 and to end 1
  time_point virtual_now{};
  bool held = false, stopping = false;
};

namespace {

template <class Wire>
class one_end : public remote::link {
public:
  one_end(std::shared_ptr<Wire> w, size_t index) : wire_(std::move(w)), index_(index) {}

  void send(frame f) override { wire_->send(index_, std::move(f)); }
  void receive(link_handler handler) override {
    const std::lock_guard lock(wire_->mutex);
    wire_->to[index_].handler = std::move(handler);
    wire_->changed.notify_all();
  }
  void close() override { wire_->close(index_); }

private:
  std::shared_ptr<Wire> wire_;
  size_t index_;
};

} // namespace

link_pair::link_pair(link_conditions how, link_driver driver) : wire_(std::make_shared<wire>(how, driver)) {
  for (size_t i = 0; i < 2; ++i) {
    ends_[i] = std::make_shared<one_end<wire>>(wire_, i);
    if (driver == link_driver::threads)
      threads_[i] = std::thread([w = wire_, i] { w->run(w->to[i]); });
  }
}

link_pair::~link_pair() {
  stop();
}

void link_pair::stop() {
  {
    const std::lock_guard lock(wire_->mutex);
    wire_->stopping = true;
    wire_->changed.notify_all();
  }
  for (std::thread& t : threads_)
    if (t.get_id() == std::this_thread::get_id())
      t.detach(); // a handler had the last hold of the pair
    else if (t.joinable())
      t.join();
  std::array<std::optional<link_handler>, 2> handlers; // they may hold objects that hold the ends
  {
    const std::lock_guard lock(wire_->mutex);
    for (size_t i = 0; i < 2; ++i) {
      wire_->to[i].handler.swap(handlers[i]);
      wire_->to[i].open = false;
    }
  }
  for (const auto& handler : handlers) // a waiter for the other end would keep its memory for ever
    if (handler)
      handler->on_closed("the link was taken away");
}

void link_pair::hold() {
  const std::lock_guard lock(wire_->mutex);
  wire_->held = true;
}

void link_pair::release() {
  const std::lock_guard lock(wire_->mutex);
  wire_->held = false;
  wire_->changed.notify_all();
}

void link_pair::cut() {
  const std::lock_guard lock(wire_->mutex);
  wire_->cut("the connection was lost");
}

void link_pair::set_conditions(link_conditions how) {
  const std::lock_guard lock(wire_->mutex);
  wire_->conditions = how;
}

bool link_pair::step() {
  std::unique_lock lock(wire_->mutex);
  wire::direction* next = nullptr;
  for (wire::direction& d : wire_->to)
    if (wire_->deliverable(d) && (!next || d.items.front().arrival < next->items.front().arrival))
      next = &d;
  if (!next)
    return false;
  wire_->virtual_now = std::max(wire_->virtual_now, next->items.front().arrival);
  wire_->deliver(lock, *next);
  return true;
}

link_pair::time_point link_pair::now() const {
  const std::lock_guard lock(wire_->mutex);
  return wire_->now();
}

void link_pair::advance(std::chrono::nanoseconds by) {
  const std::lock_guard lock(wire_->mutex);
  wire_->virtual_now += by;
}

int64_t link_pair::sent(size_t i) const {
  const std::lock_guard lock(wire_->mutex);
  return wire_->to[1 - i].sent;
}

} // namespace troupe::test
