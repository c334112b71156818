// The link in memory that other tests rely on.
#include "support/link_pair.hpp"

#include "support/catch.hpp"

#include <atomic>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct listener {
  std::vector<remote::frame> frames;
  std::string end;
  remote::link_handler handler() {
    return {[this](remote::frame f) { frames.push_back(std::move(f)); },
            [this](const std::string& why) { end += end.empty() ? why : "twice"; }};
  }
};

} // namespace

TEST_CASE("a link in memory delivers in order, at the time that follows from its conditions", "[remote]") {
  link_pair pair({.delay = 1ms, .bytes_per_second = 1000}, link_driver::by_hand);
  pair.end(0)->send({1});
  pair.end(0)->send({2, 2});
  CHECK(!pair.step()); // no end listens yet
  listener a, b;
  pair.end(0)->receive(a.handler());
  pair.end(1)->receive(b.handler());
  CHECK(pair.step());
  CHECK(pair.now().time_since_epoch() == 2ms);
  pair.hold();
  CHECK(!pair.step());
  pair.release();
  pair.end(0)->close();
  pair.end(1)->send({3});
  pair.drain();
  CHECK(pair.now().time_since_epoch() == 4ms);
  CHECK(b.frames == std::vector<remote::frame>{{1}, {2, 2}});
  CHECK(b.end == "the other end has closed the link");
  CHECK(a.frames.empty());
  CHECK(a.end == "this end has closed the link");
  pair.cut();
  CHECK(!pair.step());
}

TEST_CASE("a link in memory is cut after a number of bytes, and by a frame that is too long", "[remote]") {
  for (const size_t length : {size_t{11}, remote::max_frame_bytes + 1}) {
    link_pair pair({.cut_after = length < 100 ? 20 : -1}, link_driver::by_hand);
    listener a, b;
    pair.end(0)->receive(a.handler());
    pair.end(1)->receive(b.handler());
    pair.end(0)->send(remote::frame(10));
    pair.step();
    pair.end(1)->send(remote::frame(length));
    pair.end(1)->send(remote::frame(1));
    pair.drain();
    CHECK((b.frames.size() == 1 && a.frames.empty()));
    CHECK((!a.end.empty() && a.end == b.end));
  }
}

TEST_CASE("a link in memory delivers on its own threads until it is stopped", "[remote]") {
  link_pair pair({.delay = 2ms});
  listener a, b;
  std::atomic<bool> ended = false;
  remote::link_handler handler = b.handler();
  handler.on_closed = [&](const std::string&) { ended = true; };
  pair.end(1)->receive(handler);
  pair.end(0)->receive(a.handler());
  for (uint8_t i = 0; i < 100; ++i)
    pair.end(0)->send({i});
  pair.end(0)->close();
  for (int i = 0; i < 5000 && !ended; ++i)
    std::this_thread::sleep_for(1ms);
  pair.stop();
  REQUIRE(b.frames.size() == 100);
  for (uint8_t i = 0; i < 100; ++i)
    CHECK(b.frames[i] == remote::frame{i});
}
