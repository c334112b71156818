// The ledger of several threads: that accounts are told, and that the limit holds.
#include "run/shared_ledger.hpp"
#include "support/catch.hpp"

#include <thread>

using namespace troupe;

TEST_CASE("accounts are told of changes that concern them, and give all back by their end", "[run][B2]") {
  const auto ledger = std::make_shared<shared_ledger>(100);
  int told_a = 0, told_b = 0;
  std::unique_ptr<ledger_account> a = ledger->open([&] { ++told_a; }), b = ledger->open([&] { ++told_b; });
  REQUIRE(a->take(60));
  CHECK_FALSE(b->missing_elsewhere());
  REQUIRE_FALSE(b->take(50));
  CHECK(b->waits());
  CHECK(told_a == 1);
  CHECK(a->missing_elsewhere() == 10);
  b->withdraw();
  CHECK_FALSE(b->waits());
  CHECK(told_a == 2);
  REQUIRE_FALSE(b->take(70));
  a = nullptr;
  CHECK(told_b == 1);
  CHECK(b->take(70));
  CHECK_FALSE(b->waits());
}

TEST_CASE("a claim from outside lasts until it is met, or taken back", "[run][B2]") {
  const auto ledger = std::make_shared<shared_ledger>(100);
  int told_a = 0, told_b = 0;
  std::unique_ptr<ledger_account> a = ledger->open([&] { ++told_a; }), b = ledger->open([&] { ++told_b; });
  REQUIRE(a->take(60));
  ledger->claim(20);
  CHECK(told_a == 1);
  CHECK(a->missing_elsewhere() == 20);
  REQUIRE_FALSE(b->take(30));
  a->give_back(20);
  CHECK(a->missing_elsewhere() == 0); // b has room and is told
  CHECK(told_b == 2);
  CHECK(b->take(30));
  ledger->claim(10);
  CHECK(b->missing_elsewhere() == 10);
  ledger->claim(0);
  CHECK_FALSE(b->missing_elsewhere());
}

TEST_CASE("accounts of several threads keep the limit, and none waits for ever", "[run][B2]") {
  const auto ledger = std::make_shared<shared_ledger>(100);
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
