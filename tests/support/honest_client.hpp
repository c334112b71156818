// A session that runs a small model on a worker all the time, and notes how long each run takes and whether it is
// right.
#pragma once

#include "base/quantile.hpp"
#include "support/small_models.hpp"
#include "troupe/engine.hpp"

#include <atomic>
#include <thread>

namespace troupe::test {

class honest_client {
public:
  /// The client's runs while a test did something else.
  struct phase {
    std::string name;
    std::vector<double> ms; // of each run
    size_t wrong = 0;       // or failed
  };

  /// Calls the worker at this port of the loopback.
  honest_client(uint16_t port, const host_credentials& who);
  ~honest_client() { stop(); }
  honest_client(const honest_client&) = delete;
  honest_client& operator=(const honest_client&) = delete;

  void begin_phase(const std::string& name);
  void stop();
  /// After `stop`.
  const std::vector<phase>& phases() const { return phases_; }
  const std::string& problem() const { return problem_; }

  /// A session that comes, runs the model three times and leaves.
  static void visit(uint16_t port, const host_credentials& who);

private:
  void work();
  std::string run();

  engine engine_;
  tensor x_;
  std::vector<float> expected_;
  session session_;
  std::mutex mutex_; // guards `phases_`
  std::vector<phase> phases_;
  std::string problem_; // the first
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

} // namespace troupe::test
