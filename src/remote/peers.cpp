#include "remote/peers.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace troupe::remote {
namespace {

/// Between two attempts to reach a peer.
constexpr auto attempt_pause = std::chrono::milliseconds(100);
/// Peers that are called at the same time, and links to peers: any session may name any address.
constexpr size_t most_callers = 32, most_links = 256;
/// A link that brings less is no better than one that brings nothing.
constexpr double slow_bytes_per_second = 256 << 10;

failure ending() {
  return {errc::cancelled, "the worker ends"};
}

} // namespace

struct peers::state : std::enable_shared_from_this<peers::state> {
  using clock = std::chrono::steady_clock;
  struct wish {
    peer_pull what;
    clock::time_point until; // how long the peer may be away

    bool is_patient() const { return clock::now() < until && !what.stop.stop_requested(); }
  };
  /// A link to a peer.
  struct line {
    explicit line(link_ptr c)
        : connection(std::move(c)), puller([l = connection](const piece_request& wanted) { l->send(encode(wanted)); }) {
    }

    const link_ptr connection;
    piece_puller puller;
    size_t pulls = 0; // under way; guarded by the mutex of all
    const clock::time_point opened = clock::now();
    std::atomic<clock::time_point> active{opened}; // asked or answered last
  };
  using line_ptr = std::shared_ptr<line>;
  struct peer {
    line_ptr link;           // null while there is none
    std::deque<wish> wishes; // for a link
    bool is_called = false;  // or will be
  };
  /// One to be called, not before `at`, or to be asked again.
  struct call {
    std::string address;
    clock::time_point at;
    std::optional<wish> refused; // what it did not have
  };

  state(peer_connector c, std::chrono::milliseconds p) : connect(std::move(c)), patience(p) {}

  void add(const std::string& address, wish w);
  void want_link(const std::string& address, peer& p);
  void call_peers();
  std::optional<call> next_call(std::unique_lock<std::mutex>& lock);
  void give_up(const std::string& address, const failure& why);
  void use(const std::string& address, const link_ptr& connection);
  bool make_room(line_ptr& closing);
  void listen(const std::string& address, const line_ptr& over);
  void ask(const std::string& address, const line_ptr& over, wish w);
  void lose(const std::string& address, const line_ptr& over, const std::string& why);
  void close();

  const peer_connector connect;
  const std::chrono::milliseconds patience;
  std::mutex mutex; // guards the rest
  std::condition_variable wake;
  bool closed = false;
  std::map<std::string, peer> all; // that have a link, or of which something is wished
  std::deque<call> first, again;   // those that could not be reached, or refused, come after all others
  std::vector<std::thread> callers;
  size_t idle = 0; // of the callers
};

peers::peers(peer_connector connect, std::chrono::milliseconds patience)
    : state_(std::make_shared<state>(std::move(connect), patience)) {}

peers::~peers() {
  close();
}

void peers::close() {
  state_->close();
}

void peers::pull(const std::string& address, peer_pull what) {
  what.done = [done = std::move(what.done)](const failure& why) {
    const bool is_peers_fault =
        why.code == errc::device_lost || why.code == errc::device_failed; // not of a device here
    done(why.failed() && is_peers_fault ? failure{errc::io, why.message} : why);
  };
  state_->add(address, {std::move(what), state::clock::now() + state_->patience});
}

void peers::try_pull(const std::string& address, peer_pull what) {
  state_->add(address, {std::move(what), {}});
}

void peers::state::add(const std::string& address, wish w) {
  line_ptr over;
  failure why = ending();
  {
    const std::lock_guard lock(mutex);
    if (!closed) {
      peer& p = all[address];
      over = p.link;
      if (over) {
        // Under the lock of `make_room`, which closes a link that looks idle.
        ++over->pulls;
        over->active = clock::now();
      } else {
        why = capture([&] { want_link(address, p); });
        if (!why.failed()) {
          p.wishes.push_back(std::move(w));
          return;
        }
      }
    }
  }
  if (over)
    ask(address, over, std::move(w));
  else
    w.what.done(why);
}

/// Under the lock.
void peers::state::want_link(const std::string& address, peer& p) {
  if (p.is_called)
    return;
  if (first.size() >= idle && callers.size() < most_callers)
    callers.emplace_back([self = shared_from_this()] { self->call_peers(); });
  p.is_called = true;
  first.push_back({address, {}, {}});
  wake.notify_all();
}

void peers::state::call_peers() {
  for (;;) {
    std::optional<call> next;
    {
      std::unique_lock lock(mutex);
      next = next_call(lock);
    }
    if (!next)
      return;
    const std::string& address = next->address;
    if (next->refused) {
      add(address, std::move(*next->refused));
      continue;
    }
    link_ptr connection;
    const failure why = capture([&] { connection = connect(address); });
    if (connection)
      use(address, connection);
    else
      give_up(address, why);
  }
}

/// Waits for a peer that is to be called or asked; nullopt: none any more.
std::optional<peers::state::call> peers::state::next_call(std::unique_lock<std::mutex>& lock) {
  ++idle;
  std::optional<call> next;
  while (!closed && !next) {
    std::deque<call>& from = first.empty() ? again : first;
    if (from.empty()) {
      wake.wait(lock);
    } else if (const clock::time_point at = from.front().at; at > clock::now()) {
      wake.wait_until(lock, at); // a copy: it is read after the wait, when another caller may have taken the front
    } else {
      next = std::move(from.front());
      from.pop_front();
    }
  }
  --idle;
  return next;
}

void peers::state::give_up(const std::string& address, const failure& why) {
  std::vector<wish> hopeless;
  {
    const std::lock_guard lock(mutex);
    const auto found = all.find(address);
    if (found == all.end())
      return; // closed
    std::deque<wish>& wishes = found->second.wishes;
    const auto from = std::stable_partition(wishes.begin(), wishes.end(), std::mem_fn(&wish::is_patient));
    hopeless.assign(std::move_iterator(from), std::move_iterator(wishes.end()));
    wishes.erase(from, wishes.end());
    if (wishes.empty())
      all.erase(found);
    else
      again.push_back({address, clock::now() + attempt_pause, {}});
    wake.notify_all();
  }
  for (const wish& w : hopeless)
    w.what.done({errc::device_lost, fmt::format("what {} keeps cannot be had: {}", address, why.message)});
}

void peers::state::use(const std::string& address, const link_ptr& connection) {
  const auto over = std::make_shared<line>(connection);
  std::deque<wish> wishes;
  line_ptr closing;
  bool is_late = false, has_room = false;
  {
    const std::lock_guard lock(mutex);
    const auto found = all.find(address);
    is_late = closed || found == all.end();
    has_room = !is_late && make_room(closing);
    if (has_room) {
      peer& p = found->second;
      p.is_called = false;
      p.link = over;
      wishes.swap(p.wishes);
      over->pulls = wishes.size();
    }
  }
  if (!has_room)
    connection->close();
  if (is_late)
    return;
  if (!has_room)
    return give_up(address, {errc::io, fmt::format("all {} links to peers are in use", most_links)});
  if (closing) {
    closing->connection->close();
    closing->puller.close("its link was closed for another one");
  }
  listen(address, over);
  for (wish& w : wishes)
    ask(address, over, std::move(w));
}

/// Under the lock: returns whether there is room for one more link, perhaps in the place of one that is to be closed.
///
/// A session may name addresses whose peers answer slowly or never. So a link over which something comes is not closed
/// for another one, but one over which nothing, or little, has come for as long as a peer may be away is no better than
/// one that nothing is pulled over.
bool peers::state::make_room(line_ptr& closing) {
  const auto is_busy = [now = clock::now(), this](const line& l) {
    const bool is_new = now - l.opened < patience;
    const bool is_fast = l.puller.bytes_per_second() >= slow_bytes_per_second;
    return l.pulls > 0 && now - l.active.load() < patience && (is_new || is_fast);
  };
  size_t links = 0;
  auto least = all.end();
  const auto rank = [&](const line& l) { return std::pair(l.pulls > 0, l.active.load()); };
  for (auto each = all.begin(); each != all.end(); ++each)
    if (const line_ptr& l = each->second.link) {
      ++links;
      if (!is_busy(*l) && (least == all.end() || rank(*l) < rank(*least->second.link)))
        least = each;
    }
  if (links < most_links)
    return true;
  if (least == all.end())
    return false;
  closing = std::move(least->second.link);
  all.erase(least); // who wishes something of it has asked it
  return true;
}

void peers::state::listen(const std::string& address, const line_ptr& over) {
  const auto on_frame = [over](const frame& f) {
    const failure why = capture([&] {
      const message m = decode(f);
      if (const auto* part = std::get_if<piece>(&m)) {
        over->active = clock::now();
        over->puller.on_piece(*part);
      }
    });
    if (why.failed())
      over->connection->close();
  };
  const auto on_closed = [self = shared_from_this(), address, over](const std::string& why) {
    self->lose(address, over, why);
  };
  over->connection->receive({.on_frame = on_frame, .on_closed = on_closed});
}

/// Pulls over a link that counts it already.
void peers::state::ask(const std::string& address, const line_ptr& over, wish w) {
  // Of the pull, so that it goes with it; a pull that has ended before it is set leaves it to this function.
  using stop_callback = std::stop_callback<std::function<void()>>;
  const auto when_stopped = std::make_shared<std::optional<stop_callback>>();
  const peer_pull what = w.what;
  const auto ended = [self = shared_from_this(), address, over, w = std::move(w), when_stopped](const failure& why) {
    const bool is_patient = why.failed() && w.is_patient();
    {
      const std::lock_guard lock(self->mutex);
      --over->pulls;
      // The process that had it may be gone, and another one be there under its address. Then the session hears of it,
      // too, and stops the chunk that waits: an answer of ours that came first would end the run instead.
      if (is_patient && why.code == errc::device_failed && !self->closed) {
        self->again.push_back({address, clock::now() + attempt_pause, w});
        self->wake.notify_all();
        return;
      }
    }
    if (is_patient && (why.code == errc::device_lost || why.code == errc::device_failed))
      self->add(address, w); // over a new link, or to hear that there will be none
    else
      w.what.done(why.failed()
                      ? failure{why.code, fmt::format("{} does not give what it keeps: {}", address, why.message)}
                      : why);
  };
  const piece_puller::pull_id id = over->puller.pull(what.key, what.blob, ended, what.on_progress);
  when_stopped->emplace(what.stop, [over, id]() mutable {
    const line_ptr last = std::move(over); // the end of the pull ends this function object
    last->puller.cancel(id);
  });
}

void peers::state::lose(const std::string& address, const line_ptr& over, const std::string& why) {
  {
    const std::lock_guard lock(mutex);
    const auto found = all.find(address);
    if (found != all.end() && found->second.link == over)
      all.erase(found); // who wishes something of it has asked it
  }
  over->puller.close(why); // what it has not pulled is wished for again
}

void peers::state::close() {
  std::vector<std::thread> ending_threads;
  {
    const std::lock_guard lock(mutex);
    closed = true;
    wake.notify_all();
    ending_threads.swap(callers);
  }
  for (std::thread& caller : ending_threads)
    if (caller.get_id() == std::this_thread::get_id())
      caller.detach(); // it holds this
    else
      caller.join();
  std::map<std::string, peer> last;
  std::deque<call> refused;
  {
    const std::lock_guard lock(mutex);
    last.swap(all);
    refused.swap(again);
  }
  for (const call& each : refused)
    if (each.refused)
      each.refused->what.done(ending());
  for (auto& [address, p] : last) {
    if (p.link) {
      p.link->connection->close();
      p.link->puller.close("the worker ends");
    }
    for (const wish& w : p.wishes)
      w.what.done(ending());
  }
}

} // namespace troupe::remote
