// Strangers and members that talk nonsense attack a worker's port while an honest session runs a model there:
// troupe_hostile STREAMS SEED
//
// STREAMS connections of each kind: random bytes and mutated records of TLS, inside and outside of it; strangers
// without a certificate, with one of another CA, with an expired one, without TLS; handshakes that take for ever, a
// thousand connections at once. Exit status 1 if a run of the honest session failed or was wrong, the worker died, hung
// or let a stranger in, or it keeps descriptors or memory.
#include "support/certificate_folder.hpp"
#include "support/honest_client.hpp"
#include "support/recorded_talk.hpp"
#include "support/worker_process.hpp"

#include "base/error.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;
using test::bytes;
using test::hostile_line;
using random_source = std::mt19937_64;

constexpr int attackers = 3; // connections that are attacked with at a time
constexpr int64_t most_growth_kb = 64 << 10, most_peak_kb = (64 << 10) * (attackers + 2);
constexpr int descriptor_slack = 4;

/// How one connection went.
struct outcome {
  bool let_in = false; // beyond the handshake; to a link of its own, if it asked for one
  bool ended = false;  // by the worker, before we were done
  bool hung = false;
  double seconds = 0;
};

/// The outcomes of one kind of attack.
struct tally {
  std::string name;
  size_t connections = 0, let_in = 0, ended = 0, hung = 0;
  double longest = 0;
  int64_t resident_kb = 0;

  void add(const outcome& o) {
    ++connections;
    let_in += o.let_in;
    ended += o.ended;
    hung += o.hung;
    longest = std::max(longest, o.seconds);
  }
};

class battle {
public:
  battle(size_t streams, uint64_t seed)
      : streams_(streams), seed_(seed), member_(actors::make_tls_context(keys_.of("member"))),
        honest_(worker_.port(), keys_.of("honest")),
        talk_(worker_.port(), member_, actors::make_tls_context(keys_.of("worker")),
              [this](uint16_t port) { test::honest_client::visit(port, keys_.of("member")); }) {}

  /// Returns the exit status.
  int fight() {
    honest_.begin_phase("before");
    std::this_thread::sleep_for(std::chrono::milliseconds(streams_ >= 1000 ? 3000 : 500));
    const int64_t memory = worker_.resident_kb();
    const int descriptors = worker_.descriptors();
    fmt::print("worker: {} MiB, {} descriptors\n", memory >> 10, descriptors);
    attack_as_stranger();
    attack_as_member();
    attack_by_number();
    honest_.begin_phase("after");
    for (const auto end = clock_type::now() + 10s;
         !is_dead() && clock_type::now() < end && worker_.descriptors() > descriptors + descriptor_slack;)
      std::this_thread::sleep_for(100ms);
    std::this_thread::sleep_for(500ms);
    honest_.stop();
    report();
    return judge(memory, descriptors);
  }

private:
  using attempt = std::function<outcome(random_source&, size_t)>;

  bool is_dead() { return worker_.has_ended(); }

  /// Makes `count` connections, a few at a time.
  void attack(const std::string& name, size_t count, const attempt& one) {
    if (is_dead())
      return;
    honest_.begin_phase(name);
    tally sum{.name = name};
    std::mutex mutex;
    std::atomic<size_t> next = 0;
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < attackers; ++t)
        threads.emplace_back([&] {
          for (size_t i = next++; i < count && !dead_; i = next++) {
            random_source random(seed_ * 1000003 + std::hash<std::string>{}(name) + i);
            const outcome o = timed(one, random, i);
            const std::lock_guard lock(mutex);
            sum.add(o);
          }
        });
    }
    finish(std::move(sum));
  }

  outcome timed(const attempt& one, random_source& random, size_t i) {
    const auto begin = clock_type::now();
    outcome o;
    try {
      o = one(random, i);
    } catch (const error& e) {
      o.hung = true;
      if (!dead_.exchange(true))
        fmt::print("{}: {}\n", is_dead() ? "the worker died" : "the worker hangs", e.what());
    }
    o.seconds = std::chrono::duration<double>(clock_type::now() - begin).count();
    return o;
  }

  void finish(tally sum) {
    sum.resident_kb = worker_.resident_kb();
    fmt::print("{}: {} connections\n", sum.name, sum.connections);
    tallies_.push_back(std::move(sum));
    dead_ = is_dead();
    if (dead_)
      fmt::print("the worker died during: {}\n", tallies_.back().name);
  }

  /// Sends everything, gives the worker a moment to end the connection, and ends it.
  static outcome say(hostile_line& line, const bytes& what, bool let_in) {
    outcome o{.let_in = let_in};
    bytes heard;
    o.ended = !line.say(what);
    for (int turn = 0; turn < 3 && !o.ended; ++turn)
      o.ended = !line.hear(heard, 2ms);
    o.hung = !line.await_end();
    return o;
  }

  attempt with_context(const actors::tls_context& tls) {
    return [this, tls](random_source&, size_t) {
      hostile_line line(worker_.port(), tls);
      outcome o{.let_in = line.enter()};
      o.ended = !o.let_in;
      return o;
    };
  }

  attempt with_bytes(const std::function<bytes(random_source&)>& make) {
    return [this, make](random_source& random, size_t) {
      hostile_line line(worker_.port());
      return say(line, make(random), false);
    };
  }

  attempt inside(const std::function<bytes(random_source&, uint32_t)>& make) {
    return [this, make](random_source& random, size_t i) {
      hostile_line line(worker_.port(), member_);
      if (!line.enter())
        return outcome{.ended = true};
      return say(line, make(random, node_number(i)), true);
    };
  }

  /// A number of a process that is none here.
  static uint32_t node_number(size_t i) { return 0x40000000U + static_cast<uint32_t>(i); }

  void attack_as_stranger() {
    const size_t few = std::max<size_t>(10, streams_ / 20);
    const test::certificate_folder rogue({"rogue"});
    actors::make_certificates({.folder = keys_.path(), .names = {"old"}, .days = -2});
    attack("no certificate", few, with_context(test::careless_context()));
    attack("rogue CA", few, with_context(test::careless_context(rogue.file("rogue.crt"), rogue.file("rogue.key"))));
    attack("expired certificate", few,
           with_context(test::careless_context(keys_.file("old.crt"), keys_.file("old.key"))));
    attack("plaintext: troupe's greeting", few, [this](random_source&, size_t) {
      hostile_line line(worker_.port());
      outcome o{.let_in = line.enter()};
      o.ended = !o.let_in;
      return o;
    });
    attack("plaintext: HTTP", few, with_bytes([](random_source&) {
             const std::string_view text = "GET / HTTP/1.1\r\nHost: worker\r\nUpgrade-Insecure-Requests: 1\r\n\r\n";
             return bytes(text.begin(), text.end());
           }));
    attack("random bytes", streams_,
           with_bytes([](random_source& random) { return test::random_bytes(1 + random() % 2048, random); }));
    const bytes hello = test::client_hello(member_);
    attack("mutated ClientHello", streams_,
           with_bytes([&](random_source& random) { return test::mutated(hello, random); }));
  }

  void attack_as_member() {
    attack("member: random bytes", streams_,
           inside([](random_source& random, uint32_t) { return test::random_bytes(1 + random() % 2048, random); }));
    attack("member: CAF heads", streams_,
           inside([](random_source& random, uint32_t) { return test::random_caf_messages(random); }));
    attack("member: mutated sessions", streams_, inside([&](random_source& random, uint32_t node) {
             return test::mutated(talk_.as_node(node).whole(), random);
           }));
    attack("member: mutated messages", streams_, [this](random_source& random, size_t i) {
      hostile_line line(worker_.port(), member_);
      if (!line.enter())
        return outcome{.ended = true};
      outcome o;
      o.let_in = talk_.as_node(node_number(streams_ + i)).say_to_link(line, random);
      bytes heard;
      o.ended = !line.hear(heard, 0ms);
      o.hung = !line.await_end();
      return o;
    });
  }

  void attack_by_number() {
    const size_t many = streams_ >= 1000 ? 1000 : 200;
    const bytes hello = test::client_hello(member_);
    at_once("slow handshakes", 100, [&](int fd, int second) {
      if (static_cast<size_t>(second) < hello.size())
        send(fd, &hello[static_cast<size_t>(second)], 1, MSG_NOSIGNAL);
    });
    at_once("half-open handshakes", 100, [&](int fd, int second) {
      if (second == 0)
        send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
    });
    at_once("connections at once", many, [](int, int) {});
  }

  /// Opens `count` connections at once; `each_second` may say something on each. Waits until the worker has ended them
  /// all.
  void at_once(const std::string& name, size_t count, const std::function<void(int fd, int second)>& each_second) {
    if (is_dead())
      return;
    honest_.begin_phase(name);
    const auto begin = clock_type::now();
    tally sum{.name = name};
    std::vector<std::unique_ptr<hostile_line>> open;
    for (size_t i = 0; i < count; ++i)
      open.push_back(std::make_unique<hostile_line>(worker_.port()));
    for (int second = 0; !open.empty() && second < 20; ++second) {
      for (const auto& line : open)
        each_second(line->fd(), second);
      for (const auto end = begin + std::chrono::seconds(second + 1); clock_type::now() < end && !open.empty();
           std::this_thread::sleep_for(20ms))
        std::erase_if(open, [&](const auto& line) {
          bytes heard;
          const bool ended = !line->hear(heard, 0ms);
          if (ended)
            sum.add({.ended = true, .seconds = std::chrono::duration<double>(clock_type::now() - begin).count()});
          return ended;
        });
    }
    for (size_t i = 0; i < open.size(); ++i)
      sum.add({.hung = true});
    finish(std::move(sum));
  }

  void report() {
    fmt::print("{:30} {:>6} {:>7} {:>7} {:>5} {:>9} {:>5} | {:>6} {:>6} {:>8} {:>8}\n", "attack", "conns", "let in",
               "ended", "hung", "longest s", "MiB", "runs", "wrong", "p50 ms", "p99 ms");
    for (const test::honest_client::phase& p : honest_.phases()) {
      const auto t = std::find_if(tallies_.begin(), tallies_.end(), [&](const tally& x) { return x.name == p.name; });
      if (t == tallies_.end())
        fmt::print("{:30} {:46}", p.name, "");
      else
        fmt::print("{:30} {:6} {:7} {:7} {:5} {:9.2f} {:5} ", t->name, t->connections, t->let_in, t->ended, t->hung,
                   t->longest, t->resident_kb >> 10);
      fmt::print("| {:6} {:6} {:8.2f} {:8.2f}\n", p.ms.size(), p.wrong, quantile(p.ms, 0.5), quantile(p.ms, 0.99));
      wrong_ += p.wrong;
    }
    if (!honest_.problem().empty())
      fmt::print("the honest session's first problem: {}\n", honest_.problem());
  }

  int judge(int64_t memory, int descriptors) {
    std::vector<std::string> bad;
    if (is_dead()) {
      bad.emplace_back("the worker died");
    } else {
      const int64_t now = worker_.resident_kb(), peak = worker_.peak_kb();
      const int open = worker_.descriptors();
      fmt::print("worker: {} MiB, at most {} MiB, {} descriptors\n", now >> 10, peak >> 10, open);
      if (now > memory + most_growth_kb || peak > memory + most_peak_kb)
        bad.push_back(fmt::format("memory grew by {} MiB, at times {}; allowed are {} and {}", (now - memory) >> 10,
                                  (peak - memory) >> 10, most_growth_kb >> 10, most_peak_kb >> 10));
      if (open > descriptors + descriptor_slack)
        bad.push_back(fmt::format("{} descriptors stay open", open - descriptors));
    }
    if (wrong_ > 0)
      bad.push_back(fmt::format("{} wrong or failed runs", wrong_));
    for (const tally& t : tallies_) {
      if (t.hung > 0)
        bad.push_back(fmt::format("{}: {} connections hung", t.name, t.hung));
      if (t.let_in > 0 && !t.name.starts_with("member"))
        bad.push_back(fmt::format("{}: {} got in", t.name, t.let_in));
    }
    for (const std::string& b : bad)
      fmt::print("BAD: {}\n", b);
    return bad.empty() ? 0 : 1;
  }

  static std::vector<std::string> worker_options(const test::certificate_folder& keys) {
    const host_credentials c = keys.of("worker");
    return {"--devices",   "cpu",       "--weights", keys.file("weights"), "--tls-cert",
            c.certificate, "--tls-key", c.key,       "--tls-ca",           c.ca};
  }

  size_t streams_;
  uint64_t seed_;
  std::atomic<bool> dead_ = false;
  std::vector<tally> tallies_;
  size_t wrong_ = 0;
  test::certificate_folder keys_{{"worker", "honest", "member"}};
  test::worker_process worker_{worker_options(keys_)};
  actors::tls_context member_;
  test::honest_client honest_;
  test::recorded_talk talk_;
};

} // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const size_t streams = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  fmt::print("{} streams of each kind, seed {}\n", streams, seed);
  battle b(streams, seed);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files); // the worker has started with the usual one
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  setrlimit(RLIMIT_NOFILE, &files);
  return b.fight();
}
