// Callbacks beside futures: each runs once, on a thread that neither devices nor actors need, whatever happens to run
// and engine.

#include "support/bound_values.hpp"
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

const tensor six = floats({2, 3}, {-1, 2, 3, 4, 5, 6});

engine scripted_engine(fault_script script) {
  return engine_of({reference("ref", script)});
}

/// Outcomes of callbacks, and the threads that they came on.
class outcomes {
public:
  run_callback collector() {
    return [this](run_outcome o) {
      const std::lock_guard lock(mutex_);
      all_.push_back(std::move(o));
      threads_.push_back(std::this_thread::get_id());
      changed_.notify_all();
    };
  }
  /// Waits until there are `count`; returns whether there were in time.
  bool wait(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return all_.size() >= count; });
  }
  std::vector<run_outcome> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  std::vector<std::thread::id> threads() const {
    const std::lock_guard lock(mutex_);
    return threads_;
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<run_outcome> all_;
  std::vector<std::thread::id> threads_;
};

int thread_count() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Threads:"))
      return std::stoi(line.substr(8));
  return 0;
}

errc code_of(const run_outcome& o) {
  REQUIRE(o.failure);
  return o.failure->code();
}

} // namespace

TEST_CASE("a thousand runs in flight end in a thousand callbacks on one thread more", "[actors][callbacks]") {
  engine e = scripted_engine({.delay = 100us});
  const session s = e.load(chain(1));
  s.run({{"x", six}}); // starts the actors that a session needs at first
  const int before = thread_count();
  int most = 0;
  outcomes seen;
  for (int i = 0; i < 1000; ++i) {
    s.run_async({{"x", floats({2, 3}, {float(i), 0, 0, 0, 0, 0})}}, {}, seen.collector());
    most = std::max(most, thread_count());
  }
  REQUIRE(seen.wait(1000));
  CHECK(most <= before + 1);
  const auto all = seen.all();
  CHECK(all.size() == 1000);
  for (const run_outcome& o : all)
    REQUIRE(!o.failure);
  const auto threads = seen.threads();
  CHECK(std::count(threads.begin(), threads.end(), threads[0]) == 1000);
  CHECK(threads[0] != std::this_thread::get_id());
  CHECK(s.stats().runs == 1001);
}

TEST_CASE("a callback gets the result that the future would give", "[actors][callbacks]") {
  engine e({.devices = {"cpu"}});
  const session s = e.load(chain(3));
  outcomes seen;
  s.run_async({{"x", six}}, {.trace = true}, seen.collector());
  REQUIRE(seen.wait(1));
  const run_result want = s.run({{"x", six}});
  const run_outcome got = seen.all()[0];
  REQUIRE(!got.failure);
  CHECK(got.result.trace);
  const tensor &a = got.result.outputs.begin()->second, &b = want.outputs.begin()->second;
  CHECK(std::ranges::equal(a.values<float>(), b.values<float>()));
  s.run_async({{"y", six}}, {}, seen.collector());
  REQUIRE(seen.wait(2));
  CHECK(code_of(seen.all()[1]) == errc::invalid_input);
  CHECK(seen.all()[1].result.outputs.empty());
  CHECK(thrown_by([&] { s.run_async({{"x", six}}, {}, nullptr); }).code() == errc::invalid_argument);
}

TEST_CASE("a callback may wait for other runs, and keeps neither devices nor actors from working",
          "[actors][callbacks]") {
  engine e({.devices = {"cpu"}, .scheduler_threads = 1});
  const session s = e.load(chain(2));
  std::promise<void> others_ran;
  std::promise<size_t> inside;
  s.run_async({{"x", six}}, {}, [&](const run_outcome&) {
    others_ran.get_future().wait(); // this thread is held while the caller's runs go on
    const size_t outputs = s.run({{"x", six}}).outputs.size() + e.load(chain(1)).run({{"x", six}}).outputs.size();
    s.run_async({{"x", six}}, {},
                [&, outputs](const run_outcome& o) { inside.set_value(outputs + o.result.outputs.size()); });
  });
  for (int i = 0; i < 10; ++i)
    CHECK(s.run({{"x", six}}).outputs.size() == 1);
  others_ran.set_value();
  CHECK(inside.get_future().get() == 3);
}

TEST_CASE("an exception of a callback ends there and is reported once", "[actors][callbacks]") {
  std::ostringstream told;
  std::streambuf* const terminal = std::cerr.rdbuf(told.rdbuf());
  {
    engine e({.devices = {"cpu"}});
    const session s = e.load(chain(1));
    outcomes seen;
    s.run_async({{"x", six}}, {}, [](const run_outcome&) { throw std::runtime_error("too bad"); });
    s.run_async({{"x", six}}, {}, [](const run_outcome&) { throw 1; });
    s.run_async({{"x", six}}, {}, seen.collector());
    CHECK(seen.wait(1));
    CHECK(s.run({{"x", six}}).outputs.size() == 1);
  }
  std::cerr.rdbuf(terminal);
  CHECK(told.str().find("too bad") != std::string::npos);
  CHECK(std::ranges::count(told.str(), '\n') == 1);
}

TEST_CASE("an engine that closes has called all callbacks back", "[actors][callbacks]") {
  outcomes seen;
  std::optional<session> left;
  {
    engine e = scripted_engine({.stall_at = 0});
    left = e.load(chain(2));
    for (int i = 0; i < 20; ++i)
      left->run_async({{"x", six}}, {}, seen.collector());
  }
  const auto all = seen.all();
  REQUIRE(all.size() == 20);
  for (const run_outcome& o : all)
    CHECK(code_of(o) == errc::cancelled);
  CHECK(thrown_by([&] { left->run_async({{"x", six}}, {}, seen.collector()); }).code() == errc::cancelled);
  CHECK(seen.all().size() == 20);
}

TEST_CASE("the last handles of session and engine may die in a callback", "[actors][callbacks]") {
  outcomes seen;
  std::promise<void> gone;
  {
    auto e = std::make_shared<engine>(scripted_engine({.delay = 1ms}));
    auto s = std::make_shared<session>(e->load(chain(2)));
    for (int i = 0; i < 3; ++i)
      s->run_async({{"x", six}}, {}, seen.collector());
    s->run_async({{"x", six}}, {}, [&gone, e, s](const run_outcome&) mutable {
      s.reset();
      e.reset(); // closes the engine on its own callbacks' thread, or leaves it to the caller's scope
      gone.set_value();
    });
  }
  gone.get_future().wait();
  CHECK(seen.wait(3));
  CHECK(seen.all().size() == 3);
}

TEST_CASE("a cancelled or late run is called back with its reason", "[actors][callbacks][C7]") {
  engine e = scripted_engine({.stall_at = 0});
  const session s = e.load(chain(2));
  outcomes seen;
  std::stop_source stop;
  s.run_async({{"x", six}}, {.cancel = stop.get_token()}, seen.collector());
  stop.request_stop();
  REQUIRE(seen.wait(1));
  CHECK(code_of(seen.all()[0]) == errc::cancelled);
  s.run_async({{"x", six}}, {.timeout = 20ms}, seen.collector());
  REQUIRE(seen.wait(2));
  CHECK(code_of(seen.all()[1]) == errc::timeout);
}
