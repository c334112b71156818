// The way from a worker to one session, and what the session may have on the worker.
#pragma once

#include "remote/host_service.hpp"
#include "remote/session_budget.hpp"

namespace troupe::remote {

/// See the top of this file. Thread-safe.
class session_line {
public:
  /// The worker's log calls the session `name`.
  session_line(std::shared_ptr<shared_service> shared, link_ptr connection, std::string name)
      : shared_(std::move(shared)), link_(std::move(connection)), name_(std::move(name)), room_(shared_->room) {}

  session_budget& budget() { return budget_; }
  value_room::share& room() { return room_; }
  /// Gives back to the budget what the message ends.
  void say(const message& m) {
    budget_.give_back(m);
    link_->send(encode(m));
  }
  /// Tells the worker's log what has happened to the session.
  void log(const std::string& event, service_options::facts facts) const {
    facts.emplace(facts.begin(), "session", name_);
    shared_->options.log(event, facts);
  }
  /// Ends the link, because of what the session has said.
  void refuse(const failure& why) {
    log("refused", {{"why", why.message}});
    link_->close();
  }
  void receive(link_handler handler) { link_->receive(std::move(handler)); }
  void close() { link_->close(); }
  /// The link has ended: what other workers are asked for on the session's behalf is stopped.
  void end() { ended_.request_stop(); }
  std::stop_token ended() const { return ended_.get_token(); }

private:
  const std::shared_ptr<shared_service> shared_;
  const link_ptr link_;
  const std::string name_;
  value_room::share room_;
  session_budget budget_;
  std::stop_source ended_;
};

} // namespace troupe::remote
