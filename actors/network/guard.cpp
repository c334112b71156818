#include "actors/network/guard.hpp"

#include "remote/link.hpp"

#include <caf/atom.hpp>
#include <caf/io/basp/header.hpp>
#include <caf/io/basp/message_type.hpp>
#include <caf/message_id.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe::actors {

using caf::io::basp::message_type;

namespace {

constexpr size_t node_size = 8 + 4 + caf::node_id::default_data::host_id_size;
constexpr size_t most_overhead = 4096; // what CAF adds to a frame: types, handles; also its own messages

constexpr uint64_t atom_number(caf::atom_value a) {
  return static_cast<uint64_t>(a);
}

} // namespace

/// Reads what CAF's binary serializer writes. After a read beyond the end it is not `good`, and reads zeros.
class guard::reader {
public:
  explicit reader(std::span<const uint8_t> from) : rest_(from) {}

  bool is_good() const { return good_; }
  bool is_good_and_over() const { return good_ && rest_.empty(); }

  std::span<const uint8_t> take(size_t size) {
    good_ = good_ && size <= rest_.size();
    const auto taken = good_ ? rest_.first(size) : rest_.first(0);
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  template <class T>
  T number() {
    T n = 0;
    for (const uint8_t byte : take(sizeof(T)))
      n = static_cast<T>(static_cast<uint64_t>(n) << 8 | byte);
    return n;
  }
  /// A text of at most 16383 bytes.
  std::string_view text() {
    const uint8_t low = number<uint8_t>();
    const uint8_t high = low < 0x80 ? 0 : number<uint8_t>();
    good_ = good_ && high < 0x80;
    const auto taken = take(static_cast<size_t>(low & 0x7f) | static_cast<size_t>(high) << 7);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  /// A node as CAF names it by default; none is none.
  caf::node_id node() {
    const uint64_t kind = number<uint64_t>();
    if (kind == atom_number(caf::atom("")))
      return {};
    good_ = good_ && kind == atom_number(caf::node_id::default_data::class_id);
    const auto process = number<uint32_t>();
    const auto host = take(caf::node_id::default_data::host_id_size);
    good_ = good_ && process != 0;
    if (!good_)
      return {};
    caf::node_id::default_data::host_id_type id{};
    std::copy(host.begin(), host.end(), id.begin());
    good_ = caf::node_id::default_data::valid(id);
    return caf::make_node_id(process, id);
  }
  void frame() {
    const auto size = number<uint32_t>();
    good_ = good_ && size <= remote::max_frame_bytes;
    take(size);
  }
  /// Without the context that it might have: a message, in which could be another.
  void error() {
    number<uint8_t>();
    number<uint64_t>();
    good_ = good_ && number<uint16_t>() == 0 && text() == "@<>";
  }
  /// Of the node given, or none: what is told of a third would make CAF route through its teller.
  void handle(const caf::node_id& owner) {
    number<uint64_t>();
    const caf::node_id at = node();
    good_ = good_ && (!at || at == owner);
  }

private:
  std::span<const uint8_t> rest_;
  bool good_ = true;
};

bool guard::admits(std::span<const uint8_t> block) {
  if (std::exchange(payload_follows_, false))
    return block.size() == head_.size && admits_payload(reader(block));
  reader r(block);
  head_.operation = r.number<uint8_t>();
  r.number<uint16_t>();
  head_.flags = r.number<uint8_t>();
  head_.size = r.number<uint32_t>();
  head_.data = r.number<uint64_t>();
  head_.source = r.number<uint64_t>();
  head_.destination = r.number<uint64_t>();
  payload_follows_ = head_.size > 0;
  return r.is_good_and_over() && admits_head();
}

bool guard::admits_head() const {
  switch (static_cast<message_type>(head_.operation)) {
    case message_type::heartbeat: return head_.size == 0;
    case message_type::server_handshake:
      return view_.calling && !there_ && head_.size >= node_size && head_.size <= most_overhead;
    case message_type::client_handshake: return !view_.calling && head_.size == node_size;
    case message_type::direct_message:
      return there_ && head_.size > 0 && head_.size <= remote::max_frame_bytes + most_overhead && head_.flags == 0 &&
             view_.receiver_of(head_.destination, there_) != receiver::other_end;
    case message_type::monitor_message:
      return there_ && head_.size == 2 * node_size &&
             view_.receiver_of(head_.destination, there_) != receiver::other_end;
    case message_type::down_message: return there_ && head_.size > 2 * node_size && head_.size <= most_overhead;
    case message_type::routed_message: break; // troupe's nodes are all neighbours
  }
  return false;
}

bool guard::admits_payload(reader from) {
  switch (static_cast<message_type>(head_.operation)) {
    case message_type::server_handshake:
    case message_type::client_handshake: return introduces(from);
    case message_type::direct_message: return admits_message(from);
    case message_type::monitor_message: return from.node() == there_ && from.node() == view_.here;
    case message_type::down_message:
      if (from.node() != there_ || from.node() != view_.here)
        return false;
      from.error();
      return from.is_good_and_over();
    default: return false;
  }
}

/// A node says who it is: a caller twice, always the same.
bool guard::introduces(reader from) {
  const caf::node_id named = from.node();
  if (!from.is_good() || !named || named == view_.here || (there_ && named != there_) || !view_.may_be(named))
    return false;
  there_ = named;
  return true;
}

bool guard::admits_message(reader from) const {
  const bool no_stages = from.number<uint8_t>() == 0, no_number = from.number<uint16_t>() == 0;
  const std::string_view types = from.text();
  if (!no_stages || !no_number)
    return false;
  kind what{};
  if (types == "@<>+troupe::frame") {
    what = kind::frame;
    from.frame();
  } else if (types == "@<>+troupe::frame+@actor") {
    what = kind::call;
    from.frame();
    from.handle(there_);
  } else if (types == "@<>+@u8+troupe::frame+@actor") {
    what = kind::answer;
    from.number<uint8_t>();
    from.frame();
    from.handle(there_);
  } else if (types == "@<>+@error") {
    what = kind::error;
    from.error();
  } else if (types == "@<>+@atom") {
    const auto word = from.number<uint64_t>();
    if (word == atom_number(caf::atom("ping")))
      what = kind::ping;
    else if (word == atom_number(caf::atom("pong")))
      what = kind::pong;
    else if (word == atom_number(caf::atom("close")))
      what = kind::close;
    else
      return false;
  } else {
    return false;
  }
  const receiver to = view_.receiver_of(head_.destination, there_);
  return from.is_good_and_over() && fits(what, to) && (what != kind::call || view_.may_call(there_));
}

bool guard::fits(kind what, receiver to) const {
  const caf::message_id id(head_.data); // as it is: `make_message_id` would add a priority
  const bool answers = id.is_response(), asks = id.is_request();
  if (id.category() > caf::message_id::normal_message_category) // of a stream; whether it is urgent does no harm
    return false;
  switch (what) {
    case kind::frame:
    case kind::close: return to != receiver::door && !answers && !asks;
    case kind::ping: return to != receiver::door && asks;
    case kind::pong: return to != receiver::door && answers;
    case kind::error: return to != receiver::door && answers;                      // the end that was asked is gone
    case kind::answer: return view_.calling && to == receiver::unknown && answers; // to who has called a door
    case kind::call: return !view_.calling && to == receiver::door && asks && head_.source != 0; // is to be answered
  }
  return false;
}

} // namespace troupe::actors
