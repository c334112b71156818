#include "actors/network/guard.hpp"

#include "remote/link.hpp"

#include <caf/atom.hpp>
#include <caf/io/basp/header.hpp>
#include <caf/io/basp/message_type.hpp>

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

constexpr uint64_t spawn_server = atom_number(caf::atom("SpawnServ"));

/// The messages between nodes: their types, and the words by which they may begin, if they begin with a word.
struct known_message {
  std::string_view types;
  std::array<caf::atom_value, 3> words{};
};
constexpr std::array known_messages{
    known_message{"troupe::frame"},
    known_message{"troupe::frame+@actor"},     // to a door
    known_message{"@u8+troupe::frame+@actor"}, // its answer
    known_message{"@atom", {caf::atom("ping"), caf::atom("pong"), caf::atom("close")}},
    known_message{"@error"},
    // CAF's nodes ask each other for an actor that spawns others, whenever they meet.
    known_message{"@atom+@atom+@str", {caf::atom("sys")}},
    known_message{"@atom+@str+@strong_actor_ptr+@str", {caf::atom("ok")}},
};

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
  /// A value of one of the types that are known.
  void value(std::string_view type, const caf::node_id& sender) {
    if (type == "troupe::frame")
      frame();
    else if (type == "@actor" || type == "@strong_actor_ptr")
      handle(sender);
    else if (type == "@error")
      error();
    else if (type == "@str")
      text();
    else if (type == "@u8")
      number<uint8_t>();
    else if (type == "@atom")
      number<uint64_t>();
    else
      good_ = false;
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
      return there_ && head_.size > 0 && head_.size <= remote::max_frame_bytes + most_overhead &&
             (head_.flags != 0 || view_.may_reach(head_.destination, there_));
    case message_type::monitor_message:
      return there_ && head_.size == 2 * node_size && view_.may_reach(head_.destination, there_);
    case message_type::down_message: return there_ && head_.size > 2 * node_size && head_.size <= most_overhead;
    case message_type::routed_message: break; // troupe's nodes are all neighbours
  }
  return false;
}

bool guard::admits_payload(reader from) {
  switch (static_cast<message_type>(head_.operation)) {
    case message_type::server_handshake:
    case message_type::client_handshake: return introduces(from);
    case message_type::direct_message: return is_message(from);
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

bool guard::is_message(reader from) const {
  const bool no_stages = from.number<uint8_t>() == 0, no_number = from.number<uint16_t>() == 0;
  std::string_view types = from.text();
  constexpr std::string_view begin = "@<>+";
  if (!no_stages || !no_number || !types.starts_with(begin))
    return false;
  types.remove_prefix(begin.size());
  const auto known = std::find_if(known_messages.begin(), known_messages.end(),
                                  [&](const known_message& m) { return m.types == types; });
  if (known == known_messages.end())
    return false;
  const bool asks_server = known->words[0] == caf::atom("sys");
  if (head_.flags != 0 && (!asks_server || head_.destination != spawn_server))
    return false;
  if (types.starts_with("@atom")) {
    const auto word = reader(from).number<uint64_t>();
    if (word == 0 || std::none_of(known->words.begin(), known->words.end(),
                                  [&](caf::atom_value w) { return atom_number(w) == word; }))
      return false;
  }
  while (!types.empty()) {
    const size_t length = std::min(types.find('+'), types.size());
    from.value(types.substr(0, length), there_);
    types.remove_prefix(std::min(length + 1, types.size()));
  }
  return from.is_good_and_over();
}

} // namespace troupe::actors
