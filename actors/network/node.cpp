#include "actors/network/node.hpp"

#include "actors/network/node_name.hpp"
#include "actors/system_end.hpp"
#include "base/error.hpp"

#include <caf/actor_registry.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <thread>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

constexpr auto watch_interval = 100ms;
constexpr auto closing_limit = 2s; // for handlers that are under way

/// CAF's broker without its question for a spawn server: no node spawns actors on another here, and CAF keeps an actor
/// for each process that it has ever asked. It answers pings after all that it was told before, and sends heartbeats
/// when it is told to: CAF's own timer for them names the broker as its sender, and a broker keeps its mailbox, so that
/// a broker with such a message in its mailbox at its end would keep itself alive.
class node_broker final : public caf::io::basp_broker {
public:
  using basp_broker::basp_broker;
  caf::behavior make_behavior() override {
    return caf::message_handler{[](caf::ping_atom) { return caf::pong_atom_v; },
                                [this](caf::tick_atom) { instance.send_heartbeats(context()); }}
        .or_else(basp_broker::make_behavior());
  }
  void learned_new_node_directly(const caf::node_id&, bool) override {}
  void learned_new_node_indirectly(const caf::node_id&) override {}
};

std::unique_ptr<caf::actor_system_config> make_node_config() {
  auto config = std::make_unique<caf::actor_system_config>();
  config->load<caf::io::middleman>();
  config->add_message_type<frame_message>("troupe::frame");
  config->set("scheduler.policy", caf::atom("sharing"));
  config->set("scheduler.max-threads", size_t{2});               // only CAF's own actors are scheduled
  config->set("middleman.heartbeat-interval", caf::timespan(0)); // see `node_broker`
  config->set("middleman.workers", size_t{0});                   // a frame costs less to decode than to hand on
  config->set("middleman.app-identifiers", std::vector<std::string>{"troupe"});
  return config;
}

/// Has the broker send heartbeats, and ends connections whose other side is silent.
caf::behavior watch_silence(caf::event_based_actor* self, open_connections* connections, const caf::actor& broker) {
  self->delayed_send(self, watch_interval, caf::tick_atom_v);
  return {[=](caf::tick_atom) {
    caf::anon_send(broker, caf::tick_atom_v);
    connections->end_silent(network::silence_limit);
    self->delayed_send(self, watch_interval, caf::tick_atom_v);
  }};
}

caf::timespan left_until(time_limit_point end) {
  return std::max<caf::timespan>(end - std::chrono::steady_clock::now(), 1ms);
}

[[noreturn]] void fail_call(const caf::error& problem, const std::string& where, const char* what) {
  if (problem == caf::sec::request_timeout)
    fail(errc::timeout, "{} did not {} in time; it may be overloaded", where, what);
  fail(errc::io, "{} ended the connection before it could {}; is it a troupe worker of this version?", where, what);
}

/// Waits until the broker has heard all that it has been told. What it has not names the door that said it, for a
/// broker keeps its mailbox until its system has ended; and the system's end waits for the door's thread, which ends
/// once no message names the door.
bool has_heard_all(caf::actor_system& system, const caf::actor& broker, time_limit_point end) {
  bool heard = false;
  caf::scoped_actor self(system);
  self->request(broker, left_until(end), caf::ping_atom_v)
      .receive([&](caf::pong_atom) { heard = true; }, [](const caf::error&) {});
  return heard;
}

/// Waits for the end of links and doors, then of connections: a node that ends before its connections leaks in CAF what
/// it has still to hear of them. Returns whether all is over within `closing_limit`.
bool await_end(const node::parts& parts, const caf::actor& broker) {
  const auto end = std::chrono::steady_clock::now() + closing_limit;
  const auto is_over = [&](auto count) {
    while (count() > 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(1ms);
    return count() == 0;
  };
  const bool ended =
      is_over([&] { return parts.system->registry().running(); }) && has_heard_all(*parts.system, broker, end);
  parts.connections->end_all();
  return ended && is_over([&] { return parts.connections->size(); });
}

} // namespace

node::node(const std::string& certificate) {
  const forgotten_logger behind;
  parts_.config = make_node_config();
  parts_.connections = std::make_unique<open_connections>();
  parts_.system = std::make_unique<caf::actor_system>(*parts_.config);
  // CAF names a node by its process and host, which others can foresee, and has no setting for it. Nothing has been
  // named after it yet but actors of CAF that no other node may reach.
  const_cast<caf::node_id&>(system().node()) = make_node_name(certificate);
  parts_.ends = std::make_unique<link_ends>(system());
  broker_ = caf::actor_cast<caf::actor>(system().middleman().named_broker<node_broker>(caf::atom("troupe")));
  watch_ = system().spawn<caf::hidden>(watch_silence, parts_.connections.get(), broker_);
}

node::~node() {
  const forgotten_logger behind;
  caf::anon_send_exit(watch_, caf::exit_reason::user_shutdown);
  watch_ = nullptr;
  ends().end_all();
  const bool ended = await_end(parts_, broker_);
  broker_ = nullptr;
  if (!ended)
    abandon(std::make_shared<parts>(std::move(parts_)));
}

host_finder node::finder() {
  return [&all = *parts_.connections](const caf::node_id& of) { return all.host_of(of); };
}

caf::io::scribe_ptr node::scribe_of(channel at, bool calling) {
  auto& multiplexer = static_cast<caf::io::network::default_multiplexer&>(system().middleman().backend());
  guard::view view{.here = system().node(), .calling = calling};
  view.receiver_of = [&all = ends()](caf::actor_id actor, const caf::node_id& from) {
    return all.receiver_of(actor, from);
  };
  view.may_call = [&all = ends()](const caf::node_id& caller) { return all.begin_call(caller); };
  return make_scribe(multiplexer, std::move(at), *parts_.connections, std::move(view));
}

void node::be_called(channel at, uint16_t port, const door_actor& door) {
  caf::anon_send(broker_, caf::publish_atom_v, scribe_of(std::move(at), false), port,
                 caf::actor_cast<caf::strong_actor_ptr>(door), system().message_types(door));
}

door_actor node::call(channel at, uint16_t port, const std::string& where, time_limit_point end) {
  const forgotten_logger behind;
  caf::scoped_actor self(system());
  door_actor door;
  self->request(broker_, left_until(end), caf::connect_atom_v, scribe_of(std::move(at), true), port)
      .receive(
          [&](const caf::node_id&, const caf::strong_actor_ptr& found, const std::set<std::string>& signatures) {
            if (found && system().assignable(signatures, system().message_types(caf::detail::type_list<door_actor>{})))
              door = caf::actor_cast<door_actor>(found);
          },
          [&](const caf::error& e) { fail_call(e, where, "answer"); });
  if (!door)
    fail(errc::io, "{} is not a troupe worker of this kind: it has another door", where);
  return door;
}

bool node::reaches(const door_actor& door) {
  return door && !caf::actor_cast<caf::abstract_actor*>(door)->getf(caf::abstract_actor::is_terminated_flag);
}

opened_link node::enter(const door_actor& door, remote::frame hello, const std::string& where, time_limit_point end) {
  const forgotten_logger behind;
  const link_end ours = ends().spawn(door.node());
  opened_link opened;
  std::string refusal;
  caf::scoped_actor self(system());
  const auto answered = [&](uint8_t taken, frame_message& said, const caf::actor& peer) {
    if (taken != 1 || !peer)
      refusal.assign(said.bytes.begin(), said.bytes.end());
    else
      opened = {make_link(ours, peer), std::move(said.bytes)};
  };
  try {
    self->request(door, left_until(end), frame_message{std::move(hello)}, ours.actor)
        .receive(answered, [&](const caf::error& e) { fail_call(e, where, "welcome us"); });
    if (!opened.link)
      fail(errc::io, "{} refuses: {}", where, refusal);
  } catch (...) {
    caf::anon_send_exit(ours.actor, caf::exit_reason::user_shutdown);
    throw;
  }
  return opened;
}

} // namespace troupe::actors
