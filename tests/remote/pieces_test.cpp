// Tensors that are pulled in pieces over a link in memory.
#include "remote/pieces.hpp"

#include "support/catch.hpp"
#include "support/link_pair.hpp"
#include "support/piece_end.hpp"

#include <random>

using namespace troupe;
using namespace troupe::test;
using remote::piece;
using remote::piece_puller;
using remote::piece_request;
using namespace std::chrono_literals;

namespace {

tensor random_bytes(int64_t size, uint64_t seed) {
  tensor t(dtype::uint8, {size});
  std::mt19937_64 words(seed);
  auto* out = t.mutable_data<uint8_t>();
  for (int64_t i = 0; i < size; i += 8) {
    const uint64_t word = words();
    std::memcpy(out + i, &word, static_cast<size_t>(std::min<int64_t>(8, size - i)));
  }
  return t;
}

bool same(const tensor& a, const tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

/// Both ends, in virtual time.
struct two_ends {
  explicit two_ends(link_conditions how = {}) : pair(how, link_driver::by_hand) {}

  link_pair pair;
  piece_end a{pair, 0, [this] { return pair.now(); }}, b{pair, 1, [this] { return pair.now(); }};
};

/// How a pull ended; "" is success.
struct outcome {
  int times = 0;
  std::string message;
  piece_puller::done note() {
    return [this](const failure& f) {
      ++times;
      message = f.message;
    };
  }
};

/// One of many pulls.
struct random_pull {
  tensor content, destination;
  outcome end;
  piece_puller::pull_id id = 0;
  bool offered = true, cancelled = false;

  bool is_right(bool closed) const {
    const bool ended = end.message.empty() ? same(content, destination) : closed || cancelled || !offered;
    return end.times == 1 && ended;
  }
};

/// A puller whose requests the test answers itself.
struct lone_puller {
  std::vector<piece_request> asked;
  piece_puller puller{[this](const piece_request& r) { asked.push_back(r); }};
};

} // namespace

TEST_CASE("a source answers for tensors that it has, inside their bounds, as often as they were offered", "[remote]") {
  remote::piece_source source;
  const tensor t = random_bytes(1000, 1);
  source.offer({1, 2}, t);
  const piece part = source.answer({7, {1, 2}, 990, 10});
  CHECK((part.request == 7 && !part.gone && part.bytes.size() == 10));
  CHECK(part.bytes.data() == t.data<std::byte>() + 990);
  constexpr int64_t most = INT64_MAX;
  for (const piece_request& wrong : {piece_request{8, {1, 2}, 991, 10},
                                     {8, {1, 2}, -1, 10},
                                     {8, {1, 2}, 0, 0},
                                     {8, {1, 2}, 5, -1},
                                     {8, {1, 2}, most, most},
                                     {8, {1, 2}, 1, most},
                                     {8, {1, 2}, most, 1},
                                     {8, {2, 2}, 0, 1}})
    CHECK(source.answer(wrong).gone);
  const tensor large(dtype::uint8, {2 * remote::largest_piece});
  source.offer({3, 3}, large);
  CHECK(source.answer({9, {3, 3}, 0, remote::largest_piece + 1}).gone);
  CHECK(!source.answer({9, {3, 3}, remote::largest_piece, remote::largest_piece}).gone);
  source.offer({1, 2}, t);
  source.withdraw({1, 2});
  CHECK(!source.answer({7, {1, 2}, 0, 10}).gone);
  source.withdraw({1, 2});
  source.withdraw({1, 2});
  CHECK(source.answer({7, {1, 2}, 0, 10}).gone);
  CHECK(part.owner.data() == t.data()); // an answered piece keeps its bytes
}

TEST_CASE("pieces that are wrong or not wanted harm one pull at most", "[remote]") {
  lone_puller p;
  const tensor content = random_bytes(100, 1);
  const auto bytes = std::as_bytes(content.values<uint8_t>());
  tensor good(dtype::uint8, {100}), bad(dtype::uint8, {100});
  outcome good_end, bad_end, empty_end, gone_end;
  p.puller.pull({1, 1}, good, good_end.note());
  p.puller.pull({2, 2}, bad, bad_end.note());
  p.puller.pull({3, 3}, tensor(dtype::uint8, {0}), empty_end.note());
  p.puller.pull({4, 4}, tensor(dtype::uint8, {1}), gone_end.note());
  CHECK((empty_end.times == 1 && empty_end.message.empty()));
  REQUIRE(p.asked.size() == 3);
  p.puller.on_piece({12345, false, bytes, {}});
  p.puller.on_piece({p.asked[1].request, false, bytes.first(99), {}});
  p.puller.on_piece({p.asked[1].request, false, bytes, {}});
  p.puller.on_piece({p.asked[2].request, true, {}, {}});
  CHECK(bad_end.message == "the other host sent 99 bytes of a tensor instead of 100");
  CHECK(gone_end.message == "the other host does not have the tensor any more");
  CHECK(good_end.times == 0);
  p.puller.on_piece({p.asked[0].request, false, bytes, {}});
  CHECK((good_end.times == 1 && good_end.message.empty()));
  CHECK(same(good, content));
  CHECK((bad_end.times == 1 && gone_end.times == 1));
}

TEST_CASE("pulls end by cancelling and closing, and none begins afterwards", "[remote]") {
  lone_puller p;
  outcome cancelled, closed, late;
  const auto id = p.puller.pull({1, 1}, tensor(dtype::uint8, {10}), cancelled.note());
  p.puller.pull({2, 2}, tensor(dtype::uint8, {10}), closed.note());
  p.puller.cancel(id);
  p.puller.cancel(id);
  p.puller.close("the host is gone");
  p.puller.close("again");
  p.puller.pull({3, 3}, tensor(dtype::uint8, {10}), late.note());
  CHECK((cancelled.times == 1 && cancelled.message == "the transfer was cancelled"));
  CHECK((closed.times == 1 && closed.message == "the host is gone"));
  CHECK((late.times == 1 && late.message == "the host is gone"));
  CHECK(p.asked.size() == 2);
}

TEST_CASE("a callback may pull again, and hears how far a pull is", "[remote]") {
  two_ends ends;
  const tensor content = random_bytes(300'000, 1);
  ends.b.source().offer({1, 1}, content);
  tensor first(dtype::uint8, {300'000}), second(dtype::float32, {75'000});
  std::vector<int64_t> steps;
  outcome last;
  ends.a.puller().pull(
      {1, 1}, first,
      [&](const failure&) {
        ends.a.puller().pull({1, 1}, second, last.note());
      },
      [&](int64_t done, int64_t total) {
        CHECK(total == 300'000);
        steps.push_back(done);
      });
  ends.pair.drain();
  CHECK((last.times == 1 && last.message.empty()));
  CHECK((same(first, content) && same(second, content)));
  CHECK(std::is_sorted(steps.begin(), steps.end()));
  CHECK((steps.size() > 1 && steps.back() == 300'000));
}

TEST_CASE("a small pull does not wait for a large one", "[remote]") {
  two_ends ends({.delay = 1ms, .bytes_per_second = 100e6});
  const tensor large = random_bytes(64 << 20, 1), small = random_bytes(100'000, 2);
  ends.b.source().offer({1, 1}, large);
  ends.b.source().offer({2, 2}, small);
  tensor into_large(dtype::uint8, {64 << 20}), into_small(dtype::uint8, {100'000});
  int64_t came = 0, at_small = -1;
  outcome end;
  ends.a.puller().pull({1, 1}, into_large, end.note(), [&](int64_t done, int64_t) { came = done; });
  while (came < (16 << 20))
    REQUIRE(ends.pair.step());
  const auto start = ends.pair.now();
  ends.a.puller().pull({2, 2}, into_small, [&](const failure&) {
    at_small = came;
    CHECK(ends.pair.now() - start < 250ms); // 64 MiB take 0.67 s
  });
  ends.pair.drain();
  CHECK((at_small > 0 && at_small < (48 << 20)));
  CHECK((end.message.empty() && same(into_large, large) && same(into_small, small)));
}

TEST_CASE("random pulls in both directions end once and right", "[remote]") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t n) { return random() % n; };
    link_conditions how{.delay = std::chrono::microseconds(below(3000)),
                        .bytes_per_second = below(2) ? std::exp2(20.0 + static_cast<double>(below(12))) : 0};
    if (below(4) == 0)
      how.cut_after = static_cast<int64_t>(below(20 << 20));
    two_ends ends(how);
    std::deque<random_pull> pulls[2];
    piece_end* sides[] = {&ends.a, &ends.b};
    bool closed = how.cut_after >= 0;
    for (int i = 0; i < 60; ++i) {
      const size_t side = below(2);
      const auto size = static_cast<int64_t>(below(4) ? below(200'000) : below(3 << 20));
      random_pull& made = pulls[side].emplace_back();
      made.content = random_bytes(size, random());
      made.destination = tensor(dtype::uint8, {size});
      made.offered = below(20) != 0;
      const hash128 key{random(), random()};
      if (made.offered)
        sides[1 - side]->source().offer(key, made.content);
      made.id = sides[side]->puller().pull(key, made.destination, made.end.note());
      for (uint64_t steps = below(20); steps > 0; --steps)
        ends.pair.step();
      if (below(10) == 0) {
        random_pull& chosen = pulls[side][below(pulls[side].size())];
        chosen.cancelled = chosen.cancelled || chosen.end.times == 0;
        sides[side]->puller().cancel(chosen.id);
        CHECK(chosen.end.times == 1);
      }
      if (below(500) == 0) {
        closed = true;
        ends.pair.end(side)->close();
      }
    }
    ends.pair.drain();
    INFO("seed " << seed);
    for (const auto& side : pulls)
      for (const random_pull& each : side)
        CHECK(each.is_right(closed));
    for (piece_end* side : sides)
      CHECK(side->most_outstanding() <= remote::piece_window);
  }
}

TEST_CASE("pulls, cancels and closes from many threads", "[remote]") {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    link_pair pair;
    piece_end a(pair, 0), b(pair, 1);
    constexpr int64_t size = 700'000;
    const tensor content = random_bytes(size, seed);
    a.source().offer({1, 1}, content);
    b.source().offer({1, 1}, content);
    std::atomic<int> ended = 0, right = 0, wrong = 0;
    const auto work = [&](piece_end& side, uint64_t thread_seed) {
      std::mt19937_64 random(thread_seed);
      for (int i = 0; i < 50; ++i) {
        const tensor destination(dtype::uint8, {size});
        const auto id = side.puller().pull({1, 1}, destination, [&, destination](const failure& f) {
          ++ended;
          if (!f.failed())
            ++(same(destination, content) ? right : wrong);
        });
        if (random() % 4 == 0)
          side.puller().cancel(id);
      }
    };
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 4; ++i)
      threads.emplace_back(work, std::ref(i % 2 ? a : b), seed * 4 + i);
    for (auto& t : threads)
      t.join();
    const auto limit = std::chrono::steady_clock::now() + 20s;
    if (seed % 2)
      pair.end(0)->close();
    while (ended < 200 && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(1ms);
    CHECK(ended == 200);
    CHECK(wrong == 0);
    CHECK((seed % 2 || right > 100));
    CHECK(std::max(a.most_outstanding(), b.most_outstanding()) <= remote::piece_window);
    pair.stop(); // before a and b, which its handlers call
  }
}
