// A session of a small worker that keeps to the rules: it says what choices a session has, takes them, and looks
// whether what it hears is what it may hear.
#pragma once

#include "remote/outbox.hpp"
#include "support/catch.hpp"
#include "support/small_worker.hpp"
#include "wire/plans.hpp"

#include <cstring>

namespace troupe::test {

inline constexpr int64_t plenty = int64_t{1} << 30;

/// What sessions of a small worker do.
struct session_scope {
  bound_plan_ptr bound; // its first devices are the worker's, perhaps another one is the session's own
  size_t devices = 1;   // of the worker
  size_t executions = 1;
  int64_t memory = plenty; // of each device
  bool keeps = false;      // values for other chunks stay at the worker; one is put there and fetched
  std::shared_ptr<remote::outbox> offers = std::make_shared<remote::outbox>();
};

/// What one session has said and heard.
class small_session {
public:
  small_session(const session_scope& s, small_worker& worker, size_t number)
      : scope_(s), worker_(worker), number_(number), installs_(s.devices, "no"),
        executions_(s.executions, execution_state{.chunks = std::string(plan_of().chunks.size(), '.'),
                                                  .ended = std::vector<bool>(s.devices)}) {}

  bool is_over() const { return is_lost_ || is_closed_; }
  bool is_open() const { return is_open_ && !is_over(); }
  bool can_stop(size_t e) const { return executions_[e].is_begun() && !executions_[e].stops && !is_answered(e); }

  /// Adds what the session can do now.
  void add_choices(std::vector<std::string>& all, bool is_worker_gone) const {
    const auto add = [&](const std::string& what) { all.push_back(fmt::format("s{} {}", number_, what)); };
    if (!is_open_ && !is_over() && !is_worker_gone)
      add("opens");
    if (!is_open())
      return;
    if (worker_.has_closed(number_))
      return add("hears the end");
    if (worker_.has_asked(number_))
      add("serves");
    for (size_t d = 0; d < installs_.size(); ++d) {
      if (installs_[d] == "no" && (!leaves_ || is_running()))
        add(fmt::format("installs {}", d));
      if (installs_[d] == "there" && is_all_sent(d))
        add(fmt::format("retires {}", d));
    }
    for (size_t e = 0; e < executions_.size(); ++e) {
      for (chunk_id c = 0; c < plan_of().chunks.size(); ++c)
        if (may_run(e, c))
          add(fmt::format("runs {} {}", e, c));
      for (size_t d = 0; d < installs_.size(); ++d)
        if (executions_[e].has_failed && is_answered(e) && has_begun_on(e, d) && !executions_[e].ended[d])
          add(fmt::format("ends {} {}", e, d));
    }
    if (scope_.keeps && put_ == "no" && !leaves_ && !has_failed_install())
      add("puts");
    if (put_ == "there" && std::ranges::count(kept_, put_key_) > 0)
      add("fetches");
    if (is_idle() && !kept_.empty())
      add("releases");
    if (is_idle() && !has_forgotten_ && std::ranges::all_of(installs_, [](const auto& i) { return i == "retired"; }))
      add("forgets");
    if (is_idle() && (leaves_ || has_failed_install() ||
                      std::ranges::all_of(executions_, [](const auto& e) { return e.is_begun(); })))
      add("closes");
  }

  void take(const std::string& what, size_t a, size_t b) {
    if (what == "opens")
      (worker_.open(number_) ? is_open_ : is_lost_) = true;
    else if (what == "serves")
      worker_.serve(number_, scope_.offers->offers(), values_);
    else if (what == "installs")
      install(a);
    else if (what == "retires")
      installs_[a] = "retired", say(remote::retire{static_cast<uint32_t>(a), scope_.bound->id});
    else if (what == "runs")
      run(a, static_cast<chunk_id>(b));
    else if (what == "stops")
      executions_[a].stops = executions_[a].has_failed = true, say(remote::stop_chunks{a + 1});
    else if (what == "ends")
      executions_[a].ended[b] = true, say(remote::end_chunks{static_cast<uint32_t>(b), a + 1});
    else if (what == "puts")
      put_ = "asked", put_key_ = kept_.emplace_back(remote::new_key()),
      say(remote::put_value{1, 0, put_key_, describe({4}, element_of(number_, 0, 0))});
    else if (what == "fetches")
      put_ = "asked back", say(remote::fetch_kept{2, 0, put_key_});
    else if (what == "releases")
      say(remote::release{std::exchange(kept_, {})});
    else if (what == "forgets")
      has_forgotten_ = true, say(remote::forget_plan{scope_.offers->offer(scope_.bound->source).id});
    else { // it closes the link, or the link is lost, or the worker has closed it
      is_refused_ = what == "hears" && !worker_.has_ended();
      (what == "closes" ? is_closed_ : is_lost_) = true, worker_.end(number_);
    }
  }

  /// Hears what the worker has said; `may_leave`: the worker's owner has drained it, `may_fail`: a device has failed.
  void hear(bool may_leave, bool may_fail) {
    for (const remote::message& m : worker_.take_said(number_)) {
      if (is_over())
        continue;
      if (const auto* there = std::get_if<remote::installed>(&m)) {
        const bool may_be = may_fail || (scope_.memory < plenty && there->why.code == errc::out_of_memory);
        expect(installs_.at(there->device) == "asked" && (may_be || !there->why.failed()), "an install's answer");
        installs_[there->device] = there->why.failed() ? "failed" : "there";
        for (execution_state& e : executions_)
          e.has_failed |= there->why.failed() && e.is_begun();
      } else if (const auto* made = std::get_if<remote::chunk_made>(&m)) {
        hear(*made, may_fail);
      } else if (const auto* put = std::get_if<remote::was_put>(&m)) {
        expect(put_ == "asked" && !put->why.failed(), "a put's answer");
        put_ = "there";
      } else if (const auto* back = std::get_if<remote::fetched>(&m)) {
        expect(put_ == "asked back" && !back->why.failed() && has(back->value, element_of(number_, 0, 0)), "a fetch");
        put_ = "back";
      } else if (std::holds_alternative<remote::leaving>(m)) {
        expect(may_leave && !std::exchange(leaves_, true), "leaving");
      } else if (std::holds_alternative<remote::memory_wanted>(m)) {
        expect(scope_.memory < plenty, "that memory is wanted");
      } else {
        expect(std::holds_alternative<remote::have_weights>(m) || std::holds_alternative<remote::loading>(m), "more");
      }
    }
  }

  std::string place() const {
    std::string text = fmt::format("|{}{}{}{} {} {}", is_open_, is_over(), leaves_, worker_.has_asked(number_),
                                   fmt::join(installs_, ","), put_);
    for (const execution_state& e : executions_)
      text += " " + e.chunks + (e.has_failed ? "f" : "") + (e.stops ? "s" : "");
    return text;
  }

  /// At the end of a path.
  void check() const {
    CHECK((is_over() || !is_open_)); // it never opens if the worker is gone
    CHECK_FALSE(is_refused_);        // it keeps to the rules
    if (is_closed_)
      CHECK(is_idle());
    for (const std::string& p : problems_)
      FAIL_CHECK(fmt::format("s{}: {}", number_, p));
  }

private:
  /// A chunk is '.', under way 's', right 'r', or failed 'f'; the session's own ones are right at once.
  struct execution_state {
    std::string chunks;
    std::vector<bool> ended; // by device
    bool has_failed = false; // by a chunk, or since it was stopped
    bool stops = false;      // the session has said so
    std::map<value_id, hash128> kept;
    bool is_begun() const { return chunks.find_first_of("srf") != std::string::npos; }
  };

  const plan& plan_of() const { return *scope_.bound->source; }
  bool is_own(chunk_id c) const { return plan_of().chunks[c].device >= scope_.devices; }
  void expect(bool holds, const char* what) {
    if (!holds)
      problems_.push_back(fmt::format("{} that no session may hear", what));
  }
  bool is_answered(size_t e) const {
    const execution_state& x = executions_[e];
    return x.chunks.find('s') == std::string::npos && (x.has_failed || x.chunks.find('.') == std::string::npos);
  }
  bool has_begun_on(size_t e, size_t device) const {
    for (chunk_id c = 0; c < plan_of().chunks.size(); ++c)
      if (plan_of().chunks[c].device == device && executions_[e].chunks[c] != '.')
        return true;
    return false;
  }
  bool is_idle() const {
    const auto is_ended = [&](size_t e) {
      for (size_t d = 0; d < scope_.devices; ++d)
        if (executions_[e].has_failed && has_begun_on(e, d) && !executions_[e].ended[d])
          return false;
      return !executions_[e].is_begun() || is_answered(e);
    };
    for (size_t e = 0; e < executions_.size(); ++e)
      if (!is_ended(e))
        return false;
    return std::ranges::find(installs_, "asked") == installs_.end() && !put_.starts_with("asked");
  }
  bool is_running() const {
    return std::ranges::any_of(executions_, [](const auto& e) { return e.is_begun() && !e.has_failed; });
  }
  bool has_failed_install() const { return std::ranges::count(installs_, "failed") > 0; }
  bool is_all_sent(size_t device) const {
    for (const execution_state& e : executions_)
      for (chunk_id c = 0; c < plan_of().chunks.size(); ++c)
        if (plan_of().chunks[c].device == device && e.chunks[c] == '.' && !e.has_failed)
          return false;
    return true;
  }
  bool may_run(size_t e, chunk_id c) const {
    const execution_state& x = executions_[e];
    const chunk& wanted = plan_of().chunks[c];
    if (is_own(c) || x.chunks[c] != '.' || x.has_failed || installs_[wanted.device] != "there" ||
        has_failed_install() || (leaves_ && !x.is_begun()))
      return false;
    return std::ranges::all_of(wanted.predecessors, [&](chunk_id before) {
      const bool is_here = plan_of().chunks[before].device == wanted.device;
      return x.chunks[before] == 'r' || (is_here && x.chunks[before] == 's');
    });
  }

  void say(const remote::message& m) { worker_.say(number_, m); }
  remote::sent_value describe(const shape& dims, float element) {
    tensor t(dtype::float32, dims);
    std::fill_n(t.mutable_data<float>(), t.size(), element);
    return remote::describe(t, remote::new_key(), values_);
  }
  bool has(const remote::sent_value& value, float element) const {
    float first = element;
    if (value.from == remote::origin::message)
      std::memcpy(&first, value.bytes.data(), sizeof first);
    return first == element;
  }

  void install(size_t device) {
    installs_[device] = "asked";
    const remote::offered_plan offered = scope_.offers->offer(scope_.bound->source);
    say(remote::install{.device = static_cast<uint32_t>(device),
                        .plan = offered.id,
                        .encoded = offered.encoded,
                        .bound_plan = scope_.bound->id,
                        .binding = wire::encode_binding(*scope_.bound),
                        .self = static_cast<uint32_t>(device)});
  }

  void run(size_t e, chunk_id c) {
    execution_state& x = executions_[e];
    const chunk& wanted = plan_of().chunks[c];
    x.chunks[c] = 's';
    remote::run_chunk order{.device = wanted.device,
                            .bound_plan = scope_.bound->id,
                            .chunk = c,
                            .execution = e + 1,
                            .slot = static_cast<uint32_t>(e)};
    for (const value_id v : wanted.uploads) {
      const auto kept = x.kept.find(v);
      order.uploads.push_back(describe(scope_.bound->dims[v], element_of(number_, e + 1, v)));
      if (kept != x.kept.end())
        order.uploads.back() = {.from = remote::origin::kept,
                                .type = dtype::float32,
                                .dims = scope_.bound->dims[v],
                                .bytes = {},
                                .key = kept->second,
                                .peer = {}};
    }
    for (const value_id v : wanted.downloads) {
      order.downloads.push_back({.key = remote::new_key(), .send = true});
      if (scope_.keeps && !is_output(v)) {
        order.downloads.back().home = destination::host;
        order.downloads.back().send = false;
        kept_.push_back(x.kept[v] = order.downloads.back().key);
      }
    }
    say(order);
  }
  bool is_output(value_id v) const { return std::ranges::count(plan_of().program->outputs, v) > 0; }

  void hear(const remote::chunk_made& made, bool may_fail) {
    execution_state& x = executions_.at(made.execution - 1);
    expect(x.chunks.at(made.chunk) == 's', "a chunk's answer");
    const chunk_result& r = made.result;
    x.chunks[made.chunk] = r.ok() ? 'r' : 'f';
    const std::vector<value_id>& downloads = plan_of().chunks[made.chunk].downloads;
    if (r.ok()) {
      expect(made.downloads.size() == downloads.size(), "the values of a chunk");
      for (size_t i = 0; i < made.downloads.size(); ++i)
        expect(has(made.downloads[i], element_of(number_, made.execution, downloads[i])), "a value of a chunk");
    } else {
      // What was dropped comes after its cause.
      expect(r.code == errc::cancelled ? x.has_failed : may_fail && r.code == errc::device_failed, "a failure");
      x.has_failed = true;
    }
    for (bool more = true; std::exchange(more, false);) // own chunks
      for (chunk_id c = 0; c < x.chunks.size(); ++c)
        if (is_own(c) && x.chunks[c] == '.' &&
            std::ranges::all_of(plan_of().chunks[c].predecessors, [&](chunk_id b) { return x.chunks[b] == 'r'; })) {
          x.chunks[c] = 'r';
          more = true;
        }
  }

  const session_scope& scope_;
  small_worker& worker_;
  const size_t number_;
  remote::piece_source values_;
  bool is_open_ = false, is_lost_ = false, is_closed_ = false, is_refused_ = false;
  bool leaves_ = false, has_forgotten_ = false;
  std::vector<std::string> installs_; // by device
  std::vector<execution_state> executions_;
  std::string put_ = "no";
  hash128 put_key_;
  std::vector<hash128> kept_;
  std::vector<std::string> problems_;
};

} // namespace troupe::test
