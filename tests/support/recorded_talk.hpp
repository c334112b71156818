// The messages of an honest session to a worker inside TLS, recorded, to be sent again with changes. CAF's protocol,
// BASP of 0.17: a head of 32 bytes, then the number of bytes that it gives.
#pragma once

#include "support/hostile_line.hpp"

#include <functional>

namespace troupe::test {

/// A message of CAF's protocol.
struct caf_message {
  static constexpr size_t head_size = 32;

  bytes head, payload;

  uint8_t operation() const { return head[0]; }
  uint64_t destination() const;
  void set_destination(uint64_t actor);
  /// Writes the payload's length into the head.
  void set_size();
  bool holds(std::string_view text) const;
  bytes as_bytes() const;
};

/// Takes the messages that are complete from the beginning of `from`.
std::vector<caf_message> take_messages(bytes& from);

/// Returns a few messages whose heads CAF may take for good ones; the rest of each is random, and sometimes too long.
bytes random_caf_messages(std::mt19937_64& random);

class recorded_talk {
public:
  /// Takes a place, as a member, between a worker and a caller, which `visit` makes call the port that it is given;
  /// records the caller's messages. Those that are longer than `longest` are left out. Names of nodes are bound to
  /// certificates: `tls` is that of the caller, `as_worker` that of the worker.
  recorded_talk(uint16_t worker, const actors::tls_context& tls, const actors::tls_context& as_worker,
                const std::function<void(uint16_t)>& visit, size_t longest = 16384);

  const std::vector<caf_message>& messages() const { return messages_; }
  bytes whole() const;
  /// The same, said by another node of CAF's.
  recorded_talk as_node(uint32_t number) const;

  /// Sends it again, mending what must be right for frames to reach troupe: the talk begins as it was, and the rest
  /// goes to the link's new end; the frames in it are mutated, now and then one is left out. Returns whether the worker
  /// took the link.
  bool say_to_link(hostile_line& line, std::mt19937_64& random) const;

private:
  explicit recorded_talk(std::vector<caf_message> messages) : messages_(std::move(messages)) {}

  std::vector<caf_message> messages_;
};

} // namespace troupe::test
