// A choice that is made once, however many callers wait for it.
#include "actors/choice_once.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

#include <atomic>
#include <future>

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;
using test::thrown_by;

namespace {

patience at_most(std::chrono::milliseconds limit) {
  return {.until = std::chrono::steady_clock::now() + limit};
}

} // namespace

TEST_CASE("many callers have one choice made", "[strategy][C10]") {
  choice_once<int> choice;
  CHECK_FALSE(choice.if_any());
  std::atomic<int> made = 0;
  std::promise<void> go;
  const auto make = [&, ready = go.get_future().share()] {
    ready.wait();
    return ++made;
  };
  std::vector<std::future<int>> asked;
  for (int i = 0; i < 8; ++i)
    asked.push_back(std::async(std::launch::async, [&] { return choice.get(make, {}); }));
  CHECK_FALSE(choice.if_any()); // asks and does not wait
  go.set_value();
  for (auto& one : asked)
    CHECK(one.get() == 1);
  CHECK(choice.if_any() == 1);
}

TEST_CASE("no caller waits for a choice beyond the limit or after a stop", "[strategy][C10][C11]") {
  choice_once<int> choice;
  std::promise<void> go;
  const std::function<int()> slow = [ready = go.get_future().share()] {
    ready.wait();
    return 7;
  };
  // The one for which it is made, and one that finds it being made.
  for (int i = 0; i < 2; ++i)
    CHECK(thrown_by([&] { choice.get(slow, at_most(5ms)); }).code() == errc::timeout);
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    return thrown_by([&] { choice.get(slow, {.until = {}, .stop = stop.get_token()}); }).code();
  });
  stop.request_stop();
  CHECK(waiting.get() == errc::cancelled);
  go.set_value();
  CHECK(choice.get([] { return 8; }, {}) == 7); // the choice that was begun is not lost
}

TEST_CASE("a choice that fails is made anew for the next", "[strategy][C10]") {
  choice_once<int> choice;
  const auto failing = []() -> int { throw error(errc::invalid_input, "no such input"); };
  for (int i = 0; i < 3; ++i)
    CHECK(thrown_by([&] { choice.get(failing, {}); }).code() == errc::invalid_input);
  CHECK_FALSE(choice.if_any());
  CHECK(choice.get([] { return 3; }, at_most(10s)) == 3);
  CHECK(choice.get(failing, {}) == 3);
}

TEST_CASE("a failure ends only the request that it was made for", "[strategy][C10]") {
  choice_once<int> choice;
  std::promise<void> go;
  std::atomic<bool> begun = false;
  const std::function<int()> failing = [&begun, ready = go.get_future().share()]() -> int {
    begun = true;
    ready.wait();
    throw error(errc::invalid_input, "no such input");
  };
  auto first = std::async(std::launch::async, [&] { return thrown_by([&] { choice.get(failing, {}); }).code(); });
  while (!begun)
    std::this_thread::yield();
  auto second = std::async(std::launch::async, [&] { return choice.get([] { return 5; }, {}); });
  go.set_value();
  CHECK(first.get() == errc::invalid_input);
  CHECK(second.get() == 5);
}
