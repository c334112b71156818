// Hours of work over two workers, while these come and go: troupe_soak SECONDS [SEED [INTERVAL]]
//
// Callers run a model cut over all devices, bound sessions that end and begin again, requests of a session's queue with
// and without time limits, and models that are loaded, run once and dropped. Meanwhile the first worker is killed,
// drained or stopped for a while, and begins again; the second one lives, and loses its connections. Every INTERVAL
// seconds (default 600) all pause, and a line says how much memory, how many descriptors and how many threads this
// process and the second worker have then.
//
// Exit status 1 if an answer was wrong, a run failed that was not to, a host did not come back, or what is held grew
// after the first interval: memory by more than a tenth and 32 MiB, descriptors or threads by more than two.
#include "actors/engine_access.hpp"
#include "base/elapsed.hpp"
#include "support/relay.hpp"
#include "support/summing_models.hpp"
#include "support/worker_process.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <shared_mutex>

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr auto patience = 60s;
const shape dims{32, 500};

/// What a process holds.
struct held {
  double mib = 0;
  int descriptors = 0, threads = 0;
};

int entries_of(const std::string& folder) {
  return static_cast<int>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

held held_by(pid_t process) {
  const std::string folder = fmt::format("/proc/{}", process);
  held h{.descriptors = entries_of(folder + "/fd"), .threads = entries_of(folder + "/task")};
  std::ifstream status(folder + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:"))
      h.mib = std::stod(line.substr(6)) / 1024;
  return h;
}

bool has_grown(const held& from, const held& to) {
  return to.mib > from.mib * 1.1 + 32 || to.descriptors > from.descriptors + 2 || to.threads > from.threads + 2;
}

/// Returns a model whose output is its input, if that is positive.
graph long_way(int nodes, symbolic_shape shapes) {
  test::graph_builder b;
  value_id v = b.input("x", std::move(shapes));
  for (int i = 0; i < nodes; ++i)
    v = b.op(i % 2 == 0 ? "Relu" : "Abs", {v});
  b.output(v);
  return b.g;
}

bool is_all(const tensor& t, float value) {
  return test::same(t, test::filled(dims, value));
}

class soak {
public:
  explicit soak(uint64_t seed) : random_(seed) {}

  /// Works for so long; returns whether all went well.
  bool run(std::chrono::seconds total, std::chrono::seconds interval) {
    std::vector<std::jthread> threads;
    for (const auto work : {&soak::run_cut, &soak::step, &soak::submit, &soak::come_and_go})
      threads.emplace_back([this, work] {
        while (!over_) {
          for (; pausing_; std::this_thread::sleep_for(10ms)) {
          }
          const std::shared_lock at_work(pause_);
          const failure why = capture([&] { (this->*work)(); });
          if (why.failed())
            blame(why.message);
        }
      });
    const auto end = clock_type::now() + total;
    for (auto next = clock_type::now() + interval; clock_type::now() < end; next += interval) {
      while (clock_type::now() < std::min(next, end))
        make_trouble();
      look();
    }
    over_ = true;
    return bad_ == 0;
  }

private:
  // -- callers

  void run_cut() {
    const run_result r = cut_.run({{"x", test::filled(dims, 1)}});
    expect(is_all(r.outputs.begin()->second, 1), "a cut run");
  }

  void step() {
    bound_session sum = states_.bind({{"next0", "state0"}, {"next1", "state1"}, {"next2", "state2"}});
    for (int n = 1; n <= 20; ++n) {
      named_tensors inputs{{"x", test::filled(dims, 1)}};
      for (int i = 0; n == 1 && i < 3; ++i)
        inputs[fmt::format("state{}", i)] = test::filled(dims, 0);
      expect(is_all(sum.run(inputs).outputs.at("y"), static_cast<float>(3 * n)), "a step");
    }
  }

  void submit() {
    std::vector<std::future<run_result>> answers;
    for (int i = 0; i < 30; ++i)
      answers.push_back(rows_.submit({{"x", test::filled(dims, static_cast<float>(i))}},
                                     {.timeout = i % 10 == 9 ? 1ms : 0ms})); // some are to be late
    for (int i = 0; i < 30; ++i)
      try {
        expect(is_all(answers[static_cast<size_t>(i)].get().outputs.begin()->second, static_cast<float>(i)),
               "a request");
      } catch (const error& e) {
        if (e.code() != errc::timeout || i % 10 != 9)
          throw;
      }
  }

  void come_and_go() {
    const session s = engine_.load(long_way(6, to_symbolic(dims)), alternating());
    expect(is_all(s.run({{"x", test::filled(dims, 2)}}).outputs.begin()->second, 2), "a session that comes and goes");
  }

  void expect(bool right, const char* what) {
    ++answers_;
    if (!right)
      blame(fmt::format("{} has a wrong result", what));
  }

  void blame(const std::string& why) {
    ++bad_;
    fmt::print("wrong: {}\n", why);
    std::fflush(stdout);
  }

  // -- what is done to the workers

  void make_trouble() {
    std::this_thread::sleep_for(std::chrono::milliseconds(500 + random_() % 3000));
    ++troubles_;
    switch (random_() % 4) {
      case 0: first_->kill_now(); return restart();
      case 1:
        first_->ask_to_leave();
        std::this_thread::sleep_for(200ms);
        return restart();
      case 2:
        first_->hang();
        std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 3000));
        return first_->go_on();
      default: return way_.cut();
    }
  }

  void restart() {
    const uint16_t port = first_->port();
    first_ = nullptr; // ends it, if it still lives
    std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 1000));
    first_ = std::make_unique<test::worker_process>(options_, port);
  }

  // -- what is held

  void look() {
    pausing_ = true; // else the callers, one after the other, would always hold the lock
    const std::unique_lock paused(pause_);
    pausing_ = false;
    const auto begin = clock_type::now();
    const auto is_lost = [](const host_summary& h) { return h.lost; };
    for (auto hosts = engine_.hosts(); std::any_of(hosts.begin(), hosts.end(), is_lost); hosts = engine_.hosts()) {
      if (clock_type::now() - begin > patience)
        return blame("a host does not come back: " + std::find_if(hosts.begin(), hosts.end(), is_lost)->problem);
      std::this_thread::sleep_for(50ms);
    }
    std::this_thread::sleep_for(2s); // threads that end, memory that is given back
    const std::array<held, 2> now{held_by(getpid()), held_by(second_.pid())};
    fmt::print("{:6.0f} s: {} answers, {} troubles, {} wrong", milliseconds_since(begun_) / 1e3, answers_.load(),
               troubles_, bad_.load());
    for (size_t i = 0; i < now.size(); ++i)
      fmt::print("; {}: {:.0f} MiB, {} descriptors, {} threads", i == 0 ? "this process" : "the worker", now[i].mib,
                 now[i].descriptors, now[i].threads);
    fmt::print("\n");
    std::fflush(stdout);
    if (!first_look_)
      first_look_ = now;
    for (size_t i = 0; i < now.size(); ++i)
      if (has_grown((*first_look_)[i], now[i]))
        blame(i == 0 ? "this process has grown" : "the worker has grown");
  }

  static session_options alternating() {
    return {.policy = placement_policy::round_robin, .strategy = strategy::none, .fuse = false};
  }

  std::mt19937_64 random_;
  const std::vector<std::string> options_{"--devices", "cpu"};
  std::unique_ptr<test::worker_process> first_ = std::make_unique<test::worker_process>(options_);
  test::worker_process second_{options_};
  test::relay way_{second_.port()};
  engine engine_{
      {.devices = {"cpu"},
       .hosts = {fmt::format("first=127.0.0.1:{}", first_->port()), fmt::format("second=127.0.0.1:{}", way_.port())},
       .credentials = {.insecure = true}}};
  const session cut_ = engine_.load(long_way(12, to_symbolic(dims)), alternating());
  const session states_ = engine_.load(test::summing_states(3, dims), alternating());
  const session rows_ =
      engine_.load(long_way(3, {dim::symbol("rows"), dims[1]}), {.strategy = strategy::data_parallel});
  const clock_type::time_point begun_ = clock_type::now();
  std::shared_mutex pause_; // callers hold it while they work
  std::atomic<bool> over_ = false, pausing_ = false;
  std::atomic<int64_t> answers_ = 0, bad_ = 0;
  int64_t troubles_ = 0;
  std::optional<std::array<held, 2>> first_look_;
};

} // namespace

int main(int argc, char** argv) {
  const std::chrono::seconds total(argc > 1 ? std::atoi(argv[1]) : 60);
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::chrono::seconds interval(argc > 3 ? std::atoi(argv[3]) : 600);
  const bool well = soak(seed).run(total, interval);
  fmt::print("{}\n", well ? "all went well" : "something went wrong");
  return well ? 0 : 1;
}
