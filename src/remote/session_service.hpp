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

#include "remote/served_executions.hpp"
#include "remote/session_installs.hpp"
#include "remote/session_values.hpp"

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
  void say(const message& m) { line_->say(m); }
  void close() { line_->close(); }

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

  void on_frame(const frame& f);
  void on(message& m);
  void on_closed(const std::string& why);

  // -- chunks (session_chunks.cpp)
  void run(run_chunk order);
  served_chunk_ptr make_chunk(const run_chunk& order);
  void take_uploads(const served_chunk_ptr& chunk, const bound_plan& bound, std::vector<sent_value> uploads);
  void take_upload(const served_chunk_ptr& chunk, size_t i, sent_value value, const expected_value& expected);
  void took(const served_chunk_ptr& chunk, size_t i, tensor value, const failure& why);
  void pump(uint32_t device);
  void submit(const served_chunk_ptr& chunk);
  void ended(const served_chunk_ptr& chunk, chunk_result result);
  void stop(uint64_t execution);
  void end(const end_chunks& order);
  void pump_all();

  // -- values
  void fetch(const fetch_kept& question);
  void put(put_value order);

  execution_id local(uint64_t execution) const { return number_ << 40 | execution; }

  const std::shared_ptr<shared_service> shared_;
  const uint64_t number_;
  const std::function<void()> when_ended_;
  const std::shared_ptr<piece_puller> puller_;
  const value_source from_session_;
  const std::shared_ptr<session_line> line_;
  session_values values_;
  const std::shared_ptr<session_installs> installs_;
  std::mutex mutex_; // guards the rest
  bool ended_ = false;
  std::vector<device_queue> queues_; // by device
  served_executions executions_;
};

} // namespace troupe::remote
