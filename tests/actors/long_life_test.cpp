// Engines that live for long keep nothing of what has ended.
#include "support/alternating_runs.hpp"
#include "support/bound_values.hpp"

#include <filesystem>
#include <malloc.h>
#include <thread>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Returns the bytes that one of `count` calls leaves in use; 0 under a sanitizer, which has a heap of its own.
template <class Call>
double bytes_left_by(int count, Call&& call) {
  const auto in_use = [] {
    const struct mallinfo2 heap = mallinfo2();
    return static_cast<double>(heap.uordblks + heap.hblkhd);
  };
  for (int i = 0; i < count; ++i)
    call(); // tables and queues grow to their usual sizes
  const double before = in_use();
  for (int i = 0; i < count; ++i)
    call();
  return (in_use() - before) / count;
}

int threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

} // namespace

TEST_CASE("sessions that end leave nothing with their devices", "[actors][C11]") {
  engine e({.devices = {"null"}});
  const graph source = chain(1);
  CHECK(bytes_left_by(3000, [&] { e.load(source).run(six); }) < 100);
}

TEST_CASE("values that come and go leave nothing with their device", "[actors][C11]") {
  engine e({.devices = {"null"}});
  CHECK(bytes_left_by(10'000, [&] { e.fetch(e.put(six.at("x"), "null")); }) < 20);
}

TEST_CASE("devices that are lost and come back leave no threads", "[actors][C11]") {
  engine e(engine_of({reference("a"), reference("b")}));
  const session s = e.load(chain(4), alternating);
  const auto come_back = [&] {
    lose_devices(e, called("b"), "the test took it");
    s.run(six);
    add_devices(e, {reference("b")});
    CHECK(devices_of(s.run(six)) == names{"a", "b"});
  };
  come_back();
  const int before = threads();
  for (int i = 0; i < 20; ++i)
    come_back();
  for (int i = 0; i < 200 && threads() > before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(threads() <= before);
}
