#include "actors/lent_device.hpp"

#include "actors/entry.hpp"
#include "actors/system_end.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <deque>
#include <map>

namespace troupe::actors {
namespace {

using told_stats = std::function<void(const device_stats&)>;

/// Asking for counters waits for one chunk at most.
constexpr auto lent_stats_timeout = std::chrono::seconds(10);

} // namespace

/// Sent by a lent device to its agent.
struct stats_wanted {
  told_stats done;
};

namespace {

/// Hears the device's answers.
using agent_ref = completion_sink::extend<caf::reacts_to<tensor_put>, caf::reacts_to<stats_wanted>>;

/// Who waits for an answer of the device.
class waiters {
public:
  using chunk_key = std::pair<execution_id, chunk_id>;
  using install_done = std::function<void(failure)>;
  using put_done = std::function<void(device_tensor, failure)>;

  /// Adds one; false if the device is gone.
  bool add(uint64_t bound_plan, install_done done) { return add(installs_, bound_plan, std::move(done)); }
  bool add(chunk_key which, chunk_done done) { return add(chunks_, which, std::move(done)); }
  uint64_t add(fetch_done done) {
    const std::lock_guard lock(mutex_);
    fetches_.emplace(++last_fetch_, std::move(done));
    return lost_ ? 0 : last_fetch_;
  }
  bool add(put_done done) {
    const std::lock_guard lock(mutex_);
    puts_.push_back(std::move(done));
    return !lost_;
  }

  void on(const plan_installed& answer) {
    if (const auto done = take(installs_, answer.bound_plan))
      done(answer.why);
  }
  void on(chunk_key which, chunk_result result) {
    if (const auto done = take(chunks_, which))
      done(std::move(result));
  }
  void on(tensor_fetched& answer) {
    if (const auto done = take(fetches_, answer.ticket))
      done(std::move(answer.result));
  }
  void on(tensor_put& answer) { // the device answers in order
    put_done done;
    {
      const std::lock_guard lock(mutex_);
      if (puts_.empty())
        return;
      done = std::move(puts_.front());
      puts_.pop_front();
    }
    done(std::move(answer.value), std::move(answer.why));
  }

  /// A session's callback has thrown: the others hear their answers all the same.
  template <class Message>
  void failed(const Message&, const failure&) {}

  /// Answers everybody, those to come by the return value of `add`.
  void lose(const failure& why) {
    decltype(installs_) installs;
    decltype(chunks_) chunks;
    decltype(fetches_) fetches;
    decltype(puts_) puts;
    {
      const std::lock_guard lock(mutex_);
      lost_ = true;
      installs.swap(installs_);
      chunks.swap(chunks_);
      fetches.swap(fetches_);
      puts.swap(puts_);
    }
    for (auto& [id, done] : installs)
      done(why);
    for (auto& [id, done] : chunks)
      done({.code = why.code, .message = why.message});
    for (auto& [id, done] : fetches)
      done({.code = why.code, .message = why.message});
    for (auto& done : puts)
      done(nullptr, why);
  }

private:
  template <class Book, class Key, class Done>
  bool add(Book& book, const Key& key, Done done) {
    const std::lock_guard lock(mutex_);
    book.emplace(key, std::move(done));
    return !lost_;
  }
  template <class Book, class Key>
  typename Book::mapped_type take(Book& book, const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = book.extract(key);
    return found.empty() ? typename Book::mapped_type() : std::move(found.mapped());
  }

  std::mutex mutex_;
  bool lost_ = false;
  std::map<uint64_t, install_done> installs_;
  std::map<chunk_key, chunk_done> chunks_;
  std::map<uint64_t, fetch_done> fetches_;
  uint64_t last_fetch_ = 0;
  std::deque<put_done> puts_;
};

failure lost(const device_info& device) {
  return {errc::device_lost, fmt::format("device '{}' is lost", device.name)};
}

agent_ref::behavior_type agent(agent_ref::pointer self, const device_ref& device,
                               const std::shared_ptr<waiters>& waiting, const device_info& info) {
  self->monitor(device);
  self->set_down_handler([=](const caf::down_msg&) { waiting->lose(lost(info)); });
  const entry<waiters> in(*waiting);
  return {
      in([=](const plan_installed& answer) { waiting->on(answer); }),
      [](const chunk_ended&) {}, // only who sends `run_chunks` is told so
      in([=](tensor_fetched& answer) { waiting->on(answer); }),
      in([=](tensor_put& answer) { waiting->on(answer); }),
      in([=](const stats_wanted& wanted) {
        const auto tell = [done = wanted.done](const device_stats& stats) { capture([&] { done(stats); }); };
        self->request(device, lent_stats_timeout, query_stats{})
            .then([tell](const device_stats& stats) { tell(stats); }, [tell](const caf::error&) { tell({}); });
      }),
  };
}

class lent_device final : public remote::served_device {
public:
  lent_device(caf::actor_system& system, const device_handle& handle)
      : info_(handle.info), device_(handle.actor), waiting_(std::make_shared<waiters>()),
        agent_(system.spawn(agent, device_, waiting_, info_)) {}
  ~lent_device() override { caf::anon_send_exit(agent_, caf::exit_reason::user_shutdown); }
  lent_device(const lent_device&) = delete;
  lent_device& operator=(const lent_device&) = delete;

  const device_info& info() const override { return info_; }

  void install(bound_plan_ptr bound, device_index self, std::function<void(failure)> done) override {
    const bool lives = waiting_->add(bound->id, std::move(done));
    tell(lives, install_plan{std::move(bound), self});
  }
  void retire(uint64_t bound_plan) override { tell(true, retire_plan{bound_plan}); }
  void run(chunk_work work, chunk_done done) override {
    const std::pair which(work.execution, work.chunk);
    const bool lives = waiting_->add(which, std::move(done));
    // Without the agent, which would be one more thread on the way back.
    tell(lives, run_lent{std::move(work),
                         [waiting = waiting_, which](chunk_result result) { waiting->on(which, std::move(result)); }});
  }
  void end(execution_id execution) override { tell(true, end_execution{execution}); }
  void fetch(device_tensor value, fetch_done done) override {
    const uint64_t ticket = waiting_->add(std::move(done));
    tell(ticket != 0, fetch_tensor{std::move(value), ticket, {}});
  }
  void put(tensor value, std::function<void(device_tensor, failure)> done) override {
    const bool lives = waiting_->add(std::move(done));
    tell(lives, put_tensor{std::move(value)});
  }
  void stats(told_stats done) override { caf::anon_send(agent_, stats_wanted{std::move(done)}); }

private:
  template <class Message>
  void tell(bool lives, Message&& m) {
    if (lives)
      caf::send_as(agent_, device_, std::forward<Message>(m));
    else
      // The answer that `add` has just noted came too late for the first `lose`.
      waiting_->lose(lost(info_));
  }

  const device_info info_;
  const device_ref device_;
  const std::shared_ptr<waiters> waiting_;
  const agent_ref agent_;
};

} // namespace

remote::served_device_ptr lend(caf::actor_system& system, const device_handle& handle) {
  const forgotten_logger behind;
  return std::make_shared<lent_device>(system, handle);
}

} // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::stats_wanted)
