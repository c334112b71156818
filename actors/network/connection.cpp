#include "actors/network/connection.hpp"

#include "actors/network/node_name.hpp"

#include <caf/io/network/stream.hpp>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

namespace troupe::actors {
namespace {

using caf::io::network::rw_state;
using clock_type = open_connections::clock;

/// How CAF's stream reads and writes. In its multiplexer's thread, from the first byte on.
class byte_policy {
public:
  byte_policy(channel at, std::shared_ptr<open_connections::entry> entry, open_connections& connections)
      : at_(std::move(at)), entry_(std::move(entry)), connections_(connections) {
    connections_.add(entry_);
  }
  ~byte_policy() { connections_.remove(entry_); }
  byte_policy(const byte_policy&) = delete;
  byte_policy& operator=(const byte_policy&) = delete;

  rw_state read_some(size_t& moved, int, void* to, size_t size) {
    if (entry_->ended) // what the other side goes on saying is not heard
      return rw_state::failure;
    const progress came = at_.read(to, size, moved);
    if (moved > 0)
      entry_->heard = clock_type::now().time_since_epoch();
    return came == progress::ended ? rw_state::failure : rw_state::success;
  }

  rw_state write_some(size_t& moved, int, const void* from, size_t size) {
    moved = 0;
    if (size == 0)
      return rw_state::indeterminate;
    const auto* bytes = static_cast<const char*>(from);
    if (is_early_) { // CAF hears later what has been sent, or that it failed
      size_t sent = 0;
      if (size > early_)
        at_.write(bytes + early_, size - early_, sent);
      early_ += sent;
      return rw_state::success;
    }
    moved = std::exchange(early_, 0);
    if (moved > 0)
      return rw_state::success;
    return at_.write(bytes, size, moved) == progress::ended ? rw_state::failure : rw_state::success;
  }

  /// What is to be written from now on is sent at once, but stays to be written.
  void write_early(bool is_early) { is_early_ = is_early; }

  bool must_read_more(int, size_t threshold) const { return at_.pending() >= threshold; }

private:
  channel at_;
  std::shared_ptr<open_connections::entry> entry_;
  open_connections& connections_;
  bool is_early_ = false;
  size_t early_ = 0; // bytes sent early
};

/// CAF's stream, which sends at a flush what it would only send after two rounds of the multiplexer.
class byte_stream final : public caf::io::network::stream {
public:
  byte_stream(caf::io::network::default_multiplexer& multiplexer, channel at,
              const std::shared_ptr<open_connections::entry>& entry, open_connections& connections)
      : stream(multiplexer, at.release_socket()), policy_(std::move(at), entry, connections) {}

  void handle_event(caf::io::network::operation what) override { handle_event_impl(what, policy_); }

  void flush_now(const manager_ptr& manager) {
    flush(manager);
    policy_.write_early(true);
    handle_event(caf::io::network::operation::write);
    policy_.write_early(false);
  }

private:
  byte_policy policy_;
};

/// CAF names connections by their descriptors, and may clean up after one when the next has its descriptor already.
caf::io::connection_handle next_handle() {
  static std::atomic<int64_t> last{int64_t{1} << 32};
  return caf::io::connection_handle::from_int(++last);
}

class connection final : public caf::io::scribe {
public:
  connection(caf::io::network::default_multiplexer& multiplexer, channel at, open_connections& connections,
             guard::view view)
      : scribe(next_handle()), entry_(make_entry(at)), guard_(with_name(std::move(view), entry_, connections)),
        stream_(multiplexer, std::move(at), entry_, connections) {}

  bool consume(caf::execution_unit* context, const void* block, size_t size) override {
    if (guard_.admits({static_cast<const uint8_t*>(block), size}))
      return scribe::consume(context, block, size);
    entry_->end(); // CAF hears of it when it reads next
    return true;
  }
  void configure_read(caf::io::receive_policy::config config) override {
    stream_.configure_read(config);
    if (!std::exchange(started_, true))
      stream_.start(this);
  }
  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void flush() override { stream_.flush_now(this); }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  std::string addr() const override { return {}; } // would be told to peers that ask for it
  uint16_t port() const override { return 0; }
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

private:
  static std::shared_ptr<open_connections::entry> make_entry(const channel& at) {
    auto made = std::make_shared<open_connections::entry>();
    made->fd = at.fd();
    made->who = at.peer();
    made->host = at.other_host();
    made->heard = clock_type::now().time_since_epoch();
    return made;
  }
  static guard::view with_name(guard::view view, std::shared_ptr<open_connections::entry> entry,
                               open_connections& connections) {
    view.may_be = [entry = std::move(entry), &connections](const caf::node_id& n) {
      return connections.name(*entry, n);
    };
    return view;
  }

  const std::shared_ptr<open_connections::entry> entry_;
  guard guard_;
  byte_stream stream_;
  bool started_ = false;
};

} // namespace

size_t open_connections::size() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

size_t open_connections::size(const std::string& host) const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(
      std::count_if(all_.begin(), all_.end(), [&](const auto& one) { return one->host == host; }));
}

std::string open_connections::host_of(const caf::node_id& node) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return one->node == node; });
  return found == all_.end() ? std::string() : (*found)->host;
}

void open_connections::add(const std::shared_ptr<entry>& one) {
  const std::lock_guard lock(mutex_);
  all_.push_back(one);
}

void open_connections::remove(const std::shared_ptr<entry>& one) {
  const std::lock_guard lock(mutex_);
  std::erase(all_, one);
}

bool open_connections::name(entry& one, const caf::node_id& node) {
  const std::lock_guard lock(mutex_);
  if (!may_be_named(node, one.who) || std::any_of(all_.begin(), all_.end(), [&](const auto& other) {
        return other->node == node && other->who != one.who;
      }))
    return false;
  one.node = node;
  return true;
}

void open_connections::entry::end() {
  ended = true;
  shutdown(fd, SHUT_RDWR);
}

void open_connections::end_silent(clock::duration limit) {
  const std::lock_guard lock(mutex_);
  const auto now = clock::now().time_since_epoch();
  for (const auto& one : all_) {
    if (now - one->heard.load() < limit)
      continue;
    pollfd waiting{one->fd, POLLIN, 0};
    if (poll(&waiting, 1, 0) == 0) // else it is this process that is slow
      one->end();
  }
}

void open_connections::end_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& one : all_)
    one->end();
}

caf::io::scribe_ptr make_scribe(caf::io::network::default_multiplexer& multiplexer, channel at,
                                open_connections& connections, guard::view view) {
  return caf::make_counted<connection>(multiplexer, std::move(at), connections, std::move(view));
}

} // namespace troupe::actors
