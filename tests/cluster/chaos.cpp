// Workers are killed, stopped, cut off and slowed down while a model runs over them: troupe_chaos ROUNDS SEED [WORKERS]
//
// Each round begins a run, does something bad to a worker a random time later, and waits for the run's end, which must be the right result:
// this process has a CPU, so every run fits on what is left. Prints what was in flight there when it happened, and how long runs
// took to come back. Exit status 1 if any result was wrong, any run failed, or any took longer than the deadline.
#include "actors/engine_access.hpp"
#include "base/quantile.hpp"
#include "support/relay.hpp"
#include "support/small_models.hpp"
#include "support/worker_process.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <future>
#include <random>

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr auto deadline = 30s;

enum class trouble { kill, hang, late_return, cut, stall, slow };
constexpr std::array<const char*, 6> names{"kill -9", "SIGSTOP, goes on", "SIGSTOP, returns late", "cut", "stall",
                                           "slow"};

struct site {
  explicit site(const std::string& weights) : options{"--devices", "cpu", "--weights", weights} {}

  std::vector<std::string> options;
  std::unique_ptr<test::worker_process> worker = std::make_unique<test::worker_process>(options);
  test::relay way{worker->port()};

  void restart() {
    worker = nullptr;
    worker = std::make_unique<test::worker_process>(options);
    way.set_target(worker->port());
  }
};

struct outcome {
  std::string error; // empty: the right result
  double ms = 0;
};

outcome run_once(const session& s, const tensor& x, const std::vector<float>& expected) {
  const auto begin = clock_type::now();
  auto running = s.run_async({{"x", x}});
  outcome o;
  if (running.wait_for(deadline) != std::future_status::ready) {
    fmt::print("a run hangs\n");
    std::_Exit(1);
  }
  try {
    const run_result r = running.get();
    const auto got = r.outputs.begin()->second.values<float>();
    if (!std::equal(got.begin(), got.end(), expected.begin(), expected.end()))
      o.error = "a wrong result";
  } catch (const error& e) {
    o.error = e.what();
  }
  o.ms = std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
  return o;
}

/// Does something bad, for a while if it is of that kind.
void make_trouble(trouble what, site& at, std::mt19937_64& random) {
  const auto while_ms = [&](uint64_t most) { std::this_thread::sleep_for(std::chrono::milliseconds(random() % most)); };
  switch (what) {
    case trouble::kill: at.worker->kill_now(); break;
    case trouble::hang:
      at.worker->hang();
      while_ms(600);
      at.worker->go_on();
      break;
    case trouble::late_return:
      at.worker->hang();
      std::this_thread::sleep_for(1500ms); // it has been declared lost
      at.worker->go_on();
      break;
    case trouble::cut: at.way.cut(); break;
    case trouble::stall:
      at.way.stall(true);
      while_ms(2000);
      at.way.stall(false);
      break;
    case trouble::slow:
      at.way.set_rate(300000);
      while_ms(500);
      at.way.set_rate(0);
      break;
  }
}

/// Waits until all hosts are there again; returns what is wrong if they are not.
std::string heal(engine& e) {
  for (const auto end = clock_type::now() + deadline; clock_type::now() < end; std::this_thread::sleep_for(5ms)) {
    const auto hosts = e.hosts();
    if (std::none_of(hosts.begin(), hosts.end(), [](const host_summary& h) { return h.lost; }))
      return "";
  }
  std::string text = "a host does not come back";
  for (const host_summary& h : e.hosts())
    text += fmt::format(", {}: {}", h.name, h.lost ? h.problem : "there");
  return text;
}

std::string phase_of(const engine& e, const std::string& host) {
  const remote::host_activity a = activity_of(e, host);
  return a.pulls > 0 ? "transfer in flight" : a.chunks > 0 ? "chunk in flight" : "nothing in flight";
}

class cluster {
public:
  cluster(int workers, uint64_t seed) : random_(seed), sites_(open(workers)), engine_(options_for(sites_)) {
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

  /// Returns what went wrong; empty if nothing did.
  std::vector<std::string> round() {
    const auto what = static_cast<trouble>(random_() % names.size());
    const size_t where = random_() % sites_.size();
    const auto wait = std::chrono::microseconds(random_() % static_cast<uint64_t>(usual_ms_ * 1200));
    auto running = std::async(std::launch::async, [&] { return run_once(session_, x_, expected_); });
    std::this_thread::sleep_for(wait);
    ++phases_[phase_of(engine_, fmt::format("w{}", where))];
    make_trouble(what, *sites_[where], random_);
    const outcome hit = running.get();
    extra_ms_[names[static_cast<size_t>(what)]].push_back(hit.ms - usual_ms_);
    const outcome next = run_once(session_, x_, expected_); // on what is left, or late messages meet it
    if (!sites_[where]->worker->is_alive())
      sites_[where]->restart();
    std::vector<std::string> wrong;
    for (const std::string& error : {hit.error, next.error, heal(engine_)})
      if (!error.empty())
        wrong.push_back(fmt::format("{}, worker {}: {}", names[static_cast<size_t>(what)], where, error));
    return wrong;
  }

  void report(int rounds) {
    for (const auto& [phase, count] : phases_)
      fmt::print("{:20} {:4} ({:.0f} %)\n", phase, count, 100. * count / rounds);
    for (auto& [name, ms] : extra_ms_)
      fmt::print("{:22} {:4} times; over the usual time: median {:.0f} ms, most {:.0f} ms\n", name, ms.size(),
                 quantile(ms, 0.5), quantile(ms, 1));
  }

private:
  using site_list = std::vector<std::unique_ptr<site>>;

  static site_list open(int workers) {
    site_list all;
    for (int i = 0; i < workers; ++i)
      all.push_back(std::make_unique<site>(
          (std::filesystem::temp_directory_path() / fmt::format("troupe-chaos-{}-{}", getpid(), i)).string()));
    return all;
  }
  static engine_options options_for(const site_list& sites) {
    engine_options options{.devices = {"cpu"}, .credentials = {.insecure = true}};
    for (size_t i = 0; i < sites.size(); ++i)
      options.hosts.push_back(fmt::format("w{}=127.0.0.1:{}", i, sites[i]->way.port()));
    return options;
  }

  std::mt19937_64 random_;
  site_list sites_;
  engine engine_;
  const graph model_ = test::chain(60, {64, 4000});
  tensor x_{dtype::float32, {64, 4000}}; // 1 MB: pulled
  std::vector<float> expected_;
  session session_ = engine_.load(model_, {.policy = placement_policy::round_robin, .fuse = false});
  double usual_ms_ = 0;
  std::map<std::string, int> phases_;
  std::map<std::string, std::vector<double>> extra_ms_;
};

} // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 12;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const int workers = argc > 3 ? std::atoi(argv[3]) : 2;
  cluster c(workers, seed);
  fmt::print("seed {}, {} workers, {} rounds; undisturbed {:.1f} ms\n", seed, workers, rounds, c.usual_ms());
  int bad = 0;
  for (int round = 0; round < rounds; ++round)
    for (const std::string& wrong : c.round()) {
      ++bad;
      fmt::print("round {}: {}\n", round, wrong);
      std::fflush(stdout);
    }
  c.report(rounds);
  fmt::print("{} wrong\n", bad);
  return bad == 0 ? 0 : 1;
}
