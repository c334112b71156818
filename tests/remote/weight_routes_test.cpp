// Which worker gets a weight from whom, as a session's process decides it.
#include "remote/weight_routes.hpp"
#include "support/catch.hpp"

#include <random>

using namespace troupe;
using namespace troupe::remote;

namespace {

using id = weight_routes::worker_id;

constexpr hash128 w{1, 1}, other{2, 2};

/// Routes, and the messages to workers: "b<a" where b is to pull from a, "a<" where it is to pull from the process.
struct routes_test {
  weight_routes routes;
  std::vector<std::string> told;
  std::map<std::string, id> workers;

  routes_test() { routes.open(w); }
  void join(const std::string& name) {
    workers[name] = routes.join(name, [this, name](const weight_source& s) { told.push_back(name + "<" + s.peer); });
  }
  void want(const std::string& name, weight_fault fault = weight_fault::none, const hash128& content = w) {
    routes.want(workers.at(name), {content, fault});
  }
  void have(const std::string& name) { routes.have(workers.at(name), {{{w, hash128{3, workers.at(name)}}}}); }
  void give_up(const std::string& name) { routes.give_up(workers.at(name), w); }
  void leave(const std::string& name) { routes.leave(workers.at(name)); }
  /// Returns the messages since the last call.
  std::vector<std::string> news() { return std::exchange(told, {}); }
};

using lines = std::vector<std::string>;

} // namespace

TEST_CASE("a weight leaves the process once and spreads like a tree", "[remote][D3]") {
  routes_test t;
  for (const char* name : {"a", "b", "c", "d", "e"})
    t.join(name);
  for (const char* name : {"a", "b", "c", "d", "e"})
    t.want(name);
  CHECK(t.news() == lines{"a<"});
  t.have("a");
  CHECK(t.news() == lines{"b<a"});
  t.have("b");
  CHECK(t.news() == lines{"c<a", "d<b"});
  t.have("d");
  CHECK(t.news() == lines{"e<b"});
  t.have("c");
  t.have("e");
  CHECK(t.news().empty());
}

TEST_CASE("a worker that has a weight already passes it on under its key", "[remote][D3]") {
  routes_test t;
  t.join("a");
  t.have("a");
  weight_source told;
  const id b = t.routes.join("b", [&](const weight_source& s) { told = s; });
  t.routes.want(b, {w, {}});
  CHECK(told.peer == "a");
  CHECK(told.content == w);
  CHECK(told.key == hash128{3, t.workers.at("a")});
}

TEST_CASE("a worker whose source fails gets the weight from the process", "[remote][D5]") {
  routes_test t;
  for (const char* name : {"a", "b", "c"})
    t.join(name);
  t.have("a");
  const auto again = [&] { // another time, as if it were the next weight
    t.give_up("b");
    t.want("b");
    return t.news();
  };
  SECTION("one that has it no more is not named again") {
    t.want("b");
    t.want("b", weight_fault::refused);
    CHECK(t.news() == lines{"b<a", "b<"});
    t.want("c");
    t.have("b");
    CHECK(t.news() == lines{"c<b"});
    t.have("a"); // it has it again
    t.have("c");
    CHECK(again() == lines{"b<a"});
  }
  SECTION("one that is useless is not named to this worker again") {
    t.want("b");
    t.want("b", weight_fault::useless);
    CHECK(t.news() == lines{"b<a", "b<"});
    CHECK(again() == lines{"b<"});
    t.want("c");
    CHECK(t.news() == lines{"c<a"});
    t.leave("a");
    t.join("a"); // a new one
    t.have("a");
    CHECK(again() == lines{"b<a"});
  }
}

TEST_CASE("a worker that waits for a weight is answered when the transfer ends in any way", "[remote][D5]") {
  routes_test t;
  for (const char* name : {"a", "b", "c"})
    t.join(name);
  t.want("a");
  t.want("b");
  CHECK(t.news() == lines{"a<"});
  SECTION("the receiver leaves") {
    t.leave("a");
    CHECK(t.news() == lines{"b<"});
  }
  SECTION("the receiver gives up") {
    t.give_up("a");
    CHECK(t.news() == lines{"b<"});
  }
  SECTION("the plan is gone") {
    t.routes.open(w); // another one
    t.routes.close(w);
    CHECK(t.news().empty());
    t.routes.close(w);
    CHECK(t.news() == lines{"b<"});
    t.want("c"); // the process tells it that there is none
    CHECK(t.news() == lines{"c<"});
  }
  SECTION("the source of the next leaves") {
    t.have("a");
    t.want("c");
    CHECK(t.news() == lines{"b<a"}); // c waits
    t.leave("a");
    CHECK(t.news().empty()); // b will say that it has failed
    t.want("b", weight_fault::useless);
    t.have("b");
    CHECK(t.news() == lines{"b<", "c<b"});
  }
  SECTION("who waits leaves, or gives up") {
    t.want("c");
    t.leave("b");
    t.give_up("c");
    t.have("a");
    CHECK(t.news().empty());
  }
}

TEST_CASE("messages of workers about weights that are not on offer take no room", "[remote][D2]") {
  routes_test t;
  t.join("a");
  t.join("b");
  t.routes.have(t.workers.at("a"), {{{other, {}}}});
  t.routes.give_up(t.workers.at("a"), other);
  t.want("b", weight_fault::none, other);
  CHECK(t.news() == lines{"b<"});
  t.want("b", weight_fault::useless, other);
  CHECK(t.news() == lines{"b<"});
  t.leave("b");
  t.want("b");
  t.have("b");
  t.want("a");
  t.want("a"); // twice: told twice, it is its own fault
  CHECK(t.news() == lines{"a<", "a<"});
}

TEST_CASE("whatever happens to workers, each that asks is answered once", "[remote][D5]") {
  std::minstd_rand random(11);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (int round = 0; round < 300; ++round) {
    weight_routes routes;
    routes.open(w);
    std::map<id, std::vector<std::string>> told; // answers that the worker has not acted on
    std::set<id> asking;                         // waiting or pulling
    std::vector<id> alive;
    for (size_t i = 0, n = 2 + below(6); i < n; ++i) {
      const auto self = std::make_shared<id>();
      *self = routes.join(std::to_string(i), [&told, self](const weight_source& s) { told[*self].push_back(s.peer); });
      alive.push_back(*self);
    }
    for (const id each : alive) {
      routes.want(each, {w, {}});
      asking.insert(each);
    }
    while (!asking.empty()) {
      std::vector<id> able; // have an answer
      for (const id each : asking) {
        REQUIRE(told[each].size() <= 1);
        if (!told[each].empty())
          able.push_back(each);
      }
      REQUIRE_FALSE(able.empty());
      const id next = able[below(able.size())];
      const bool is_peers = !std::exchange(told[next], {})[0].empty();
      switch (below(5)) {
        case 0:
          if (is_peers) {
            routes.want(next, {w, below(2) ? weight_fault::refused : weight_fault::useless});
            REQUIRE(told[next] == std::vector<std::string>{""});
            break;
          }
          [[fallthrough]];
        case 1:
          routes.give_up(next, w);
          asking.erase(next);
          break;
        case 2:
          routes.leave(next);
          asking.erase(next);
          break;
        default: routes.have(next, {{{w, {next, 0}}}}); asking.erase(next);
      }
    }
  }
}
