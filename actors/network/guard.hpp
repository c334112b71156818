// What the other side of a connection may say to CAF: what troupe's own nodes say, and nothing else. CAF (0.17.6)
// trusts its peers: a head without the payload that should follow is a null pointer to it, messages in messages are a
// recursion without end, a length is allocated before it is compared, and anybody may speak for any node to any actor
// (README.md).
#pragma once

#include <caf/node_id.hpp>

#include <cstdint>
#include <functional>
#include <span>

namespace troupe::actors {

/// What an actor here is for the other side.
enum class receiver : uint8_t {
  door,
  own_end,   // of a link to that node
  other_end, // of a link to another: out of reach
  unknown,   // an end that is gone, or an actor that asks the other side's door
};

/// Watches over one connection. Used by one thread.
class guard {
public:
  struct view {
    caf::node_id here;
    /// Whether this side calls, so that the other is the server in CAF's words.
    bool calling = false;
    /// Whether the other side may be this node.
    std::function<bool(const caf::node_id&)> may_be;
    /// What the actor of this id is for that node.
    std::function<receiver(uint64_t actor, const caf::node_id& from)> receiver_of;
    /// Asked for each call of that node at the door: whether it may call once more before it has been answered.
    std::function<bool(const caf::node_id& caller)> may_call;
  };

  explicit guard(view v) : view_(std::move(v)) {}

  /// Looks at a block as CAF reads them: a head, or the payload that the head before it announces. False: the
  /// connection must end, and CAF must not see the block.
  bool admits(std::span<const uint8_t> block);

private:
  class reader;
  struct head {
    uint8_t operation = 0, flags = 0;
    uint32_t size = 0; // of the payload
    uint64_t data = 0, source = 0, destination = 0;
  };

  enum class kind : uint8_t { frame, call, answer, ping, pong, close, error };

  bool admits_head() const;
  bool admits_payload(reader from);
  bool introduces(reader from);
  bool admits_message(reader from) const;
  /// Whether troupe's nodes send that kind to that receiver, in this direction, as a request, an answer, or neither.
  bool fits(kind what, receiver to) const;

  view view_;
  caf::node_id there_; // none: it has not said yet who it is
  head head_;
  bool payload_follows_ = false;
};

} // namespace troupe::actors
