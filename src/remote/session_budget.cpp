#include "remote/session_budget.hpp"

#include <type_traits>

namespace troupe::remote {
namespace {

/// A name of DNS has at most 255 bytes; then come a colon and a port.
constexpr size_t longest_address = 300;

template <class Count>
void check_budget(Count wanted, Count limit, std::string_view of) {
  if (wanted > limit)
    fail(errc::invalid_input, "a session may have {} {} here at a time, and wants more", limit, of);
}

/// Counts one more, unless that is too much.
void count_one(size_t& counted, size_t limit, std::string_view of) {
  check_budget(counted + 1, limit, of);
  ++counted;
}

void uncount_one(size_t& counted) {
  counted -= counted > 0;
}

template <class Message>
constexpr bool is_question =
    std::is_same_v<Message, fetch_kept> || std::is_same_v<Message, put_value> || std::is_same_v<Message, ask_stats>;
template <class Message>
constexpr bool is_answer =
    std::is_same_v<Message, fetched> || std::is_same_v<Message, was_put> || std::is_same_v<Message, stats_told>;

} // namespace

bool session_budget::take(const message& come) {
  const std::lock_guard lock(mutex_);
  bool is_known = true;
  std::visit(
      [&]<class Message>(const Message& m) {
        if constexpr (std::is_same_v<Message, install> || std::is_same_v<Message, run_chunk>) {
          charge(m);
        } else if constexpr (is_question<Message>) {
          count_one(questions_, limits_.questions, "questions without an answer");
        } else if constexpr (std::is_same_v<Message, weight_source>) {
          charge_address(m.peer);
        } else if constexpr (std::is_same_v<Message, retire>) {
          bound_plans_.erase({m.device, m.bound_plan});
        } else if constexpr (std::is_same_v<Message, forget_plan>) {
          const auto known = plans_.extract(m.plan);
          is_known = !known.empty();
          plan_bytes_ -= is_known ? known.mapped() : 0;
        }
      },
      come);
  return is_known;
}

void session_budget::charge(const install& order) {
  count_one(installs_, limits_.installs, "installs without an answer");
  if (!plans_.contains(order.plan)) {
    check_budget(plans_.size() + 1, limits_.plans, "plans");
    if (order.encoded.size < 0)
      fail(errc::invalid_input, "a plan of {} bytes cannot be", order.encoded.size);
    check_budget(order.encoded.size, limits_.plan_bytes - plan_bytes_, "more bytes of plans");
    plans_[order.plan] = order.encoded.size;
    plan_bytes_ += order.encoded.size;
  }
  bound_plans_.emplace(order.device, order.bound_plan);
  check_budget(bound_plans_.size(), limits_.bound_plans, "bound plans");
}

void session_budget::charge(const run_chunk& order) {
  count_one(chunks_, limits_.chunks, "chunks without an answer");
  for (const sent_value& value : order.uploads)
    if (value.from == origin::peer)
      charge_address(value.peer);
}

void session_budget::charge_address(const std::string& address) {
  if (address.size() > longest_address)
    fail(errc::invalid_input, "a peer's address has {} bytes, but at most {} are taken", address.size(),
         longest_address);
  if (address.empty() || !addresses_.insert(address).second)
    return;
  check_budget(addresses_.size(), limits_.peer_addresses, "addresses of peers");
}

void session_budget::give_back(const message& said) {
  const std::lock_guard lock(mutex_);
  std::visit(
      [this]<class Message>(const Message& m) {
        if constexpr (std::is_same_v<Message, installed>) {
          uncount_one(installs_);
          if (m.why.failed())
            bound_plans_.erase({m.device, m.bound_plan});
        } else if constexpr (std::is_same_v<Message, chunk_made>) {
          uncount_one(chunks_);
        } else if constexpr (is_answer<Message>) {
          uncount_one(questions_);
        }
      },
      said);
}

void session_budget::check_kept(size_t kept) const {
  check_budget(kept + 1, limits_.kept_values, "kept values");
}

} // namespace troupe::remote
