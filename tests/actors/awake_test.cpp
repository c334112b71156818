// Which thread runs an actor that is woken: the sender's, or one that is lent to it. No message may be lost in between.
#include "actors/awake.hpp"
#include "support/catch.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

using namespace troupe::actors;

namespace {

using counter = caf::typed_actor<caf::reacts_to<int32_t>>;

/// What a counter has heard, and on which threads.
struct heard {
  std::mutex mutex;
  std::vector<std::thread::id> on;
  std::atomic<int> count{0};
};

counter::behavior_type counting(counter::pointer, heard* all) {
  return {[all](int32_t) {
    const std::lock_guard lock(all->mutex);
    all->on.push_back(std::this_thread::get_id());
    ++all->count;
  }};
}

/// A counter that no thread of the system has begun with any more.
struct idle_counter {
  heard all; // first: messages may be on their way until the system has ended
  caf::actor_system_config config;
  caf::actor_system system{config};
  counter actor = system.spawn<caf::lazy_init>(counting, &all);

  void send(run_on where) { send_here(actor, int32_t{1}, where); }
  caf::strong_actor_ptr address() const { return caf::actor_cast<caf::strong_actor_ptr>(actor); }
  /// Waits until that many messages have been handled.
  void await(int count) const {
    for (int i = 0; i < 10'000 && all.count < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(all.count == count);
  }
  /// The thread on which a message of another thread is handled.
  std::thread::id thread_of_other(run_on where) {
    std::thread::id other;
    std::thread([&] {
      other = std::this_thread::get_id();
      send(where);
    }).join();
    return other;
  }
};

} // namespace

TEST_CASE("a message wakes an actor on the sender's thread", "[actors][A5]") {
  idle_counter c;
  c.send(run_on::sender);
  c.send(run_on::lent); // no thread is lent
  CHECK(c.all.on == std::vector(2, std::this_thread::get_id()));
}

TEST_CASE("a message wakes an actor on the thread that is lent to it", "[actors][A5]") {
  idle_counter c, other;
  {
    lent_thread mine(c.address());
    c.thread_of_other(run_on::lent);
    CHECK(c.all.count == 0); // until this thread looks
    mine.run_if_woken();
    mine.run_if_woken();
    CHECK(c.all.on == std::vector{std::this_thread::get_id()});

    const std::thread::id sender = c.thread_of_other(run_on::sender);
    CHECK(c.all.on.back() == sender);
    const std::thread::id stranger = other.thread_of_other(run_on::lent); // lent to another actor
    CHECK(other.all.on == std::vector{stranger});

    c.thread_of_other(run_on::lent);
    c.thread_of_other(run_on::lent); // after the first in the mailbox
  }
  c.await(4); // the end of lending leaves the rest to the scheduler
  const std::lock_guard lock(c.all.mutex);
  CHECK(c.all.on.back() != std::this_thread::get_id());
}

TEST_CASE("an actor is left to the scheduler where no thread is lent to it, if the sender says so", "[actors][A5]") {
  idle_counter c;
  c.send(run_on::lent_or_scheduler);
  c.await(1);
  {
    lent_thread mine(c.address());
    c.thread_of_other(run_on::lent_or_scheduler);
    mine.run_if_woken();
  }
  const std::lock_guard lock(c.all.mutex);
  CHECK(c.all.on.size() == 2);
  CHECK(c.all.on.front() != std::this_thread::get_id());
  CHECK(c.all.on.back() == std::this_thread::get_id());
}

TEST_CASE("of several threads that are lent to an actor none is waited for", "[actors][A5]") {
  idle_counter c;
  lent_thread one(c.address());
  std::thread::id sender;
  std::thread([&] {
    const lent_thread two(c.address());
    sender = c.thread_of_other(run_on::lent);
  }).join();
  CHECK(c.all.on == std::vector{sender});
  c.thread_of_other(run_on::lent); // one again
  one.run_if_woken();
  CHECK(c.all.on.back() == std::this_thread::get_id());
}

TEST_CASE("threads beyond the places of lent ones do without", "[actors][A5]") {
  idle_counter busy, c;
  std::vector<std::unique_ptr<lent_thread>> all;
  for (int i = 0; i < 40; ++i)
    all.push_back(std::make_unique<lent_thread>(busy.address()));
  lent_thread late(c.address());
  const std::thread::id sender = c.thread_of_other(run_on::lent);
  late.run_if_woken();
  CHECK(c.all.on == std::vector{sender});
}

TEST_CASE("no message is lost while threads are lent and end", "[actors][A5]") {
  constexpr int senders = 3, each = 20'000;
  idle_counter c;
  {
    std::atomic<bool> stop{false};
    std::jthread lends([&] {
      while (!stop) {
        lent_thread mine(c.address());
        for (int i = 0; i < 20; ++i)
          mine.run_if_woken();
      }
    });
    {
      std::vector<std::jthread> all;
      for (int s = 0; s < senders; ++s)
        all.emplace_back([&] {
          for (int i = 0; i < each; ++i)
            c.send(run_on::lent);
        });
    }
    stop = true;
  }
  c.await(senders * each); // the rest is the scheduler's
}
