#include "support/recorded_talk.hpp"

#include "base/error.hpp"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr uint8_t direct_message = 2;
constexpr size_t node_size = 32;
constexpr std::string_view frame_type = "troupe::frame", call_types = "@<>+troupe::frame+@actor",
                           answer_types = "@<>+@u8+troupe::frame+@actor";
// Before a frame's own bytes: no stages, the number and the length of the types' names, the names, the frame's size.
constexpr size_t frame_offset = 1 + 2 + 1 + 4 + frame_type.size() + 4;

template <class T>
T read_number(const bytes& from, size_t at) {
  T n = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    n = static_cast<T>(n << 8 | from.at(at + i));
  return n;
}

template <class T>
void write_number(bytes& to, size_t at, T n) {
  for (size_t i = sizeof(T); i > 0; --i, n = static_cast<T>(n >> 8))
    to.at(at + i - 1) = static_cast<uint8_t>(n);
}

bool is_frame(const caf_message& m) {
  return m.operation() == direct_message && m.payload.size() > frame_offset && m.holds(frame_type) &&
         !m.holds(call_types);
}

/// Appends all that has come; false if the line has ended.
bool hear_all(hostile_line& line, bytes& to) {
  for (size_t before = to.size();; before = to.size()) {
    if (!line.hear(to, 0ms))
      return false;
    if (to.size() == before)
      return true;
  }
}

/// Passes on the bytes of either side, until one ends or `over`; returns those of the caller.
bytes pass_on(hostile_line& caller, hostile_line& worker, const std::atomic<bool>& over) {
  bytes said;
  for (bool alive = caller.enter() && worker.enter(); alive && !over;) {
    pollfd polled[2]{{caller.fd(), POLLIN, 0}, {worker.fd(), POLLIN, 0}};
    poll(polled, 2, 20);
    bytes there, back;
    alive = hear_all(caller, there);
    said.insert(said.end(), there.begin(), there.end());
    alive = worker.say(there) && hear_all(worker, back) && caller.say(back) && alive;
  }
  return said;
}

/// Waits for the door's answer; returns the link's end there, or 0 if it is refused.
uint64_t await_answer(hostile_line& line) {
  bytes heard;
  for (const auto end = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < end;) {
    const bool alive = line.hear(heard, 100ms);
    for (const caf_message& m : take_messages(heard))
      if (m.holds(answer_types)) {
        const bool taken = m.payload.at(1 + 2 + 1 + answer_types.size()) == 1;
        return taken ? read_number<uint64_t>(m.payload, m.payload.size() - node_size - 8) : 0;
      }
    if (!alive)
      return 0;
  }
  fail(errc::timeout, "the door does not answer");
}

} // namespace

uint64_t caf_message::destination() const {
  return read_number<uint64_t>(head, 24);
}

void caf_message::set_destination(uint64_t actor) {
  write_number(head, 24, actor);
}

void caf_message::set_size() {
  write_number(head, 4, static_cast<uint32_t>(payload.size()));
}

bool caf_message::holds(std::string_view text) const {
  return std::search(payload.begin(), payload.end(), text.begin(), text.end()) != payload.end();
}

bytes caf_message::as_bytes() const {
  bytes all = head;
  all.insert(all.end(), payload.begin(), payload.end());
  return all;
}

std::vector<caf_message> take_messages(bytes& from) {
  std::vector<caf_message> taken;
  size_t at = 0;
  for (size_t size = 0; at + caf_message::head_size <= from.size(); at += size) {
    size = caf_message::head_size + read_number<uint32_t>(from, at + 4);
    if (at + size > from.size())
      break;
    const auto begin = from.begin() + static_cast<ptrdiff_t>(at), middle = begin + caf_message::head_size;
    taken.push_back({{begin, middle}, {middle, begin + static_cast<ptrdiff_t>(size)}});
  }
  from.erase(from.begin(), from.begin() + static_cast<ptrdiff_t>(at));
  return taken;
}

bytes random_caf_messages(std::mt19937_64& random) {
  bytes all;
  for (uint64_t count = 1 + random() % 4; count > 0; --count) {
    caf_message m{bytes(caf_message::head_size), random_bytes(random() % 3 == 0 ? 0 : random() % 200, random)};
    m.head[0] = static_cast<uint8_t>(random() % 7);
    m.head[3] = static_cast<uint8_t>(random() % 4);
    m.set_size();
    for (const size_t at : {8, 16, 24}) // the operation's data, source and destination, which are often none
      if (random() % 2 == 0)
        write_number(m.head, at, random() % 2 == 0 ? random() % 32 : random());
    if (random() % 16 == 0)
      write_number(m.head, 4, static_cast<uint32_t>(random() >> random() % 32));
    const bytes one = m.as_bytes();
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

recorded_talk::recorded_talk(uint16_t worker, const actors::tls_context& tls, const actors::tls_context& as_worker,
                             const std::function<void(uint16_t)>& visit, size_t longest) {
  auto [socket, port] = actors::listen_at("127.0.0.1", 0);
  std::atomic<bool> over = false;
  bytes said;
  {
    const std::jthread between([&, &listening = socket] {
      if (!actors::wait_for(listening.get(), POLLIN, std::chrono::steady_clock::now() + 10s))
        return;
      hostile_line caller(actors::channel(actors::accept_one(listening.get()), as_worker, true)), callee(worker, tls);
      said = pass_on(caller, callee, over);
    });
    visit(port);
    over = true;
  }
  messages_ = take_messages(said);
  std::erase_if(messages_, [&](const caf_message& m) { return m.payload.size() > longest; });
  if (std::none_of(messages_.begin(), messages_.end(), is_frame))
    fail(errc::internal, "the recorded session said nothing");
}

bytes recorded_talk::whole() const {
  bytes all;
  for (const caf_message& m : messages_) {
    const bytes one = m.as_bytes();
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

recorded_talk recorded_talk::as_node(uint32_t number) const {
  const bytes old = messages_.front().payload; // the handshake: the node's name, which has the process's number at 8
  bytes other = old;
  write_number(other, 8, number);
  std::vector<caf_message> said = messages_;
  for (caf_message& m : said)
    for (auto at = m.payload.begin();
         (at = std::search(at, m.payload.end(), old.begin(), old.end())) != m.payload.end();)
      at = std::copy(other.begin(), other.end(), at);
  return recorded_talk(std::move(said));
}

bool recorded_talk::say_to_link(hostile_line& line, std::mt19937_64& random) const {
  size_t i = 0;
  for (bool called = false; i < messages_.size() && !called; ++i) {
    called = messages_[i].holds(call_types);
    if (!line.say(messages_[i].as_bytes()))
      return false;
  }
  const uint64_t link = await_answer(line);
  const auto first = std::find_if(messages_.begin() + static_cast<ptrdiff_t>(i), messages_.end(), is_frame);
  if (link == 0 || first == messages_.end())
    return false;
  const uint64_t recorded = first->destination();
  for (; i < messages_.size(); ++i) {
    caf_message m = messages_[i];
    if (m.destination() == recorded)
      m.set_destination(link);
    if (is_frame(m) && random() % 8 == 0)
      continue;
    if (is_frame(m) && random() % 2 == 0) {
      bytes frame = mutated({m.payload.begin() + frame_offset, m.payload.end()}, random);
      m.payload.resize(frame_offset);
      write_number(m.payload, frame_offset - 4, static_cast<uint32_t>(frame.size()));
      m.payload.insert(m.payload.end(), frame.begin(), frame.end());
      m.set_size();
    }
    if (!line.say(m.as_bytes()))
      break;
  }
  bytes ignored;
  for (int turn = 0; turn < 10 && line.hear(ignored, 2ms); ++turn) {
  }
  return true;
}

} // namespace troupe::test
