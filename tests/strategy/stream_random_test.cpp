// Whatever happens to a stream in whatever order: checked against the naive account of `stream_world`.
#include "strategy/stream_world.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <random>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Dice that throw up everything that can happen to a stream.
class dice {
public:
  explicit dice(uint32_t seed) : random_(seed) {}

  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  int64_t number(int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random_); }
  double seconds(double to) { return std::uniform_real_distribution<double>(0, to)(random_); }

  machine_options options() {
    machine_options o{.how = static_cast<distribution>(number(0, 3)),
                      .depth = static_cast<size_t>(number(1, 3)),
                      .micro_batch = chance(0.5) ? number(1, 9) : 0,
                      .min_piece = chance(0.5) ? number(1, 4) : 0,
                      .max_batch = chance(0.5) ? number(1, 12) : 0,
                      .max_delay = std::chrono::milliseconds(chance(0.5) ? number(1, 300) : 0),
                      .queue_limit = static_cast<size_t>(chance(0.5) ? number(1, 10) : 200),
                      .ordered = chance(0.4),
                      .fair_turn = static_cast<size_t>(number(1, 9))};
    for (int64_t r = number(1, 5); r > 0; --r)
      o.replicas.push_back(figures());
    return o;
  }
  replica_figures figures() { return {.row_seconds = seconds(0.05), .fixed_seconds = chance(0.5) ? seconds(0.05) : 0}; }
  stream_request request(const stream_world& world, size_t replicas) {
    stream_request r{.rows = chance(0.3) ? number(1, 60) : number(1, 6),
                     .key = std::to_string(number(0, 2)),
                     .divisible = chance(0.7),
                     .priority = static_cast<int>(number(-2, 2)),
                     .deadline = {},
                     .pinned = {}};
    if (chance(0.3))
      r.deadline = at(world.now() + seconds(2) - 0.05);
    if (chance(0.15))
      r.pinned = static_cast<size_t>(number(0, static_cast<int64_t>(replicas) - 1));
    return r;
  }
  piece_outcome outcome() {
    constexpr errc codes[] = {errc::invalid_input, errc::out_of_memory, errc::device_failed};
    if (chance(0.9))
      return {};
    if (chance(0.4))
      return {.lost = true, .why = {}};
    return {.why = {codes[number(0, 2)], "it did not work"}};
  }

private:
  std::mt19937 random_;
};

/// Lets `steps` things happen, then everything that is still to come.
void play(dice& d, stream_world& world, int steps) {
  bool calm = false;
  size_t replicas = world.truth.size(), accepted = 0;
  world.outcome_of = [&](const start_piece&) { return calm ? piece_outcome{} : d.outcome(); };
  world.jitter = [&] { return d.chance(0.05) ? 20 : 0.5 + d.seconds(1); };
  for (int i = 0; i < steps; ++i)
    switch (d.number(0, 19)) {
      default: accepted += world.submit(d.request(world, replicas)).has_value(); break;
      case 8: world.cancel(static_cast<request_id>(d.number(0, static_cast<int64_t>(accepted)))); break;
      case 9:
        if (d.chance(0.15))
          world.lose(static_cast<size_t>(d.number(0, static_cast<int64_t>(replicas) - 1)));
        break;
      case 10:
        for (size_t r = 0; r < replicas; ++r)
          if (world.is_lost(r))
            world.join(r, d.figures(), d.figures());
        if (replicas < 6 && d.chance(0.1))
          world.join(replicas++, d.figures(), d.figures());
        break;
      case 11:
      case 12:
      case 13:
      case 14:
      case 15: world.run_until(world.now() + d.seconds(0.3)); break;
      case 16: // pieces may end in another order than they should
        if (const auto r = static_cast<size_t>(d.number(0, static_cast<int64_t>(replicas) - 1)); world.in_flight(r) > 0)
          world.end_first(r, d.outcome());
        break;
    }
  calm = true;
  world.run();
  CHECK(world.unanswered() == 0);
  CHECK(world.answers().size() == accepted);
  CHECK((world.machine().open() == 0 && world.machine().waiting() == 0 && world.machine().pieces_in_flight() == 0));
  CHECK(world.machine().records() <= 20); // lanes, and nothing else
}

} // namespace

TEST_CASE("whatever happens to a stream, each request is answered once with all its rows in order",
          "[strategy][C1][C4]") {
  size_t answered = 0, done = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    dice d(seed);
    const machine_options options = d.options();
    std::vector<replica_figures> truth;
    for (size_t r = 0; r < options.replicas.size(); ++r)
      truth.push_back(d.chance(0.5) ? options.replicas[r] : d.figures());
    stream_world world(options, truth);
    play(d, world, 200);
    answered += world.answers().size();
    done += static_cast<size_t>(std::count_if(world.answers().begin(), world.answers().end(),
                                              [](const auto& a) { return !a.what.why.failed(); }));
  }
  CHECK(answered > 15000);
  CHECK(done > answered / 3); // else little would be tried
}

TEST_CASE("a million requests leave no records", "[strategy][C4]") {
  machine_options options{.replicas = std::vector<replica_figures>(4, {.row_seconds = 1e-4, .fixed_seconds = 1e-3}),
                          .max_batch = 32,
                          .max_delay = std::chrono::milliseconds(2),
                          .queue_limit = 256,
                          .ordered = true};
  stream_world world(options);
  world.keeps_history = false;
  size_t most = 0, accepted = 0;
  for (int i = 0; i < 1000000; ++i) {
    stream_request r = rows_of_key(1 + i % 3, static_cast<uint64_t>(i) / 5 % 4);
    r.priority = i % 7 == 0;
    r.deadline = at(world.now() + 1);
    while (!world.submit(r))
      world.run_until(world.now() + 1e-3);
    ++accepted;
    most = std::max(most, world.machine().records());
  }
  world.run();
  CHECK(accepted == 1000000);
  CHECK(world.unanswered() == 0);
  // A waiting request has fewer than 8 records; one in flight fewer than 4.
  CHECK(most <= 8 * options.queue_limit + 4 * 4 * options.depth * 32);
  CHECK(world.machine().records() <= 10);
}
