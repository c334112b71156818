// Which account gets a device's memory, and which accounts are told.
#include "run/device_ledger.hpp"
#include "support/catch.hpp"

using namespace troupe;

namespace {

/// Accounts "a", "b", "c" with one ledger.
struct three_accounts {
  explicit three_accounts(int64_t limit) : ledger(limit) {}

  bool take(device_ledger::account who, int64_t bytes) { return ledger.take(who, bytes).taken; }

  device_ledger ledger;
  const device_ledger::account a = ledger.open(), b = ledger.open(), c = ledger.open();
};

using told = device_ledger::told;

} // namespace

TEST_CASE("a device's limit holds over all accounts, first come, first served", "[run][B2]") {
  three_accounts t(100);
  REQUIRE(t.take(t.a, 60));
  const device_ledger::answer refused = t.ledger.take(t.b, 50);
  REQUIRE_FALSE(refused.taken);
  CHECK(refused.others == told{t.a, t.c});
  CHECK(t.ledger.waits(t.b));
  CHECK(t.ledger.missing_elsewhere(t.a) == 10);
  CHECK_FALSE(t.ledger.missing_elsewhere(t.c));   // has nothing to give
  REQUIRE_FALSE(t.take(t.c, 30));                 // would fit, but does not pass
  CHECK(t.ledger.take(t.b, 45).others == told{}); // less than it waited for is no news
  CHECK(t.ledger.take(t.b, 50).others == told{t.a, t.c});
  CHECK(t.ledger.give_back(t.a, 5) == told{});
  CHECK(t.ledger.give_back(t.a, 5) == told{t.b}); // its turn
  CHECK(t.ledger.missing_elsewhere(t.a) == 0);
  CHECK(t.take(t.b, 50));
  CHECK_FALSE(t.ledger.waits(t.b));
  CHECK(t.ledger.missing_elsewhere(t.a) == 30);
  t.ledger.give_back(t.a, 50);
  CHECK(t.take(t.c, 30));
  CHECK_FALSE(t.ledger.missing_elsewhere(t.b));
}

TEST_CASE("an account that leaves the queue lets those after it go on", "[run][B2]") {
  three_accounts t(100);
  REQUIRE(t.take(t.a, 60));
  REQUIRE_FALSE(t.take(t.b, 50));
  REQUIRE_FALSE(t.take(t.c, 40));
  SECTION("by itself") {
    CHECK(t.ledger.withdraw(t.b) == told{t.c});
  }
  SECTION("by its end") {
    CHECK(t.ledger.close(t.b) == told{t.c});
  }
  CHECK(t.take(t.c, 40));
}

TEST_CASE("the end of an account gives back what it held, and tells those that wait", "[run][B2]") {
  three_accounts t(100);
  REQUIRE(t.take(t.a, 60));
  REQUIRE_FALSE(t.take(t.b, 50));
  CHECK(t.ledger.close(t.a) == told{t.b});
  CHECK(t.take(t.b, 100));
}

TEST_CASE("no account waits for memory that others cannot give", "[run][B2]") {
  three_accounts t(100);
  REQUIRE(t.take(t.a, 60));
  CHECK_FALSE(t.take(t.a, 50)); // its own are in the way
  CHECK_FALSE(t.ledger.waits(t.a));
  t.ledger.take_anyway(t.a, 50);
  CHECK_FALSE(t.take(t.b, 10));
  CHECK(t.ledger.waits(t.b));
  t.ledger.give_back(t.a, 20);
  CHECK(t.take(t.b, 10));
}

TEST_CASE("a claim waits its turn until enough has been given back", "[run][B2]") {
  three_accounts t(100);
  CHECK(t.ledger.claim(t.c, 50) == told{}); // no account holds anything
  CHECK_FALSE(t.ledger.waits(t.c));
  REQUIRE(t.take(t.a, 60));
  CHECK(t.ledger.claim(t.c, 25) == told{t.a, t.b});
  CHECK(t.ledger.missing_elsewhere(t.a) == 25);
  CHECK_FALSE(t.take(t.b, 10)); // comes after it
  CHECK_FALSE(t.ledger.may_take(t.c));
  CHECK(t.ledger.give_back(t.a, 30) == told{t.c});
  CHECK(t.ledger.may_take(t.c));
  CHECK(t.ledger.withdraw(t.c) == told{t.b});
  CHECK(t.take(t.b, 10));
  CHECK(t.ledger.claim(t.c, 1000) == told{t.a, t.b}); // all that there is
  CHECK(t.ledger.missing_elsewhere(t.a) == 40);
  CHECK(t.ledger.claim(t.c, 0) == told{t.a, t.b});
  CHECK_FALSE(t.ledger.somebody_waits());
}
