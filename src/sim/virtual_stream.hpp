// Requests in virtual time: a strategy's stream machine (strategy/stream_machine.hpp) over virtual sessions, or one
// session alone.
#pragma once

#include "sim/virtual_session.hpp"
#include "strategy/prepare.hpp"
#include "strategy/stream_forecast.hpp"
#include "strategy/stream_machine.hpp"
#include "troupe/simulation.hpp"

namespace troupe::sim {

/// How a request went.
struct request_record {
  seconds came = 0, answered = 0;
  failure why;
};

/// See the top of this file. Not thread-safe.
class virtual_stream {
public:
  /// `inputs`: of each request; they must outlive it.
  virtual_stream(virtual_world& world, const model_ptr& m, prepared_replicas replicas, const named_tensors& inputs);
  virtual_stream(const virtual_stream&) = delete;
  virtual_stream& operator=(const virtual_stream&) = delete;

  /// Lets requests come as stated, and all happen that follows.
  std::vector<request_record> play(const simulation_options& how);

private:
  struct piece {
    std::vector<piece_part> parts;
    size_t replica = 0;
  };

  void schedule(const arrivals& how, size_t requests, uint64_t seed);
  void schedule(const simulated_loss& loss);
  void schedule(const simulated_speed& change);
  /// Returns the first device of that name; throws `errc::invalid_argument` if there is none.
  size_t find_device(const std::string& name, std::string_view for_what) const;
  void come();
  /// Returns the inputs of request `number`.
  const named_tensors& inputs_of_request(size_t number);
  /// Returns within what time it must be answered; 0: no limit.
  seconds deadline_of(size_t number) const;
  void answered(size_t request, const failure& why);
  void lose(size_t device);
  void bring_back(size_t device);

  // -- with a strategy
  template <class Event>
  void tell(Event&& event);
  void carry_out(start_piece& what);
  void carry_out(answer_request& what);
  void carry_out(wake_at& what);
  void ended(piece_id id, const run_answer& answer);
  /// Returns the inputs of a request with `rows` rows.
  const named_tensors& inputs_of(int64_t rows);

  virtual_world& world_;
  const model_ptr model_;
  const named_tensors& inputs_;
  std::vector<replica_set> sets_;
  std::vector<replica_figures> predicted_;
  std::vector<std::unique_ptr<virtual_session>> sessions_; // by replica
  std::shared_ptr<const model_rows> rows_;
  std::optional<stream_machine> machine_; // none without a strategy
  std::map<int64_t, named_tensors> by_rows_;
  std::unordered_map<request_id, size_t> requests_; // of the machine
  std::unordered_map<piece_id, piece> pieces_;
  std::vector<request_record> records_;
  const arrivals* listed_ = nullptr; // what is said of each request; null for those that warm up
  size_t to_come_ = 0;               // requests of a closed loop for which nothing is scheduled yet
};

} // namespace troupe::sim
