// Virtual time: when events happen, and in which order.
#include "sim/event_queue.hpp"

#include "support/catch.hpp"

using namespace troupe::sim;

TEST_CASE("events happen in the order of their times, at one time as they were scheduled", "[sim]") {
  event_queue events;
  std::vector<std::pair<int, double>> happened;
  const auto note = [&](int which) { return [&, which] { happened.emplace_back(which, events.now()); }; };
  events.at(2, note(4));
  for (int i = 0; i < 4; ++i)
    events.at(1, note(i));
  events.at(2, [&] {
    events.at(1, note(6)); // the past is now
    events.after(0.5, note(7));
    note(5)();
  });
  while (events.step()) {
  }
  CHECK(happened ==
        std::vector<std::pair<int, double>>{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {6, 2}, {7, 2.5}});
}
