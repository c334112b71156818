#include "actors/network/link_end.hpp"

#include "actors/system_end.hpp"
#include "base/error.hpp"
#include "run/request.hpp"

#include <caf/actor_system.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <atomic>
#include <deque>
#include <optional>

namespace troupe::actors {
// Orders from a link to its actor; their types are not registered, so nothing from outside can be one.
struct meet_peer {
  caf::actor peer;
};
struct start_listening {};
struct end_order {
  std::string why;
};
} // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::meet_peer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::start_listening)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::end_order)

namespace troupe::actors {

struct shared_end {
  std::atomic<bool> closed = false; // nothing is delivered any more
  std::mutex mutex;                 // guards the rest
  remote::link_handler handler;
  std::optional<std::string> ended; // why the link has ended
  caf::actor end, peer;             // none once it has ended: a link may outlive the actor system
};

namespace {

// The memory of the largest frame handled so far, for the next one: the pages of a fresh MiB cost more than its way
// through the socket. Frames are read and handled by one thread, that of CAF's multiplexer, since it has no workers
// (node.cpp).
thread_local remote::frame spare;
constexpr size_t longest_spare = size_t{2} << 20;

// How often an end asks whether the other is still there. That the process is gone, CAF tells; but one that has lost
// this connection and made another is still connected, and its old ends are not there.
constexpr std::chrono::seconds asking_interval{1};
// How long an end stays until the other has heard of its close, which comes after all frames.
constexpr std::chrono::seconds leaving_limit{1};

struct end_state {
  static inline const char* name = "link end";
  std::shared_ptr<shared_end> shared;
  caf::actor peer;                                    // none: not met yet, or gone
  std::function<void(const remote::frame&)> on_frame; // empty: there is no listener yet
  std::deque<remote::frame> early;                    // came before anybody listened
  std::string over_because;
  bool leaving = false; // the handler has been told
};
// In the thread of CAF's multiplexer, which has the bytes: a thread of its own would cost each frame two changes of
// threads.
using end_actor = caf::stateful_actor<end_state, caf::io::broker>;

/// Tells the actor something later. Not from itself: a broker of CAF leaves what comes after its end in its mailbox,
/// and what names it as the sender there would keep it for ever.
template <class T>
void remind(end_actor* self, std::chrono::seconds after, T what) {
  caf::delayed_anon_send(caf::actor_cast<caf::actor>(self), after, what);
}

/// Ends the actor, or tells the other end that it will.
void leave(end_actor* self) {
  self->state.leaving = true;
  if (!self->state.peer) {
    self->quit(caf::exit_reason::user_shutdown);
    return;
  }
  self->send(self->state.peer, caf::close_atom_v);
  remind(self, leaving_limit, caf::timeout_atom_v);
}

/// Notes that the link has ended and tells the handler, unless that has happened: whatever way its actor ends.
void tell_closed(caf::actor_system& system, shared_end& shared, const std::string& why) {
  shared.closed = true;
  remote::link_handler handler;
  {
    const std::lock_guard lock(shared.mutex);
    if (shared.ended)
      return;
    shared.ended = why;
    handler = std::exchange(shared.handler, {}); // it may hold the link
    shared.end = shared.peer = nullptr;
  }
  if (!handler.on_closed)
    return;
  const auto tell = [told = std::move(handler.on_closed), why] {
    try {
      told(why);
    } catch (...) { // the link has ended: there is no one to tell
    }
  };
  try {
    system.spawn<caf::detached>(tell); // it may take its time
  } catch (const std::exception&) {    // no thread is to be had
    tell();
  }
}

/// Ends the link.
void finish(end_actor* self, const std::string& why) {
  if (self->state.leaving)
    return;
  tell_closed(self->system(), *self->state.shared, why);
  self->state.on_frame = {};
  leave(self);
}

void deliver(end_actor* self, remote::frame bytes) {
  end_state& s = self->state;
  if (s.shared->closed)
    return;
  if (!s.on_frame) {
    s.early.push_back(std::move(bytes));
    return;
  }
  if (const failure why = capture([&] { s.on_frame(bytes); }); why.failed())
    finish(self, fmt::format("a message could not be handled: {}", why.message));
  if (bytes.capacity() > spare.capacity() && bytes.capacity() <= longest_spare)
    spare = std::move(bytes);
}

constexpr const char* lost = "the connection was lost: the other process has ended, hangs, or cannot be reached";

void peer_gone(end_actor* self, const char* why) {
  end_state& s = self->state;
  s.peer = nullptr;
  if (s.leaving)
    self->quit(caf::exit_reason::user_shutdown);
  else if (s.on_frame)
    finish(self, why);
  else
    s.over_because = why; // what has come is delivered first, once somebody listens
}

/// Asks as long as there is a peer; without a time limit, since handlers may take their time, and CAF tells who is
/// gone.
void ask_peer(end_actor* self) {
  if (self->state.peer)
    self->request(self->state.peer, caf::infinite, caf::ping_atom_v)
        .then([self](caf::pong_atom) { remind(self, asking_interval, caf::tick_atom_v); },
              [self](const caf::error&) { peer_gone(self, lost); });
}

void listen(end_actor* self) {
  end_state& s = self->state;
  {
    const std::lock_guard lock(s.shared->mutex);
    s.on_frame = s.shared->handler.on_frame;
  }
  while (!s.early.empty() && !s.shared->closed) {
    remote::frame first = std::move(s.early.front());
    s.early.pop_front();
    deliver(self, std::move(first));
  }
  if (!s.over_because.empty())
    finish(self, s.over_because);
}

caf::behavior end_behavior(end_actor* self, const std::shared_ptr<shared_end>& shared) {
  self->state.shared = shared;
  // What the guard admits cannot reach these: should CAF still bring it, the link ends, and its handler hears of it.
  self->attach_functor([&system = self->system(), shared] { tell_closed(system, *shared, lost); });
  self->set_error_handler([self](const caf::error&) { finish(self, "the other side has sent an error"); });
  self->set_exception_handler([](const std::exception_ptr&) -> caf::error { return caf::sec::runtime_error; });
  self->set_down_handler([self](const caf::down_msg&) { peer_gone(self, lost); });
  self->set_exit_handler([self](const caf::exit_msg&) { finish(self, "this side has closed the link"); });
  self->set_default_handler(caf::drop);
  return {
      [self](frame_message& x) { deliver(self, std::move(x.bytes)); },
      [](caf::ping_atom) { return caf::pong_atom_v; },
      [self](caf::tick_atom) { ask_peer(self); },
      [self](caf::close_atom) { peer_gone(self, "the other side has closed the link"); },
      [self](caf::timeout_atom) { self->quit(caf::exit_reason::user_shutdown); },
      [self](meet_peer& x) {
        self->state.peer = std::move(x.peer);
        self->monitor(self->state.peer);
        remind(self, asking_interval, caf::tick_atom_v);
      },
      [self](start_listening) { listen(self); },
      [self](end_order& x) { finish(self, x.why); },
  };
}

/// Counts one less of those of a node.
void forget_one(std::map<caf::node_id, size_t>& counts, const caf::node_id& of) {
  if (const auto found = counts.find(of); found != counts.end() && --found->second == 0)
    counts.erase(found);
}

frame_message as_frame(std::string_view text) {
  return {{text.begin(), text.end()}};
}

class actor_link final : public remote::link {
public:
  actor_link(std::shared_ptr<shared_end> shared, std::string host)
      : shared_(std::move(shared)), host_(std::move(host)) {}
  std::string other_host() const override { return host_; }
  ~actor_link() override { actor_link::close(); }

  void send(remote::frame f) override {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->closed || !shared_->peer)
      return;
    if (f.size() <= remote::max_frame_bytes)
      caf::anon_send(shared_->peer, frame_message{std::move(f)});
    else
      caf::anon_send(shared_->end, end_order{fmt::format("a message of {} bytes is longer than links carry, {}",
                                                         f.size(), remote::max_frame_bytes)});
  }

  void receive(remote::link_handler handler) override {
    {
      const std::lock_guard lock(shared_->mutex);
      if (!shared_->ended) {
        shared_->handler = std::move(handler);
        caf::anon_send(shared_->end, start_listening{});
        return;
      }
    }
    handler.on_closed(*shared_->ended);
  }

  void close() override {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->closed.exchange(true) && shared_->end)
      caf::anon_send_exit(shared_->end, caf::exit_reason::user_shutdown);
  }

private:
  const std::shared_ptr<shared_end> shared_;
  const std::string host_;
};

/// Answers one caller.
caf::result<uint8_t, frame_message, caf::actor> answer(link_ends& ends, const link_acceptor& accept,
                                                       const host_finder& who, const frame_message& hello,
                                                       const caf::actor& caller, const caf::strong_actor_ptr& sender) {
  const auto refuse = [](std::string_view why) {
    return caf::result<uint8_t, frame_message, caf::actor>{uint8_t{0}, as_frame(why), caf::actor{}};
  };
  if (!sender || !caller || caller.node() != sender->node()) // a third host's end would be reached through the caller
    return refuse("the caller's end is not the caller's");
  const std::string host = who(caller.node());
  if (host.empty())
    return refuse("the caller's connection has ended");
  if (ends.count(caller.node()) >= node_limits::links)
    return refuse(fmt::format("this process has {} links here already, as many as one may have", node_limits::links));
  remote::link_ptr link;
  caf::actor own;
  frame_message welcome;
  const failure why = capture([&] {
    const link_end end = ends.spawn(caller.node());
    own = end.actor;
    link = make_link(end, caller, host);
    welcome.bytes = accept(hello.bytes, link);
  });
  if (!why.failed())
    return {uint8_t{1}, std::move(welcome), std::move(own)};
  if (link)
    link->close();
  return refuse(why.message);
}

} // namespace

caf::error inspect(caf::serializer& sink, frame_message& x) {
  auto size = static_cast<uint32_t>(x.bytes.size());
  if (auto problem = sink(size))
    return problem;
  return sink.apply_raw(size, x.bytes.data());
}

caf::error inspect(caf::deserializer& source, frame_message& x) {
  uint32_t size = 0;
  if (auto problem = source(size))
    return problem;
  const auto* come = dynamic_cast<const caf::binary_deserializer*>(&source);
  if (size > remote::max_frame_bytes || (come && size > come->remaining()))
    return caf::sec::end_of_stream;
  x.bytes = std::move(spare);
  x.bytes.resize(size);
  return source.apply_raw(size, x.bytes.data());
}

std::string to_string(const frame_message& x) {
  return fmt::format("frame of {} bytes", x.bytes.size());
}

link_end link_ends::spawn(const caf::node_id& other) {
  auto shared = std::make_shared<shared_end>();
  link_end made{system_.middleman().spawn_broker(end_behavior, shared), shared};
  {
    const std::lock_guard lock(book_->mutex);
    book_->ends[made.actor.id()] = {made.actor.address(), other};
    ++book_->links[other];
  }
  // After the entry: if the actor has ended already, this is called at once, and must find it.
  made.actor->attach_functor([known = book_, id = made.actor.id(), other] {
    const std::lock_guard lock(known->mutex);
    known->ends.erase(id);
    forget_one(known->links, other);
  });
  return made;
}

size_t link_ends::count(const caf::node_id& other) const {
  const std::lock_guard lock(book_->mutex);
  const auto found = book_->links.find(other);
  return found == book_->links.end() ? 0 : found->second;
}

receiver link_ends::receiver_of(caf::actor_id actor, const caf::node_id& from) const {
  const std::lock_guard lock(book_->mutex);
  if (actor == book_->door)
    return receiver::door;
  const auto found = book_->ends.find(actor);
  if (found == book_->ends.end())
    return receiver::unknown;
  return found->second.other == from ? receiver::own_end : receiver::other_end;
}

bool link_ends::begin_call(const caf::node_id& caller) {
  const std::lock_guard lock(book_->mutex);
  return ++book_->calls[caller] <= node_limits::calls;
}

void link_ends::end_call(const caf::node_id& caller) {
  const std::lock_guard lock(book_->mutex);
  forget_one(book_->calls, caller);
}

void link_ends::end_all() {
  std::vector<caf::strong_actor_ptr> living;
  {
    const std::lock_guard lock(book_->mutex);
    for (const auto& [id, e] : book_->ends)
      if (auto actor = caf::actor_cast<caf::strong_actor_ptr>(e.actor))
        living.push_back(std::move(actor));
  }
  for (const auto& actor : living)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

remote::link_ptr make_link(const link_end& end, const caf::actor& peer, std::string host) {
  const std::lock_guard lock(end.shared->mutex);
  if (!end.shared->ended) {
    end.shared->end = end.actor;
    end.shared->peer = peer;
  }
  caf::anon_send(end.actor, meet_peer{peer});
  return std::make_shared<actor_link>(end.shared, std::move(host));
}

door_actor link_ends::spawn_door(link_acceptor accept, host_finder who) {
  const forgotten_logger behind;
  door_actor door = system_.spawn<caf::detached>(
      [this, accept = std::move(accept), who = std::move(who)](door_actor::pointer self) -> door_actor::behavior_type {
        self->set_default_handler(caf::drop);
        self->set_error_handler([](const caf::error&) {});
        return {[this, self, accept, who](const frame_message& hello, const caf::actor& caller) {
          const caf::strong_actor_ptr& sender = self->current_sender();
          auto told = answer(*this, accept, who, hello, caller, sender);
          if (sender)
            end_call(sender->node());
          return told;
        }};
      });
  const std::lock_guard lock(book_->mutex);
  book_->door = door.id();
  return door;
}

} // namespace troupe::actors
