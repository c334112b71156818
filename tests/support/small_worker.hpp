// A worker (remote::host_service) whose devices answer, and whose links deliver and end, when a test says so. Between
// two calls nothing moves: each call waits until the threads of the worker wait for somebody.
#pragma once

#include "remote/host_service.hpp"
#include "support/ordered_device.hpp"

namespace troupe::test {

/// See the top of this file.
class small_worker {
public:
  small_worker(size_t devices, int64_t memory);
  /// Ends all links and lets go of all orders, and waits until nothing is left of the worker.
  ~small_worker();
  small_worker(const small_worker&) = delete;
  small_worker& operator=(const small_worker&) = delete;

  remote::host_service& service() { return *service_; }
  static device_info info(size_t device, int64_t memory);

  /// A session opens a link; returns whether the worker takes it. Sessions are numbered in this order.
  bool open(size_t session);
  /// A session says something.
  void say(size_t session, const remote::message& m);
  /// Returns what the worker has said to a session since, but for what `serve` answers.
  std::vector<remote::message> take_said(size_t session);
  /// Whether the worker has asked for pieces, or for where a weight is, or for proofs.
  bool has_asked(size_t session) const;
  /// A session answers all that; pieces until their values are complete.
  void serve(size_t session, const remote::piece_source& offers, const remote::piece_source& values);
  /// Whether the worker has ended the link.
  bool has_closed(size_t session) const;
  /// The worker hears that the link has ended.
  void end(size_t session);

  /// The orders that a device has not answered, in words, the first one first.
  std::vector<std::string> orders(size_t device) const;
  bool can_fail(size_t device) const;
  /// A device answers its first order.
  void answer(size_t device, bool fails);
  /// What a device has: plans, and executions that have not ended.
  std::string held_by(size_t device) const;

  /// Whether the worker can be destroyed while the test still knows which of its threads go on.
  bool may_end_service() const;
  /// The worker's owner ends it: its service is destroyed.
  void end_service();
  bool has_ended() const { return !service_; }
  /// Returns what no device or link may see.
  std::vector<std::string> problems() const;
  /// Returns whether within ten seconds all links have been let go of, and all that sessions held.
  bool await_nothing_left();

private:
  class watched_link;

  /// Waits until each thread that makes plans has ended its work or asks for something.
  void await_quiet();
  /// Waits until they sleep: what a job holds is let go of after its last message, and other sessions may find it until
  /// then.
  void await_sleep();
  void answer_question(size_t session, const remote::message& asked, const remote::piece_source& offers,
                       const remote::piece_source& values);

  const std::shared_ptr<worker_watch> watch_;
  std::vector<std::shared_ptr<ordered_device>> devices_;
  std::unique_ptr<remote::host_service> service_;
  std::map<size_t, std::shared_ptr<watched_link>> links_; // until the worker has heard of their ends
  std::vector<std::weak_ptr<watched_link>> all_links_;
};

} // namespace troupe::test
