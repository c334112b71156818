// Actors of a link get messages that the guard would not let through: however an end ends, its handler hears of it
// once.
#include "actors/network/node.hpp"
#include "actors/network/node_name.hpp"
#include "support/network_hosts.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <set>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

/// A node with a link whose other end is an actor of the same node.
struct lone_node {
  lone_node() : other(inside.ends().spawn(some)), own(inside.ends().spawn(some)) {}

  const caf::node_id some = actors::make_node_name("");
  actors::node inside{""};
  actors::link_end other, own;
};

struct end_listener {
  remote::link_handler handler() {
    return {.on_frame = [](const frame&) {},
            .on_closed =
                [this](const std::string&) {
                  ++told;
                  throw std::runtime_error("a handler that throws"); // ends where it is called
                }};
  }
  bool is_told() const {
    for (const auto end = std::chrono::steady_clock::now() + 10s; told == 0;) {
      if (std::chrono::steady_clock::now() > end)
        return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }

  std::atomic<int> told = 0;
};

} // namespace

TEST_CASE("link: its handler hears of its end once, whatever way the actor ends", "[actors][network]") {
  const int way = GENERATE(0, 1, 2);
  end_listener listener;
  {
    lone_node n;
    const remote::link_ptr link = actors::make_link(n.own, n.other.actor);
    link->receive(listener.handler());
    switch (way) {
      case 0: caf::anon_send(n.own.actor, caf::error(caf::sec::runtime_error)); break;
      case 1: caf::anon_send_exit(n.own.actor, caf::exit_reason::kill); break;
      default: link->close();
    }
    CHECK(listener.is_told());
  }
  CHECK(listener.told == 1);
}

TEST_CASE("door: an error that somebody sends it does not close it", "[actors][network]") {
  lone_node n;
  const actors::door_actor door =
      n.inside.ends().spawn_door([](const frame&, const remote::link_ptr&) { return text_frame("welcome"); },
                                 [](const caf::node_id&) { return std::string("here"); });
  caf::anon_send(caf::actor_cast<caf::actor>(door), caf::error(caf::sec::runtime_error));
  const opened_link opened = n.inside.enter(door, text_frame("me"), "the door", std::chrono::steady_clock::now() + 10s);
  CHECK(text_of(opened.welcome) == "welcome");
  caf::anon_send_exit(door, caf::exit_reason::user_shutdown);
}

TEST_CASE("network: a process has so many links to a host, and no more", "[actors][network]") {
  echo_host host({.insecure = true});
  tcp_network net({.insecure = true}), other({.insecure = true});
  std::vector<remote::link_ptr> links;
  for (size_t i = 0; i < actors::node_limits::links; ++i)
    links.push_back(call(net, host.port()).link);
  CHECK_THAT(problem_of(net, host.port()), Contains("as many as one may have"));
  CHECK(problem_of(other, host.port()).empty()); // another process
  links.clear();
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (!problem_of(net, host.port()).empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(10ms);
  CHECK(problem_of(net, host.port()).empty());
}

TEST_CASE("link ends: a node may call a limited number of times before it is answered", "[actors][network]") {
  lone_node n;
  actors::link_ends& ends = n.inside.ends();
  for (size_t i = 0; i < actors::node_limits::calls; ++i)
    CHECK(ends.begin_call(n.some));
  CHECK_FALSE(ends.begin_call(n.some));
  CHECK(ends.begin_call(actors::make_node_name(""))); // another
  ends.end_call(n.some);
  ends.end_call(n.some);
  CHECK(ends.begin_call(n.some));
}

TEST_CASE("node name: it belongs to its certificate, and nobody foresees it", "[actors][network]") {
  std::set<caf::node_id> names;
  for (int i = 0; i < 100; ++i)
    names.insert(actors::make_node_name("mine"));
  CHECK(names.size() == 100);
  for (const caf::node_id& name : names) {
    CHECK(actors::may_be_named(name, "mine"));
    CHECK_FALSE(actors::may_be_named(name, "yours"));
  }
  caf::node_id::default_data::host_id_type host;
  host.fill(7);
  CHECK(
      actors::may_be_named(caf::make_node_id(4321, host), "yours")); // of a troupe that says hello before it is refused
  CHECK_FALSE(actors::may_be_named(caf::node_id(), "mine"));
}
