// Workers are killed, stopped, cut off and slowed down while a model runs over them: troupe_chaos ROUNDS SEED [WORKERS]
//
// Each round begins a run, does something bad to a worker a random time later, and waits for the run's end, which must
// be the right result: this process has a CPU, so every run fits on what is left. Each fifth round runs a session with
// bound state on all devices instead: it must end with one error that names the host, or go on with the right values if
// the host was not lost, and a new one must work. Then the host must come back. Prints what was in flight there when it
// happened, and how long runs and hosts took to come back. Exit status 1 if any result was wrong, any run failed,
// anything took longer than the deadline, or, from 300 rounds on, if less than 30 % met something in flight or fewer
// than 30 stopped workers went on after they had been declared lost.
#include "actors/engine_access.hpp"
#include "base/elapsed.hpp"
#include "base/quantile.hpp"
#include "support/certificate_folder.hpp"
#include "support/relay.hpp"
#include "support/small_models.hpp"
#include "support/summing_models.hpp"
#include "support/worker_process.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <future>
#include <random>
#include <set>

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr auto deadline = 30s;
constexpr int bound_steps = 4;

enum class trouble { kill, hang, late_return, cut, stall, slow };
constexpr std::array<const char*, 6> names{"kill -9", "SIGSTOP, goes on", "SIGSTOP, returns late", "cut", "stall",
                                           "slow"};

/// A worker on a separate host. All others reach it through a relay, and know it by the relay's address.
struct site {
  site(const test::host_place& at, const std::string& own_address, const std::string& weights,
       const host_credentials& who)
      : where(at), options{"--devices",     "cpu",       "--weights", weights,    "--tls-cert",
                           who.certificate, "--tls-key", who.key,     "--tls-ca", who.ca},
        near(own_address) {}

  void restart() {
    const uint16_t port = worker->port();
    worker = nullptr;
    worker = std::make_unique<test::worker_process>(options, port, where);
  }

  const test::host_place& where;
  const std::vector<std::string> options;
  const std::string near;
  std::unique_ptr<test::worker_process> worker = std::make_unique<test::worker_process>(options, 0, where);
  test::relay way{worker->port(), where.address, near};
};

/// How a run, or a session with bound state, ended.
struct outcome {
  std::string error; // empty: with the right result
  bool lost_state = false;
  double ms = 0;
};

[[noreturn]] void give_up(const char* what) {
  fmt::print("{} hangs\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

template <class T>
T await(std::future<T>& coming, const char* what) {
  if (coming.wait_for(deadline) != std::future_status::ready)
    give_up(what);
  return coming.get();
}

bool same(const tensor& got, const std::vector<float>& expected) {
  const auto values = got.values<float>();
  return std::equal(values.begin(), values.end(), expected.begin(), expected.end());
}

outcome run_once(const session& s, const tensor& x, const std::vector<float>& expected) {
  const auto begin = clock_type::now();
  auto running = s.run_async({{"x", x}});
  outcome o;
  try {
    if (!same(await(running, "a run").outputs.begin()->second, expected))
      o.error = "a wrong result";
  } catch (const error& e) {
    o.error = e.what();
  }
  o.ms = milliseconds_since(begin);
  return o;
}

/// A session whose state is on several hosts, step by step: its values are known.
class summing {
public:
  summing(engine& e, size_t count)
      : count_(count), model_(e.load(test::summing_states(count, {64, 4000}),
                                     {.policy = placement_policy::round_robin, .fuse = false})) {
    for (size_t i = 0; i < count; ++i)
      pairs_.push_back({next_.emplace_back(fmt::format("next{}", i)), fmt::format("state{}", i)});
  }

  /// The hosts that have state after the first step.
  using homes = std::set<std::string>;

  /// Runs steps until there were `least`, and `over` was set before the last one; says after the first one where the
  /// state is.
  outcome run(const std::atomic<bool>& over, int least, const std::function<void(const homes&)>& begun) const {
    outcome o;
    homes where;
    try {
      bound_session bound = model_.bind(pairs_);
      bool is_last = false;
      for (int step = 1; step <= least || !is_last; ++step) {
        is_last = over;
        const run_result r = bound.run(inputs(step == 1), {.keep = next_});
        if (!same(r.outputs.begin()->second, values(static_cast<float>(count_) * static_cast<float>(step))))
          o.error = "a wrong result";
        for (const auto& [name, value] : r.kept)
          where.insert(value->device().substr(0, value->device().find('/')));
        if (step == 1)
          begun(where);
      }
      for (const std::string& name : next_)
        if (bound.fetch(name).values<float>()[0] < static_cast<float>(least))
          o.error = "a wrong state";
    } catch (const error& e) {
      o.error = e.what();
      o.lost_state = e.code() == errc::device_lost;
      if (where.empty())
        begun(where);
    }
    return o;
  }

private:
  static std::vector<float> values(float each) { return std::vector<float>(64 * 4000, each); }
  named_tensors inputs(bool with_state) const {
    tensor ones(dtype::float32, {64, 4000}), zeros(dtype::float32, {64, 4000});
    std::fill_n(ones.mutable_data<float>(), ones.size(), 1.f);
    std::fill_n(zeros.mutable_data<float>(), zeros.size(), 0.f);
    named_tensors given{{"x", ones}};
    for (size_t i = 0; with_state && i < count_; ++i)
      given[pairs_[i].input] = zeros;
    return given;
  }

  const size_t count_;
  const session model_;
  std::vector<output_binding> pairs_;
  std::vector<std::string> next_;
};

class cluster {
public:
  cluster(const test::host_network& hosts, int workers, uint64_t seed)
      : random_(seed), sites_(open(hosts, workers)), engine_(options_for(sites_)) {
    for (int64_t i = 0; i < x_.size(); ++i)
      x_.mutable_data<float>()[i] = 0.001f * static_cast<float>(i % 4001) - 2;
    engine here({.devices = {"cpu"}});
    const run_result right = here.load(model_, {.fuse = false}).run({{"x", x_}});
    const auto values = right.outputs.begin()->second.values<float>();
    expected_.assign(values.begin(), values.end());
    std::vector<double> calm;
    for (int i = 0; i < 10; ++i)
      calm.push_back(run_once(session_, x_, expected_).ms);
    usual_ms_ = quantile(calm, 0.5);
  }

  double usual_ms() const { return usual_ms_; }

  /// Returns the errors; empty if there were none.
  std::vector<std::string> round(int number) {
    what_ = static_cast<trouble>(random_() % names.size());
    where_ = random_() % sites_.size();
    std::vector<std::string> wrong = number % 5 == 4 ? bound_round() : plain_round();
    if (!sites_[where_]->worker->is_alive()) {
      sites_[where_]->restart();
      trouble_over_ = clock_type::now();
    }
    wrong.push_back(heal());
    std::erase(wrong, "");
    for (std::string& error : wrong)
      error = fmt::format("{}, worker {}: {}", name(), where_, error);
    return wrong;
  }

  /// Prints the counts; returns whether they are enough.
  bool report(int rounds) {
    double in_flight = 0;
    for (const auto& [phase, count] : phases_) {
      fmt::print("{:20} {:4} ({:.0f} %)\n", phase, count, 100. * count / rounds);
      in_flight += phase == idle ? 0 : count;
    }
    fmt::print("over the usual time of a run, and until the host was back:\n");
    for (const auto& [what, ms] : extra_ms_)
      fmt::print("{:22} {:4} times; median {:5.0f} ms, most {:5.0f} ms; back: median {:5.0f} ms, most {:5.0f} ms\n",
                 what, ms.size(), quantile(ms, 0.5), quantile(ms, 1), quantile(back_ms_[what], 0.5),
                 quantile(back_ms_[what], 1));
    fmt::print("state was lost {} times of {}, told after median {:.0f} ms, most {:.0f} ms\n", told_ms_.size(),
               bound_rounds_, quantile(told_ms_, 0.5), quantile(told_ms_, 1));
    fmt::print("{} stopped workers went on after they had been declared lost\n", late_returns_);
    return rounds < 300 || (in_flight >= 0.3 * rounds && late_returns_ >= 30);
  }

private:
  using site_list = std::vector<std::unique_ptr<site>>;
  static constexpr const char* idle = "nothing in flight";

  site_list open(const test::host_network& hosts, int workers) {
    site_list all;
    for (int i = 0; i < workers; ++i)
      all.push_back(std::make_unique<site>(hosts.place(i), hosts.own_address(), keys_.file(fmt::format("weights{}", i)),
                                           keys_.of("worker")));
    return all;
  }
  engine_options options_for(const site_list& sites) {
    engine_options options{.devices = {"cpu"}, .credentials = keys_.of("session")};
    for (size_t i = 0; i < sites.size(); ++i)
      options.hosts.push_back(fmt::format("w{}={}:{}", i, sites[i]->near, sites[i]->way.port()));
    return options;
  }

  const char* name() const { return names[static_cast<size_t>(what_)]; }
  std::string host() const { return fmt::format("w{}", where_); }

  bool is_lost() const {
    for (const host_summary& h : engine_.hosts())
      if (h.name == host())
        return h.lost;
    return false;
  }

  std::vector<std::string> plain_round() {
    const auto wait = std::chrono::microseconds(random_() % static_cast<uint64_t>(usual_ms_ * 1200));
    auto running = std::async(std::launch::async, [&] { return run_once(session_, x_, expected_); });
    std::this_thread::sleep_for(wait);
    note_phase();
    make_trouble();
    trouble_over_ = clock_type::now();
    const outcome hit = running.get();
    extra_ms_[name()].push_back(hit.ms - usual_ms_);
    return {hit.error, run_once(session_, x_, expected_).error}; // the second on others, or late messages meet it
  }

  std::vector<std::string> bound_round() {
    ++bound_rounds_;
    std::atomic<bool> over{false};
    std::promise<summing::homes> begun;
    auto placed = begun.get_future();
    auto running = std::async(std::launch::async, [&] {
      return state_.run(over, bound_steps, [&](const summing::homes& where) { begun.set_value(where); });
    });
    const summing::homes homes = await(placed, "the first step of a session with bound state");
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % static_cast<uint64_t>(usual_ms_ * 1200)));
    note_phase();
    const auto begin = clock_type::now();
    const bool was_lost = make_trouble();
    trouble_over_ = clock_type::now();
    over = true;
    const outcome hit = await(running, "a session with bound state");
    std::string wrong;
    if (hit.lost_state && hit.error.find(host()) != std::string::npos)
      told_ms_.push_back(milliseconds_since(begin));
    else if (!hit.error.empty())
      wrong = fmt::format("bound state: {}", hit.error);
    else if (was_lost || !homes.contains(host()))
      wrong = was_lost ? "state on a lost host is still there" : "no state is on the host";
    auto again = std::async(std::launch::async, [&] { return state_.run(over, bound_steps, [](const auto&) {}); });
    const outcome next = await(again, "a new session with bound state");
    return {wrong, next.error.empty() ? "" : fmt::format("a new session: {}", next.error)};
  }

  void note_phase() {
    const remote::host_activity a = activity_of(engine_, host());
    ++phases_[a.pulls > 0 ? "transfer in flight" : a.chunks > 0 ? "chunk in flight" : idle];
  }

  void pause(uint64_t most_ms) { std::this_thread::sleep_for(std::chrono::milliseconds(random_() % most_ms)); }

  /// Does something bad, for a while if it is of that kind. Returns whether the host is certainly lost by it.
  bool make_trouble() {
    site& at = *sites_[where_];
    switch (what_) {
      case trouble::kill: at.worker->kill_now(); return true;
      case trouble::cut: at.way.cut(); return true;
      case trouble::hang:
      case trouble::late_return: {
        at.worker->hang();
        if (what_ == trouble::hang)
          pause(600);
        else
          for (const auto end = clock_type::now() + deadline; !is_lost() && clock_type::now() < end;)
            std::this_thread::sleep_for(5ms);
        const bool was_lost = is_lost();
        late_returns_ += was_lost;
        at.worker->go_on();
        return was_lost;
      }
      case trouble::stall:
        at.way.stall(true);
        pause(2000);
        at.way.stall(false);
        return false;
      case trouble::slow:
        at.way.set_rate(300000);
        pause(500);
        at.way.set_rate(0);
        return false;
    }
    return false;
  }

  /// Waits until all hosts are seen to be there again; returns the error if they are not.
  std::string heal() {
    for (const auto begin = clock_type::now();
         milliseconds_since(begin) < std::chrono::duration<double, std::milli>(deadline).count();
         std::this_thread::sleep_for(5ms)) {
      const auto hosts = engine_.hosts();
      if (std::any_of(hosts.begin(), hosts.end(), [](const host_summary& h) { return h.lost; }))
        continue;
      back_ms_[name()].push_back(milliseconds_since(trouble_over_));
      return "";
    }
    std::string text = "a host does not come back, its worker " + sites_[where_]->worker->last_words();
    for (const host_summary& h : engine_.hosts())
      text += fmt::format("{}: {}\n", h.name, h.lost ? h.problem : "there");
    return text;
  }

  std::mt19937_64 random_;
  const test::certificate_folder keys_{{"session", "worker"}};
  site_list sites_;
  engine engine_;
  const graph model_ = test::chain(60, {64, 4000});
  tensor x_{dtype::float32, {64, 4000}}; // 1 MB: pulled
  std::vector<float> expected_;
  session session_ = engine_.load(model_, {.policy = placement_policy::round_robin, .fuse = false});
  const summing state_{engine_, 2 * (sites_.size() + 1)};
  double usual_ms_ = 0;
  trouble what_{}; // of this round
  size_t where_ = 0;
  clock_type::time_point trouble_over_{};
  int late_returns_ = 0, bound_rounds_ = 0;
  std::map<std::string, int> phases_;
  std::map<std::string, std::vector<double>> extra_ms_, back_ms_;
  std::vector<double> told_ms_;
};

} // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 12;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const int workers = argc > 3 ? std::atoi(argv[3]) : 2;
  const test::host_network hosts(workers);
  fmt::print("{}\n", hosts.is_separate() ? "each worker in a network namespace of its own"
                                         : "all workers on the loopback: " + hosts.why_not());
  cluster c(hosts, workers, seed);
  fmt::print("seed {}, {} workers, {} rounds; undisturbed {:.1f} ms\n", seed, workers, rounds, c.usual_ms());
  std::fflush(stdout);
  int bad = 0;
  for (int round = 0; round < rounds; ++round)
    for (const std::string& wrong : c.round(round)) {
      ++bad;
      fmt::print("round {}: {}\n", round, wrong);
      std::fflush(stdout);
    }
  const bool enough = c.report(rounds);
  fmt::print("{} wrong{}\n", bad, enough ? "" : "; too little was in flight, or too few returned late");
  return bad == 0 && enough ? 0 : 1;
}
