#include "actors/network.hpp"

#include "actors/network/gate.hpp"
#include "actors/network/node.hpp"
#include "base/error.hpp"

#include <caf/send.hpp>
#include <poll.h>

#include <map>

namespace troupe::actors {
namespace {

// More than a cluster has hosts, and than one host has processes.
constexpr size_t max_connections = 2048, max_connections_of_host = 256;

/// Connects and shakes hands, both until `end`.
channel open_channel(const std::string& host, uint16_t port, const tls_context& tls, time_limit_point end) {
  channel at(connect_to(host, port, end), tls, false);
  for (;;) {
    switch (at.shake_hands()) {
      case progress::done: return at;
      case progress::ended: fail(errc::io, "{} cannot be used: {}", endpoint_text(host, port), at.problem());
      case progress::wants_input:
      case progress::wants_output:
        if (!wait_for(at.fd(), POLLIN, end))
          fail(errc::timeout, "{} took the connection but says nothing; is it a troupe worker?",
               endpoint_text(host, port));
    }
  }
}

} // namespace

struct tcp_network::state {
  /// A host that was called. Its links share one connection: CAF loses messages if a node has several to another, of
  /// which it drops all but one.
  struct called_host {
    std::timed_mutex mutex; // held by the thread that calls
    door_actor door;
  };

  host_credentials who;
  tls_context tls;
  std::mutex mutex; // guards the making of `calling`, and `hosts`
  std::unique_ptr<node> calling, called;
  std::map<std::string, std::shared_ptr<called_host>> hosts; // by endpoint
  door_actor door;
  std::unique_ptr<gate> at; // last: it uses the rest
};

std::unique_ptr<network> make_tcp_network(const host_credentials& who) {
  return std::make_unique<tcp_network>(who);
}

tcp_network::tcp_network(const host_credentials& who) : state_(std::make_unique<state>()) {
  state_->who = who;
  state_->tls = make_tls_context(who);
}

tcp_network::~tcp_network() {
  // First: it hands connections to the node.
  state_->at.reset();
  if (state_->door)
    caf::anon_send_exit(state_->door, caf::exit_reason::user_shutdown);
  state_->door = nullptr;
}

uint16_t tcp_network::listen(const std::string& host, uint16_t port, link_acceptor accept) {
  state& s = *state_;
  expects(!s.at, "network::listen was called before");
  auto [socket, bound] = listen_at(host, port);
  s.called = std::make_unique<node>(own_certificate(s.tls));
  s.door = s.called->ends().spawn_door(std::move(accept), s.called->finder());
  s.at = std::make_unique<gate>(std::move(socket), s.tls, [&s, bound = bound](channel admitted) {
    const open_connections& open = s.called->connections();
    if (open.size() < max_connections && open.size(admitted.other_host()) < max_connections_of_host)
      s.called->be_called(std::move(admitted), bound, s.door);
  });
  return bound;
}

opened_link tcp_network::connect(const std::string& host, uint16_t port, remote::frame hello,
                                 std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  const std::string where = endpoint_text(host, port);
  std::shared_ptr<state::called_host> called;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->calling)
      state_->calling = std::make_unique<node>(own_certificate(state_->tls));
    std::shared_ptr<state::called_host>& entry = state_->hosts[where];
    if (!entry)
      entry = std::make_shared<state::called_host>();
    called = entry;
  }
  node& n = *state_->calling;
  door_actor door;
  {
    const std::unique_lock lock(called->mutex, end);
    if (!lock)
      fail(errc::timeout, "{} was being called by another thread all the time", where);
    if (!n.reaches(called->door))
      called->door = n.call(open_channel(host, port, state_->tls, end), port, where, end);
    door = called->door;
  }
  return n.enter(door, std::move(hello), where, end);
}

bool tcp_network::exposes(const std::string& host) const {
  return state_->who.insecure && !is_loopback(host);
}

} // namespace troupe::actors
