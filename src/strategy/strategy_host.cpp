#include "strategy/strategy_host.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {
namespace {

constexpr const char* advice = "a strategy reports what is wrong (`strategy_stream::report`) and returns";

bool is_living(const strategy_replica& r) {
  return (r.flags & strategy_replica_living) != 0;
}

bool is_free(const strategy_replica& r) {
  return is_living(r) && (r.flags & strategy_replica_free) != 0;
}

} // namespace

strategy_host::strategy_host(std::shared_ptr<const strategy_library> plugin, size_t replicas)
    : plugin_(std::move(plugin)), calls_(call_plugin(plugin_->description(), advice, [&] {
        return plugin_->open_stream(static_cast<uint32_t>(replicas));
      })) {
  if (!calls_.choose)
    refuse("opened a stream without a function that chooses");
}

void strategy_host::report(void* context, const char* message) {
  try {
    static_cast<strategy_host*>(context)->reported_ = message ? message : "";
  } catch (...) { // no memory for a text: the status says that it failed
  }
}

void strategy_host::refuse(const std::string& what) const {
  fail(errc::invalid_argument, "{} {}", plugin_->description(), what);
}

template <class Question>
void strategy_host::ask(const view& of, Question&& question) {
  const strategy_stream stream{.abi_version = strategy_abi_version,
                               .replica_count = static_cast<uint32_t>(of.replicas.size()),
                               .replicas = of.replicas.data(),
                               .now_s = of.now_s,
                               .waiting_rows = of.waiting_rows,
                               .context = this,
                               .report = report};
  reported_.clear();
  const int32_t status = call_plugin(plugin_->description(), advice, [&] { return question(&stream); });
  if (status != 0)
    refuse("failed: " + failure_reason(status, reported_));
}

std::vector<int64_t> strategy_host::share(const view& of, int64_t rows) {
  std::vector<int64_t> shares(of.replicas.size(), 0);
  ask(of, [&](const strategy_stream* s) { return calls_.share(s, rows, shares.data()); });
  int64_t left = rows;
  for (size_t r = 0; r < shares.size(); ++r) {
    if (shares[r] < 0 || shares[r] > left)
      refuse(fmt::format("gave replica {} {} rows, and {} of {} were left", r, shares[r], left, rows));
    if (shares[r] > 0 && !is_living(of.replicas[r]))
      refuse(fmt::format("gave rows to replica {}, which is lost; look at `strategy_replica_living`", r));
    left -= shares[r];
  }
  if (left > 0)
    refuse(fmt::format("gave no replica {} of a request's {} rows", left, rows));
  return shares;
}

strategy_host::choice strategy_host::choose(const view& of, int64_t rows, bool may_be_cut) {
  const strategy_offer offer{.rows = rows, .may_be_cut = may_be_cut ? 1 : 0, .reserved = 0};
  strategy_answer answer{.replica = strategy_none, .reserved = 0, .rows = rows, .wait_s = 0};
  ask(of, [&](const strategy_stream* s) { return calls_.choose(s, &offer, &answer); });
  if (answer.replica == strategy_none) {
    if (!(answer.wait_s >= 0 && std::isfinite(answer.wait_s)))
      refuse(fmt::format("wants to be asked again after {} s", answer.wait_s));
    const bool nothing_comes =
        answer.wait_s == 0 && std::all_of(of.replicas.begin(), of.replicas.end(),
                                          [](const strategy_replica& r) { return r.in_flight + r.own_rows == 0; });
    if (nothing_comes)
      refuse("lets rows wait although every replica is idle, and says no time when to ask again: they would wait for "
             "ever");
    return {.wait_s = answer.wait_s};
  }
  if (answer.replica >= of.replicas.size())
    refuse(fmt::format("chose replica {}, and there are only {}", answer.replica, of.replicas.size()));
  if (!is_free(of.replicas[answer.replica]))
    refuse(fmt::format("chose replica {}, which is {}; look at `strategy_replica::flags`", answer.replica,
                       is_living(of.replicas[answer.replica]) ? "not free" : "lost"));
  if (!may_be_cut)
    return {.replica = answer.replica, .rows = rows};
  if (answer.rows < 1 || answer.rows > rows)
    refuse(fmt::format("gave replica {} {} of {} rows", answer.replica, answer.rows, rows));
  return {.replica = answer.replica, .rows = answer.rows};
}

} // namespace troupe
