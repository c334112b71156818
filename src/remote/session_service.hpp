// One session on a worker: its plans, its chunks on the worker's devices, the values that are kept for it.
//
// Chunks of a device run in the order in which they come; one whose values are still on their way lets those after it
// wait, while their values are pulled too. Which chunk may come, its plan says (served_executions.hpp). Numbers that a
// session gives (plans, bound plans, executions) are its own: no message of one session reaches what belongs to
// another. A message that does not fit what the session has said before ends the link: the session, not the worker, is
// at fault. What is released, stopped or ended twice is passed over.
//
// Thread-safe: frames come on the link's thread, answers of devices on theirs. Nothing is called under the lock.
#pragma once

#include "remote/host_service.hpp"
#include "remote/lent_plan.hpp"
#include "remote/plan_shelf.hpp"
#include "remote/served_executions.hpp"
#include "remote/session_budget.hpp"
#include "remote/values.hpp"

namespace troupe::remote {

class session_service : public std::enable_shared_from_this<session_service> {
public:
  /// `number` is unique in the worker; `ended` is called once, last.
  session_service(std::shared_ptr<shared_service> shared, link_ptr connection, std::string name, uint64_t number,
                  std::function<void()> ended);
  ~session_service();
  session_service(const session_service&) = delete;
  session_service& operator=(const session_service&) = delete;

  /// Begins to listen.
  void start();
  void say(const message& m) {
    budget_.give_back(m);
    link_->send(encode(m));
  }
  void close() { link_->close(); }

private:
  /// A chunk that waits for its values or for its turn, or runs.
  struct served_chunk {
    served_executions::place at;
    lent_plan_ptr plan;
    chunk_work work;
    std::vector<wanted_value> wanted;
    std::vector<held_memory> held; // of its uploads
    size_t missing = 0;            // values on their way
    failure why;                   // of values that did not come
  };
  using served_chunk_ptr = std::shared_ptr<served_chunk>;
  struct device_queue {
    std::deque<served_chunk_ptr> waiting;
    bool is_pumping = false, again = false;
  };
  struct kept_entry {
    value_ref value;
    held_memory held;
    bool is_offered = false; // under its key, by this session
  };
  using lent_key = std::pair<uint64_t, uint32_t>; // the session's number of a bound plan, and a device

  void on_frame(const frame& f);
  void on(message& m);
  void on_closed(const std::string& why);
  void release_all();

  // -- plans
  void install(remote::install order);
  void make_and_install(const remote::install& order);
  void finish_install(const remote::install& order, lent_plan_ptr made, const failure& why);
  void retire(const remote::retire& order);
  /// Ends the link, because of what the session has said.
  void refuse(const failure& why);

  // -- chunks (session_chunks.cpp)
  void run(run_chunk order);
  lent_plan_ptr lent(uint64_t bound_plan, uint32_t device) const;
  served_chunk_ptr make_chunk(const run_chunk& order);
  void take_uploads(const served_chunk_ptr& chunk, const bound_plan& bound, std::vector<sent_value> uploads);
  void take_upload(const served_chunk_ptr& chunk, size_t i, sent_value value, const expected_value& expected);
  void took(const served_chunk_ptr& chunk, size_t i, tensor value, const failure& why);
  void pump(uint32_t device);
  void submit(const served_chunk_ptr& chunk);
  void ended(const served_chunk_ptr& chunk, chunk_result result);
  void keep_all(const served_chunk& chunk, std::vector<sent_value>& values);
  /// Keeps a value as long as the session may ask for it, and returns what it is told: with its bytes, if they
  /// fit in `room`. `held`: its memory, if that is held already.
  sent_value keep(const wanted_value& wanted, const value_ref& made, int64_t room = inline_bytes,
                  held_memory held = nullptr);
  void stop(uint64_t execution);
  void end(const end_chunks& order);
  void pump_all();

  // -- values
  /// Holds memory for a value that comes; throws `errc::out_of_memory`.
  held_memory hold(const sent_value& value);
  value_ref kept(const hash128& key);
  /// Keeps a value, whose memory is held, and offers its bytes, if they are in this host's memory.
  void keep(const hash128& key, value_ref value, const tensor& blob, held_memory held);
  void forget(const hash128& key);
  void fetch(const fetch_kept& question);
  void put(put_value order);

  served_device& device(uint32_t index) const;
  execution_id local(uint64_t execution) const { return number_ << 40 | execution; }

  const std::shared_ptr<shared_service> shared_;
  const link_ptr link_;
  const std::string name_;
  const uint64_t number_;
  const std::function<void()> when_ended_;
  const std::shared_ptr<piece_puller> puller_;
  const value_source from_session_;
  const std::shared_ptr<session_memory> memory_;
  value_room::share room_;
  session_budget budget_;
  mutable std::mutex mutex_;
  bool ended_ = false;
  std::map<lent_key, lent_plan_ptr> lent_;                     // null while one is being installed
  std::map<lent_key, std::weak_ptr<const lent_plan>> retired_; // chunks may still run by them
  std::vector<device_queue> queues_;                           // by device
  served_executions executions_;
  std::unordered_map<hash128, kept_entry> values_;
  weight_loader weights_;
  plan_shelf plans_; // its thread ends before all of the above
};

} // namespace troupe::remote
