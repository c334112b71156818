// Messages that a member may send to CAF: none that could end the process, take its memory, or get between other
// members.
#include "actors/network/guard.hpp"
#include "actors/network/link_end.hpp"
#include "support/network_hosts.hpp"
#include "support/recorded_talk.hpp"

#include <caf/atom.hpp>

#include <future>

using namespace troupe;
using namespace troupe::test;
using actors::guard;
using actors::receiver;

namespace {

constexpr uint8_t server_handshake = 0, client_handshake = 1, direct = 2, routed = 3, monitor = 4, down = 5,
                  heartbeat = 6;

/// Writes as CAF's binary serializer does.
class written {
public:
  template <class T>
  written& number(T n) {
    for (size_t i = sizeof(T); i > 0; --i)
      made.push_back(static_cast<uint8_t>(static_cast<uint64_t>(n) >> (8 * (i - 1))));
    return *this;
  }
  written& text(std::string_view t) {
    number(static_cast<uint8_t>(t.size()));
    made.insert(made.end(), t.begin(), t.end());
    return *this;
  }
  written& node(uint32_t process) {
    number(static_cast<uint64_t>(caf::atom("default"))).number(process);
    made.insert(made.end(), 20, 7);
    return *this;
  }
  /// The beginning of a message: no stages, the names of its types.
  written& types(std::string_view names) {
    return number(uint8_t{0})
        .number(uint16_t{0})
        .text("@<>" + std::string(names.empty() ? "" : "+") + std::string(names));
  }
  written& atom(caf::atom_value a) { return number(static_cast<uint64_t>(a)); }

  bytes made;
};

// CAF's message ids: the first bit from the left means that it is an answer, the next two give its kind, the rest its
// number.
constexpr uint64_t told = uint64_t{1} << 60, asked = told | 12, answered = uint64_t{1} << 63 | asked;

/// `data` of a direct message tells its receiver which kind it is (`told`).
caf_message said(uint8_t operation, const written& payload = {}, uint64_t destination = 0, uint64_t data = 0,
                 uint64_t source = 0) {
  if (operation == direct && data == 0)
    data = told;
  caf_message m{written()
                    .number(operation)
                    .number(uint8_t{0})
                    .number(uint16_t{0})
                    .number(uint32_t{0})
                    .number(data)
                    .number(source)
                    .number(destination)
                    .made,
                payload.made};
  m.set_size();
  return m;
}

caf::node_id node(uint32_t process) {
  caf::node_id::default_data::host_id_type host;
  host.fill(7);
  return caf::make_node_id(process, host);
}

constexpr uint32_t here = 1, caller = 2, third = 3, taken = 4;
constexpr uint64_t an_end = 5, the_door = 7, others_end = 99;
constexpr uint64_t some_actor = 12; // of the caller
constexpr size_t most_calls = 3;

guard make_guard(bool calling = false) {
  return guard({.here = node(here),
                .calling = calling,
                .may_be = [](const caf::node_id& n) { return n != node(taken); },
                .receiver_of =
                    [](uint64_t actor, const caf::node_id&) {
                      return actor == the_door     ? receiver::door
                             : actor == an_end     ? receiver::own_end
                             : actor == others_end ? receiver::other_end
                                                   : receiver::unknown;
                    },
                .may_call = [calls = size_t{0}](const caf::node_id&) mutable { return ++calls <= most_calls; }});
}

bool admits(guard& g, const caf_message& m) {
  return g.admits(m.head) && (m.payload.empty() || g.admits(m.payload));
}

/// Whether a message passes after the caller has named itself.
bool admits(const caf_message& m) {
  guard g = make_guard();
  REQUIRE(admits(g, said(client_handshake, written().node(caller))));
  return admits(g, m);
}

written frame_of(uint32_t size, size_t come) {
  written w;
  w.types("troupe::frame").number(size);
  w.made.resize(w.made.size() + come);
  return w;
}

written word(caf::atom_value a) {
  return written().types("@atom").atom(a);
}

written an_error() {
  return written().types("@error").number(uint8_t{1}).atom(caf::atom("exit")).number(uint16_t{0}).text("@<>");
}

/// A hello and the caller's end.
written a_call(uint32_t of = caller) {
  return written().types("troupe::frame+@actor").number(uint32_t{0}).number(uint64_t{5}).node(of);
}

written an_answer() {
  return written()
      .types("@u8+troupe::frame+@actor")
      .number(uint8_t{1})
      .number(uint32_t{0})
      .number(uint64_t{5})
      .node(caller);
}

/// Returns the door that a worker's first message names, after the name of its kind of network.
uint64_t door_in(const bytes& handshake) {
  constexpr std::string_view kind = "troupe";
  const auto found = std::search(handshake.begin(), handshake.end(), kind.begin(), kind.end());
  uint64_t door = 0;
  for (size_t i = 0; i < sizeof door; ++i)
    door = door << 8 | *(found + kind.size() + i);
  return door;
}

/// Messages that are right for one receiver, direction or number, sent to another.
std::vector<std::pair<std::string, caf_message>> misdirected_messages() {
  const uint64_t upstream = uint64_t{2} << 60, downstream = uint64_t{3} << 60;
  return {
      {"an error that answers nothing", said(direct, an_error(), an_end)},
      {"an error for the door", said(direct, an_error(), the_door, answered)},
      {"a frame for the door", said(direct, frame_of(1, 1), the_door)},
      {"a ping for the door", said(direct, word(caf::atom("ping")), the_door, asked)},
      {"a frame that asks", said(direct, frame_of(1, 1), an_end, asked)},
      {"a frame that answers", said(direct, frame_of(1, 1), an_end, answered)},
      {"a ping that does not ask", said(direct, word(caf::atom("ping")), an_end)},
      {"a pong that answers nothing", said(direct, word(caf::atom("pong")), an_end)},
      {"a close that asks", said(direct, word(caf::atom("close")), an_end, asked)},
      {"a call that does not ask", said(direct, a_call(), the_door)},
      {"a call that answers", said(direct, a_call(), the_door, answered)},
      {"a call at an end", said(direct, a_call(), an_end, asked, some_actor)},
      {"a call of nobody", said(direct, a_call(), the_door, asked)},
      {"a door's answer to who has not called", said(direct, an_answer(), 8, answered)},
      {"a message of a stream", said(direct, frame_of(1, 1), an_end, upstream)},
      {"another message of a stream", said(direct, word(caf::atom("close")), an_end, downstream)},
      {"CAF's question for an actor that spawns others",
       said(direct, written().types("@atom+@atom+@str").atom(caf::atom("sys")).atom(caf::atom("get")).text("info"), 8,
            asked)},
  };
}

/// Messages that end the connection of the member that says them.
std::vector<std::pair<std::string, caf_message>> bad_messages() {
  caf_message endless = said(direct, {}, 5);
  std::fill(endless.head.begin() + 4, endless.head.begin() + 8, uint8_t{0xff});
  written nested;
  nested.types("@message");
  for (int i = 0; i < 300; ++i)
    nested.number(uint16_t{0}).text("@<>+@message");
  const written half_error = written().types("@error").number(uint8_t{1}).atom(caf::atom("exit"));
  caf_message put = said(
      direct, written().types("@atom+@str+@message").atom(caf::atom("put")).text("x").number(uint16_t{0}).text("@<>"),
      static_cast<uint64_t>(caf::atom("ConfigServ")));
  put.head[3] = 1; // a receiver with a name
  return {
      {"a handshake without its payload", said(client_handshake)},
      {"a server's handshake from a caller", said(server_handshake, written().node(third), 0, 1)},
      {"a server's handshake without its payload", said(server_handshake, {}, 0, 1)},
      {"another name", said(client_handshake, written().node(third))},
      {"an unknown operation", said(7)},
      {"a heartbeat with a payload", said(heartbeat, written().node(caller))},
      {"a message through a third node",
       said(routed, written().node(third).node(here).types("@atom").atom(caf::atom("ping")), 5)},
      {"a payload of 4 GiB", endless},
      {"a frame longer than what has come", said(direct, frame_of(100, 99), 5)},
      {"bytes after a frame", said(direct, frame_of(100, 101), 5)},
      {"messages in messages", said(direct, nested, 5)},
      {"an error with something in it",
       said(direct, written(half_error).number(uint16_t{0}).text("@<>+@error"), 5, answered)},
      {"4 GiB of characters",
       said(direct, written().types("@charbuf").number(uint32_t{0xffffffff}).number(uint8_t{15}), 5)},
      {"an order to end",
       said(direct, written().types("@exit").number(uint64_t{0}).atom(caf::atom("")).number(uint8_t{1}), 5)},
      {"a word that only the actor itself says", said(direct, written().types("@atom").atom(caf::atom("timeout")), 5)},
      {"an entry of CAF's configuration", put},
      {"no message", said(direct, written().types(""), 5)},
      {"a handle of a third node", said(direct, a_call(third), the_door, asked, some_actor)},
      {"watching for a third node", said(monitor, written().node(third).node(here), 5)},
      {"the end of a third node's actor",
       said(down,
            written().node(third).node(here).number(uint8_t{0}).atom(caf::atom("")).number(uint16_t{0}).text("@<>"), 0,
            0, 5)},
  };
}

} // namespace

TEST_CASE("guard: messages of troupe's nodes pass", "[actors][network]") {
  CHECK(admits(said(client_handshake, written().node(caller)))); // callers say it twice
  CHECK(admits(said(heartbeat)));
  CHECK(admits(said(direct, frame_of(100, 100), an_end)));
  CHECK(admits(said(direct, word(caf::atom("ping")), an_end, asked)));
  CHECK(admits(said(direct, word(caf::atom("pong")), an_end, answered)));
  CHECK(admits(said(direct, word(caf::atom("close")), an_end)));
  CHECK(admits(said(direct, word(caf::atom("close")), 8))); // to an end that is gone
  CHECK(admits(said(direct, an_error(), an_end, answered)));
  CHECK(admits(said(direct, a_call(), the_door, asked, some_actor)));
  CHECK(admits(said(monitor, written().node(caller).node(here), 5)));
  CHECK(admits(said(
      down, written().node(caller).node(here).number(uint8_t{0}).atom(caf::atom("")).number(uint16_t{0}).text("@<>"), 0,
      0, 5)));
  guard calls = make_guard(true);
  CHECK(admits(calls, said(server_handshake, written().node(caller), 0, 1)));
  CHECK(admits(calls, said(direct, an_answer(), 8, answered)));
  CHECK(admits(calls, said(direct, an_error(), 8, answered)));
  CHECK_FALSE(admits(calls, said(direct, a_call(), the_door, asked, some_actor))); // it has no door
}

TEST_CASE("guard: who calls again and again before it is answered is cut off", "[actors][network]") {
  guard g = make_guard();
  REQUIRE(admits(g, said(client_handshake, written().node(caller))));
  for (size_t i = 0; i < most_calls; ++i)
    CHECK(admits(g, said(direct, a_call(), the_door, asked, some_actor)));
  CHECK_FALSE(admits(g, said(direct, a_call(), the_door, asked, some_actor)));
}

TEST_CASE("guard: whatever else a node says is not passed on", "[actors][network]") {
  for (const auto& [what, message] : bad_messages()) {
    INFO(what);
    CHECK_FALSE(admits(message));
  }
  for (const auto& [what, message] : misdirected_messages()) {
    INFO(what);
    CHECK_FALSE(admits(message));
  }
  guard g = make_guard();
  CHECK_FALSE(admits(g, said(direct, frame_of(1, 1), 5))); // the caller has not named itself
  for (const uint32_t name : {here, taken}) {
    guard other = make_guard();
    CHECK_FALSE(admits(other, said(client_handshake, written().node(name))));
  }
  CHECK_FALSE(admits(said(direct, frame_of(1, 1), others_end))); // another member's
  CHECK_FALSE(admits(said(monitor, written().node(caller).node(here), others_end)));
  guard cut = make_guard();
  const bytes head = said(heartbeat).head;
  CHECK_FALSE(cut.admits(std::span(head).first(20)));
}

TEST_CASE("network: who calls the door again and again loses its connection, and keeps nobody out",
          "[actors][network]") {
  const certificate_folder keys({"worker", "session", "member"});
  std::promise<void> go_on;
  const std::shared_future<void> may_answer = go_on.get_future().share();
  tcp_network host(keys.of("worker"));
  const uint16_t port = host.listen("127.0.0.1", 0, [=](const frame& hello, const remote::link_ptr& link) {
    if (hello.empty()) // the member's: the door is busy meanwhile
      may_answer.wait_for(20s);
    link->receive({[link](frame f) { link->send(std::move(f)); }, [](const std::string&) {}});
    return text_frame("welcome");
  });
  tcp_network net(keys.of("session"));
  const opened_link opened = call(net, port);
  inbox in(opened.link);
  hostile_line line(port, actors::make_tls_context(keys.of("member")));
  REQUIRE(line.enter());
  bytes heard;
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  for (std::vector<caf_message> greeting; greeting.empty();) {
    REQUIRE(line.hear(heard, 100ms));
    REQUIRE(std::chrono::steady_clock::now() < give_up);
    bytes complete = heard;
    greeting = take_messages(complete);
  }
  line.say(said(client_handshake, written().node(1000)).as_bytes());
  for (size_t i = 0; i <= actors::node_limits::calls + 1; ++i) // one of them is being answered
    line.say(said(direct, a_call(1000), door_in(heard), asked + i, some_actor).as_bytes());
  bool ended = false;
  for (const auto end = std::chrono::steady_clock::now() + 10s; !ended && std::chrono::steady_clock::now() < end;)
    ended = !line.say(said(heartbeat).as_bytes()) || !line.hear(heard, 100ms); // not for its silence
  CHECK(ended);
  go_on.set_value();
  opened.link->send(text_frame("still there?"));
  CHECK(text_of(in.next()) == "still there?");
  CHECK(problem_of(net, port).empty()); // one more link
}

TEST_CASE("network: a member that talks nonsense loses its connection and harms nobody", "[actors][network]") {
  const certificate_folder keys({"worker", "session", "member"});
  echo_host host(keys.of("worker"));
  tcp_network net(keys.of("session"));
  const opened_link opened = call(net, host.port());
  inbox in(opened.link);
  const actors::tls_context member = actors::make_tls_context(keys.of("member"));
  const auto say = [&](const std::vector<caf_message>& messages) {
    hostile_line line(host.port(), member);
    REQUIRE(line.enter());
    for (const caf_message& m : messages)
      line.say(m.as_bytes());
    bytes heard;
    for (const auto end = std::chrono::steady_clock::now() + 5s; std::chrono::steady_clock::now() < end;)
      if (!line.hear(heard, 100ms))
        return true;
    return false;
  };
  uint32_t number = 1000;
  for (const auto& [what, message] : bad_messages()) {
    INFO(what);
    CHECK(say({said(client_handshake, written().node(++number)), message}));
    CHECK(say({message})); // before it has named itself
  }
  // All actors, one after the other: those of other links are out of reach.
  for (uint64_t actor = 1; actor < 40; ++actor)
    say({said(client_handshake, written().node(++number)),
         said(direct, written().types("@atom").atom(caf::atom("close")), actor), said(7)});
  opened.link->send(text_frame("still there?"));
  CHECK(text_of(in.next()) == "still there?");
}
