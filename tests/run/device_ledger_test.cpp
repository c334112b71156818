// Who gets a device's memory, and who is told.
#include "run/device_ledger.hpp"
#include "support/catch.hpp"

#include <thread>

using namespace troupe;

namespace {

/// Accounts "a", "b", "c" with one ledger; `told` counts what each has been told.
struct three_accounts {
  explicit three_accounts(int64_t limit) : ledger(std::make_shared<device_ledger>(limit)) {}

  std::shared_ptr<device_ledger> ledger;
  int told_a = 0, told_b = 0, told_c = 0;
  std::unique_ptr<ledger_account> a = ledger->open([this] { ++told_a; });
  std::unique_ptr<ledger_account> b = ledger->open([this] { ++told_b; });
  std::unique_ptr<ledger_account> c = ledger->open([this] { ++told_c; });
};

} // namespace

TEST_CASE("a device's limit holds over all accounts, first come, first served", "[run][B2]") {
  three_accounts t(100);
  REQUIRE(t.a->take(60));
  REQUIRE_FALSE(t.b->take(50));
  CHECK(t.b->waits());
  CHECK(t.told_a == 1);
  CHECK(t.a->missing_elsewhere() == 10);
  CHECK_FALSE(t.c->missing_elsewhere()); // has nothing to give
  REQUIRE_FALSE(t.c->take(30));          // would fit, but does not pass
  t.a->give_back(10);
  CHECK(t.told_b == 1 + 1); // that c waits, and that it is its turn
  CHECK(t.a->missing_elsewhere() == 0);
  CHECK(t.b->take(50));
  CHECK_FALSE(t.b->waits());
  CHECK(t.a->missing_elsewhere() == 30);
  t.a->give_back(50);
  CHECK(t.c->take(30));
  CHECK_FALSE(t.b->missing_elsewhere());
}

TEST_CASE("an account that leaves the queue lets those behind it go on", "[run][B2]") {
  three_accounts t(100);
  REQUIRE(t.a->take(60));
  REQUIRE_FALSE(t.b->take(50));
  REQUIRE_FALSE(t.c->take(40));
  const int told = t.told_c;
  SECTION("by itself") {
    t.b->withdraw();
  }
  SECTION("by its end") {
    t.b = nullptr;
  }
  CHECK(t.told_c == told + 1);
  CHECK(t.c->take(40));
}

TEST_CASE("the end of an account gives back what it held, and tells who waits", "[run][B2]") {
  three_accounts t(100);
  REQUIRE(t.a->take(60));
  REQUIRE_FALSE(t.b->take(50));
  const int told = t.told_b;
  t.a = nullptr;
  CHECK(t.told_b == told + 1);
  CHECK(t.b->take(100));
}

TEST_CASE("nobody waits for memory that others cannot give", "[run][B2]") {
  three_accounts t(100);
  REQUIRE(t.a->take(60));
  CHECK_FALSE(t.a->take(50)); // its own are in the way
  CHECK_FALSE(t.a->waits());
  t.a->take_anyway(50);
  CHECK_FALSE(t.b->take(10));
  CHECK(t.b->waits());
  t.a->give_back(20);
  CHECK(t.b->take(10));
}

TEST_CASE("accounts of several threads keep the limit, and none waits for ever", "[run][B2]") {
  const auto ledger = std::make_shared<device_ledger>(100);
  std::atomic<int64_t> used{0}, most{0};
  const auto work = [&](int64_t bytes) {
    std::atomic<bool> told{false};
    const auto account = ledger->open([&] { told = true; });
    for (int round = 0; round < 200; ++round) {
      while (!account->take(bytes))
        while (!told.exchange(false))
          std::this_thread::yield();
      const int64_t now = used += bytes;
      for (int64_t before = most; before < now && !most.compare_exchange_weak(before, now);) {
      }
      used -= bytes;
      account->give_back(bytes);
    }
  };
  std::vector<std::thread> threads;
  for (const int64_t bytes : {30, 50, 70, 100})
    threads.emplace_back(work, bytes);
  for (std::thread& t : threads)
    t.join();
  CHECK(most <= 100);
}
