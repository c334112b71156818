// The devices of a small worker, and what its devices and links see.
#pragma once

#include "device/resident.hpp"
#include "remote/messages.hpp"
#include "remote/served_device.hpp"
#include "support/far_values.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <unordered_set>

namespace troupe::test {

/// The element that all elements of a value of an execution are equal to.
inline float element_of(size_t session, uint64_t execution, value_id v) {
  return static_cast<float>(10'000 * session + 100 * execution + v);
}

/// What links and devices are told, by threads of the worker, too.
struct worker_watch {
  /// One session, as its link sees it.
  struct line {
    std::deque<remote::message> said, asked;
    size_t jobs = 0;                    // of the thread that makes plans
    bool waits = false;                 // that thread, for an answer
    std::unordered_set<hash128> served; // keys of which the test gives all pieces
    bool closed = false;                // by the worker
  };

  bool on_thread_of_plans() const { return std::this_thread::get_id() != tester; }
  bool is_quiet() const {
    return std::ranges::all_of(lines, [](const auto& l) { return l.second.jobs == 0 || l.second.waits; });
  }
  void end_job(size_t session) {
    size_t& jobs = lines[session].jobs;
    if (jobs == 0)
      accuse("an install begins although its session has ended");
    else
      --jobs;
  }
  void accuse(const std::string& what) { problems.push_back(what); }

  const std::thread::id tester = std::this_thread::get_id();
  mutable std::mutex mutex; // guards the rest
  std::condition_variable changed;
  std::map<size_t, line> lines;
  std::map<std::thread::id, size_t> threads; // sessions, by the threads that make their plans …
  std::set<pid_t> thread_numbers;            // … which have these numbers in the system
  std::vector<size_t> accepted;              // sessions, by their numbers in the worker
  std::vector<std::string> problems;
};

/// A device that keeps its orders until the test has it answer them, and looks whether each may come.
class ordered_device final : public remote::served_device {
public:
  struct order {
    std::string text;
    uint64_t bound_plan = 0; // of a chunk
    bool can_fail = false;
    std::shared_ptr<const std::atomic<bool>> stop;
    std::function<void(bool fails)> answer;
  };

  ordered_device(std::shared_ptr<worker_watch> w, device_info info) : watch_(std::move(w)), info_(std::move(info)) {}

  const device_info& info() const override { return info_; }

  void install(bound_plan_ptr bound, device_index self, std::function<void(failure)> done) override {
    const std::lock_guard lock(watch_->mutex);
    const size_t session = watch_->threads.at(std::this_thread::get_id());
    if (installed_.contains(bound->id))
      watch_->accuse("a plan is installed twice");
    watch_->end_job(session);
    orders_.push_back(
        {.text = fmt::format("install of s{}", session), .can_fail = true, .stop = {}, .answer = [=, this](bool fails) {
           if (!fails)
             installed_[bound->id] = {bound, self};
           done(fails ? failure{errc::device_failed, "the test says so"} : failure{});
         }});
    watch_->changed.notify_all();
  }

  void retire(uint64_t bound_plan) override {
    const std::lock_guard lock(watch_->mutex);
    if (installed_.erase(bound_plan) == 0)
      watch_->accuse("a plan is retired that is not installed");
    if (std::ranges::find(orders_, bound_plan, &order::bound_plan) != orders_.end())
      watch_->accuse("a plan is retired before its chunks have ended");
  }

  void run(chunk_work work, chunk_done done) override {
    const std::lock_guard lock(watch_->mutex);
    const auto plan = installed_.find(work.bound_plan);
    if (plan == installed_.end())
      return watch_->accuse("a chunk comes of a plan that is not installed");
    const auto [bound, self] = plan->second;
    const size_t session = watch_->accepted.at((work.execution >> 40) - 1);
    const uint64_t number = work.execution & ((uint64_t{1} << 40) - 1);
    begin(work, *bound);
    for (size_t i = 0; i < work.uploads.size(); ++i)
      check_upload(work.uploads[i], element_of(session, number, bound->source->chunks[work.chunk].uploads[i]));
    orders_.push_back({.text = fmt::format("chunk {} of {} of s{}", work.chunk, number, session),
                       .bound_plan = work.bound_plan,
                       .can_fail = true,
                       .stop = work.stop,
                       .answer = [=, this, b = bound, d = self](bool fails) {
                         if (work.stop->load())
                           return done({.code = errc::cancelled, .message = "dropped"});
                         if (fails)
                           return done({.code = errc::device_failed, .message = "the test says so"});
                         fill(work, *b, [&](value_id v) { return element_of(session, number, v); });
                         complete(work, *b, d);
                         done({});
                       }});
  }

  void end(execution_id execution) override {
    const std::lock_guard lock(watch_->mutex);
    running_.erase(execution);
  }

  void fetch(device_tensor value, fetch_done done) override {
    push("fetch", [=](bool) { done({.value = value->host()}); });
  }
  void put(tensor value, std::function<void(device_tensor, failure)> done) override {
    push("put", [=, this](bool) { done(copy_to_host_resident(value, info_.name), {}); });
  }
  void stats(std::function<void(const device_stats&)> done) override { done({}); }

  // -- for the test's thread
  std::deque<order> orders() const {
    const std::lock_guard lock(watch_->mutex);
    return orders_;
  }
  order pop() {
    const std::lock_guard lock(watch_->mutex);
    order first = std::move(orders_.front());
    orders_.pop_front();
    return first;
  }
  /// Lets go of all orders.
  void drop_all() {
    std::deque<order> all;
    const std::lock_guard lock(watch_->mutex);
    all.swap(orders_);
    watch_->changed.notify_all();
  }
  std::string held() const {
    const std::lock_guard lock(watch_->mutex);
    return fmt::format("{} plans, {} executions", installed_.size(), running_.size());
  }

private:
  struct execution_state {
    uint32_t slot = 0;
    uint64_t layout = 0;
    std::set<chunk_id> come, done;
  };

  void push(const std::string& text, std::function<void(bool)> answer) {
    const std::lock_guard lock(watch_->mutex);
    orders_.push_back({.text = text, .stop = {}, .answer = std::move(answer)});
  }

  /// A chunk comes: after those that it follows, on a slot of its own. Under the lock.
  void begin(const chunk_work& work, const bound_plan& bound) {
    execution_state& e = running_[work.execution];
    e.slot = work.slot;
    e.layout = bound.layout->id;
    const std::vector<chunk>& chunks = bound.source->chunks;
    for (const chunk_id before : chunks[work.chunk].predecessors)
      if (chunks[before].device == chunks[work.chunk].device && !e.come.contains(before))
        watch_->accuse("a chunk comes before one that it follows");
    if (!e.come.insert(work.chunk).second)
      watch_->accuse("a chunk comes twice");
    for (const auto& [execution, other] : running_)
      if (execution != work.execution && other.slot == e.slot && other.layout == e.layout)
        watch_->accuse("two executions have one slot");
  }
  void check_upload(const value_ref& value, float expected) {
    if (!value || !value->filled())
      watch_->accuse("a chunk comes without its values");
    else if ((value->has_host() ? value->host() : value->resident()->host()).values<float>()[0] != expected)
      watch_->accuse("a chunk comes with a wrong value");
  }
  template <class Element>
  void fill(const chunk_work& work, const bound_plan& bound, Element&& element) {
    for (size_t i = 0; i < work.downloads.size(); ++i) {
      const value_id v = bound.source->chunks[work.chunk].downloads[i];
      tensor t(bound.source->program->values[v].type, bound.dims[v]);
      std::fill_n(t.mutable_data<float>(), t.size(), element(v));
      const bool stays = work.downloads[i]->stays();
      work.downloads[i]->fill(work.downloads[i]->goes_to_host() ? t : tensor(),
                              stays ? copy_to_host_resident(t, info_.name) : nullptr);
    }
  }
  void complete(const chunk_work& work, const bound_plan& bound, device_index self) {
    const std::lock_guard lock(watch_->mutex);
    const auto found = running_.find(work.execution);
    if (found == running_.end())
      return watch_->accuse("an execution is ended while a chunk of it runs");
    found->second.done.insert(work.chunk);
    const auto mine = [&](const chunk& c) { return c.device == self && c.segment == bound.segment; };
    if (std::cmp_equal(found->second.done.size(), std::ranges::count_if(bound.source->chunks, mine)))
      running_.erase(found);
  }

  const std::shared_ptr<worker_watch> watch_;
  const device_info info_;
  std::deque<order> orders_; // this and the rest: guarded by the watch's mutex
  std::map<uint64_t, std::pair<bound_plan_ptr, device_index>> installed_;
  std::map<execution_id, execution_state> running_;
};

} // namespace troupe::test
