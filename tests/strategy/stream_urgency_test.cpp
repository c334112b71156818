// Priorities, deadlines, overload.
#include "strategy/stream_world.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <random>

using namespace troupe;
using namespace troupe::test;

namespace {

stream_request with_priority(int priority) {
  stream_request r = one_piece();
  r.priority = priority;
  return r;
}

stream_request until(double deadline) {
  stream_request r = one_piece();
  r.deadline = at(deadline);
  return r;
}

/// Returns how many pieces had been started before a request's first.
size_t started_before(const stream_world& world, request_id id) {
  const auto& all = world.started();
  return static_cast<size_t>(
      std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.what.parts[0].request == id; }) - all.begin());
}

} // namespace

TEST_CASE("a high priority waits for pieces in flight and its peers, and a low one never starves", "[strategy][C1]") {
  const size_t fair_turn = 5, replicas = 2;
  stream_world world({.replicas = std::vector<replica_figures>(replicas, {.row_seconds = 1}),
                      .queue_limit = 10000,
                      .fair_turn = fair_turn});
  for (int i = 0; i < 200; ++i)
    world.submit(with_priority(0));
  const auto low = world.submit(with_priority(-1));
  // Three high ones at a time, again and again: as many as the replicas can do.
  size_t low_ones_before = 200;
  for (int i = 0; i < 1000; ++i) {
    world.run_until(2 * i + 0.5);
    const size_t before = world.started().size();
    std::vector<request_id> peers;
    for (int k = 0; k < 3; ++k)
      peers.push_back(*world.submit(with_priority(7)));
    world.run_until(2 * i + 2.4);
    for (size_t k = 0; k < peers.size(); ++k) // at most one piece of a fair turn for each replica
      CHECK(started_before(world, peers[k]) <= before + k + replicas);
  }
  world.run();
  CHECK(world.unanswered() == 0);
  CHECK(started_before(world, *low) <= fair_turn * (low_ones_before + 1) + replicas * (fair_turn - 1));
  CHECK(started_before(world, *low) > 400); // high ones did go first
}

TEST_CASE("pinned requests cannot keep replicas from the requests that they share", "[strategy][C1]") {
  stream_world world(
      {.replicas = std::vector<replica_figures>(2, {.row_seconds = 1}), .queue_limit = 10000, .fair_turn = 4});
  for (int i = 0; i < 200; ++i) {
    stream_request pinned = with_priority(3);
    pinned.pinned = size_t(i % 2);
    world.submit(pinned);
  }
  const auto shared = world.submit(with_priority(0));
  for (int i = 0; i < 300; ++i) {
    world.run_until(i + 0.5);
    for (size_t r = 0; r < 2; ++r) {
      stream_request pinned = with_priority(3);
      pinned.pinned = r;
      world.submit(pinned);
    }
  }
  CHECK(started_before(world, *shared) <= 4 * (200 + 1) + 2 * 3);
  world.run();
  CHECK(world.unanswered() == 0);
}

TEST_CASE("a late request is answered at its deadline, waiting or in flight, and never starts", "[strategy][C1]") {
  stream_world world({.replicas = {{.row_seconds = 1}}, .depth = 1}, {{.row_seconds = 10}});
  const auto flying = world.submit(until(2)), waiting = world.submit(until(3)), late = world.submit(until(0));
  CHECK(world.answer_to(*late).what.why.code == errc::timeout);
  world.run();
  CHECK(world.answer_to(*flying).time == Approx(2));
  CHECK(world.answer_to(*flying).what.why.code == errc::timeout);
  CHECK(world.answer_to(*waiting).time == Approx(3));
  CHECK(world.answer_to(*waiting).what.why.code == errc::timeout);
  CHECK(world.started().size() == 1);
  CHECK(world.machine().records() < 10);
}

TEST_CASE("a request that cannot be in time makes room if others wait, else it is tried", "[strategy][C1]") {
  const machine_options options{.replicas = {{.row_seconds = 1}}, .depth = 1};
  stream_world alone(options, {{.row_seconds = 0.1}}); // ten times faster than predicted
  const auto tried = alone.submit(until(0.5));
  alone.run();
  CHECK_FALSE(alone.answer_to(*tried).what.why.failed());
  stream_world busy(options);
  busy.submit(one_piece());
  const auto shed = busy.submit(until(1.5)), other = busy.submit(one_piece());
  busy.run();
  CHECK(busy.answer_to(*shed).time == Approx(1));
  CHECK(busy.answer_to(*shed).what.why.code == errc::timeout);
  CHECK_THAT(busy.answer_to(*shed).what.why.message, Catch::Contains("was not started"));
  CHECK(busy.answer_to(*other).time == Approx(2));
}

TEST_CASE("twice the load that can be served keeps 0.9 of the best throughput and recovers at once", "[strategy][C1]") {
  for (const int64_t max_batch : {0, 16})
    for (const double spread : {0.0, 0.3}) {
      CAPTURE(max_batch, spread);
      // Pieces of 16 rows: 0.026 s; alone: 0.011 s.
      stream_world world({.replicas = std::vector<replica_figures>(2, {.row_seconds = 1e-3, .fixed_seconds = 0.01}),
                          .max_batch = max_batch,
                          .queue_limit = 100000});
      std::mt19937 random(13);
      world.jitter = [&] { return std::uniform_real_distribution<double>(1 - spread, 1 + spread)(random); };
      const double best = max_batch ? 2 * 16 / 0.026 : 2 / 0.011;
      const auto good_per_second = [&](double load, double seconds) {
        const size_t before = world.answers().size();
        const double begin = world.now();
        for (double t = 0; t < seconds; t += 1 / (load * best)) {
          world.run_until(begin + t);
          stream_request r = max_batch ? rows_of_key(1) : one_piece();
          r.deadline = at(world.now() + 0.5);
          world.submit(r);
        }
        return static_cast<double>(std::count_if(world.answers().begin() + static_cast<std::ptrdiff_t>(before),
                                                 world.answers().end(),
                                                 [](const auto& a) { return !a.what.why.failed(); })) /
               seconds;
      };
      CHECK(good_per_second(2, 20) >= 0.9 * best);
      world.run_until(world.now() + 0.5); // the longest that anything waits
      const size_t before = world.answers().size();
      good_per_second(0.8, 10);
      world.run();
      for (size_t i = before; i < world.answers().size(); ++i)
        CHECK_FALSE(world.answers()[i].what.why.failed());
    }
}
