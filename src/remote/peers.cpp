#include "remote/peers.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace troupe::remote {
namespace {

/// Between two attempts to reach a peer.
constexpr auto attempt_pause = std::chrono::milliseconds(100);

failure ending() {
  return {errc::cancelled, "the worker ends"};
}

} // namespace

struct peers::state : std::enable_shared_from_this<peers::state> {
  using clock = std::chrono::steady_clock;
  struct wish {
    hash128 key;
    tensor blob;
    pull_done done;
    clock::time_point until; // how long the peer may be away
  };
  struct peer {
    link_ptr connection;
    std::shared_ptr<piece_puller> puller; // null while there is no link
    std::deque<wish> wishes;              // for a link
    std::thread connecting;
  };

  state(peer_connector c, std::chrono::milliseconds p) : connect(std::move(c)), patience(p) {}

  void add(const std::string& address, wish w);
  void keep_connected(const std::string& address, peer& p);
  void give_up(const std::string& address, peer& p, const failure& why);
  void use(const std::string& address, peer& p, const link_ptr& connection);
  void ask(const std::string& address, piece_puller& puller, wish w);
  void lose(peer& p, const std::shared_ptr<piece_puller>& puller, const std::string& why);
  void close();

  const peer_connector connect;
  const std::chrono::milliseconds patience;
  std::mutex mutex;
  std::condition_variable wake;
  bool closed = false;
  std::map<std::string, peer> all; // grows only
};

peers::peers(peer_connector connect, std::chrono::milliseconds patience)
    : state_(std::make_shared<state>(std::move(connect), patience)) {}

peers::~peers() {
  close();
}

void peers::close() {
  state_->close();
}

void peers::pull(const std::string& address, const hash128& key, tensor blob, pull_done done) {
  const auto tell = [done = std::move(done)](const failure& why) {
    const bool is_peers_fault =
        why.code == errc::device_lost || why.code == errc::device_failed; // not of a device here
    done(why.failed() && is_peers_fault ? failure{errc::io, why.message} : why);
  };
  state_->add(address, {key, std::move(blob), tell, state::clock::now() + state_->patience});
}

void peers::try_pull(const std::string& address, const hash128& key, tensor blob, pull_done done) {
  state_->add(address, {key, std::move(blob), std::move(done), {}});
}

void peers::state::add(const std::string& address, wish w) {
  std::shared_ptr<piece_puller> puller;
  {
    const std::lock_guard lock(mutex);
    if (!closed) {
      const auto [found, is_new] = all.try_emplace(address);
      peer& p = found->second;
      if (is_new)
        p.connecting = std::thread([self = shared_from_this(), address, &p] { self->keep_connected(address, p); });
      puller = p.puller;
      if (!puller) {
        p.wishes.push_back(std::move(w));
        wake.notify_all();
        return;
      }
    }
  }
  if (puller)
    ask(address, *puller, std::move(w));
  else
    w.done(ending());
}

void peers::state::keep_connected(const std::string& address, peer& p) {
  for (;;) {
    {
      std::unique_lock lock(mutex);
      wake.wait(lock, [&] { return closed || (!p.puller && !p.wishes.empty()); });
      if (closed)
        return;
    }
    link_ptr connection;
    const failure why = capture([&] { connection = connect(address); });
    if (connection)
      use(address, p, connection);
    else
      give_up(address, p, why);
  }
}

void peers::state::give_up(const std::string& address, peer& p, const failure& why) {
  std::vector<wish> hopeless;
  {
    std::unique_lock lock(mutex);
    wake.wait_for(lock, attempt_pause, [&] { return closed; });
    const auto is_patient = [now = clock::now()](const wish& w) { return w.until > now; };
    const auto first = std::stable_partition(p.wishes.begin(), p.wishes.end(), is_patient);
    hopeless.assign(std::move_iterator(first), std::move_iterator(p.wishes.end()));
    p.wishes.erase(first, p.wishes.end());
  }
  for (const wish& w : hopeless)
    w.done({errc::device_lost, fmt::format("what {} keeps cannot be had: {}", address, why.message)});
}

void peers::state::use(const std::string& address, peer& p, const link_ptr& connection) {
  auto puller =
      std::make_shared<piece_puller>([connection](const piece_request& wanted) { connection->send(encode(wanted)); });
  std::deque<wish> wishes;
  {
    const std::lock_guard lock(mutex);
    if (closed)
      return connection->close();
    p.connection = connection;
    p.puller = puller;
    wishes.swap(p.wishes);
  }
  const auto on_frame = [puller, weak = std::weak_ptr(connection)](const frame& f) {
    const failure why = capture([&] {
      const message m = decode(f);
      if (const auto* part = std::get_if<piece>(&m))
        puller->on_piece(*part);
    });
    if (const link_ptr l = weak.lock(); l && why.failed())
      l->close();
  };
  const auto on_closed = [self = shared_from_this(), &p, puller](const std::string& why) {
    self->lose(p, puller, why);
  };
  connection->receive({.on_frame = on_frame, .on_closed = on_closed});
  for (wish& w : wishes)
    ask(address, *puller, std::move(w));
}

void peers::state::ask(const std::string& address, piece_puller& puller, wish w) {
  const tensor blob = w.blob;
  const hash128 key = w.key;
  puller.pull(key, blob, [self = shared_from_this(), address, w = std::move(w)](const failure& why) {
    if (why.failed() && why.code == errc::device_lost && clock::now() < w.until)
      self->add(address, w); // over a new link
    else
      w.done(why.failed() ? failure{why.code, fmt::format("{} does not give what it keeps: {}", address, why.message)}
                          : why);
  });
}

void peers::state::lose(peer& p, const std::shared_ptr<piece_puller>& puller, const std::string& why) {
  {
    const std::lock_guard lock(mutex);
    if (p.puller == puller) {
      p.puller = nullptr;
      p.connection = nullptr;
    }
  }
  puller->close(why); // what it has not pulled is wished for again
}

void peers::state::close() {
  {
    const std::lock_guard lock(mutex);
    closed = true;
    wake.notify_all();
  }
  for (auto& [address, p] : all) {
    if (p.connecting.get_id() == std::this_thread::get_id())
      p.connecting.detach(); // it holds this
    else if (p.connecting.joinable())
      p.connecting.join();
    peer last;
    {
      const std::lock_guard lock(mutex);
      last.connection = std::move(p.connection);
      last.puller = std::move(p.puller);
      last.wishes.swap(p.wishes);
    }
    if (last.connection)
      last.connection->close();
    if (last.puller)
      last.puller->close("the worker ends");
    for (const wish& w : last.wishes)
      w.done(ending());
  }
}

} // namespace troupe::remote
