// One session cannot harm the others of its worker; a message carries no more than its limit.
#include "cpu/cpu_device.hpp"
#include "remote/remote_device.hpp"
#include "remote/served_executions.hpp"
#include "remote/session_budget.hpp"
#include "remote/values.hpp"
#include "support/catch.hpp"
#include "support/chunk_works.hpp"
#include "support/grammar_talk.hpp"
#include "support/graph_builder.hpp"

#include <fmt/format.h>
#include <future>

using namespace troupe;
using namespace troupe::remote;
using Catch::Contains;
using test::far_host;
using test::spoken_session;

namespace {

std::vector<uint8_t> bytes_of_floats(float x) {
  const std::vector<float> all(4, x);
  const auto* from = reinterpret_cast<const uint8_t*>(all.data());
  return {from, from + sizeof(float) * all.size()};
}

put_value put_under(const hash128& key, float x) {
  return {.key = key, .value = {.type = dtype::float32, .dims = {4}, .bytes = bytes_of_floats(x)}};
}

} // namespace

TEST_CASE("no session replaces what another one keeps", "[remote][D2]") {
  far_host host({make_cpu_device("cpu")});
  spoken_session victim(host), other(host);
  const hash128 key = new_key();
  victim.say(put_under(key, 1));
  REQUIRE_FALSE(victim.hear<was_put>()->why.failed());
  other.say(put_under(key, 2));
  CHECK_THAT(other.hear<was_put>()->why.message, Contains("a key that another value has"));
  other.say(release{{key}});
  other.say(ask_stats{});
  REQUIRE(other.hear<stats_told>());
  CHECK(victim.pull(key, 16) == bytes_of_floats(1));
  victim.say(release{{key}});
  CHECK(victim.pull(key, 16).empty());
}

TEST_CASE("a key that something is offered under stays so", "[remote][D2]") {
  piece_source all;
  all.offer({1, 1}, tensor(dtype::uint8, {4}));
  CHECK_FALSE(all.offer_new({1, 1}, tensor(dtype::uint8, {8})));
  CHECK(all.find({1, 1}).bytes() == 4);
  all.withdraw({1, 1});
  CHECK(all.offer_new({1, 1}, tensor(dtype::uint8, {8})));
}

TEST_CASE("a plan that is not here is forgotten without a job", "[remote][D2]") {
  session_budget budget;
  CHECK_FALSE(budget.take(forget_plan{7}));
  CHECK(budget.take(install{.plan = 7, .encoded = {.size = 1}}));
  CHECK(budget.take(forget_plan{7}));
  CHECK_FALSE(budget.take(forget_plan{7}));
}

TEST_CASE("a session may name the peers of a large cluster", "[remote][D2]") {
  session_budget budget;
  for (int i = 0; i < 4096; ++i)
    budget.take(weight_source{.peer = fmt::format("host{}:1", i)});
  CHECK_THROWS_WITH(budget.take(weight_source{.peer = "more:1"}), Contains("addresses"));
}

TEST_CASE("the values of one message are together shorter than a frame", "[remote][D2]") {
  piece_source offers;
  const tensor t(dtype::uint8, {message_bytes});
  CHECK(describe(t, {1, 1}, offers).from == origin::message);
  CHECK(describe(t, {1, 2}, offers, message_bytes - 1).from == origin::sender);
  CHECK(offers.find({1, 2}).defined());
  CHECK(inline_bytes <= static_cast<int64_t>(max_frame_bytes) / 2);
}

TEST_CASE("many short values of a chunk come back, in its message and beside it", "[remote][D2]") {
  constexpr int64_t parts = 300, part_bytes = message_bytes; // 18.75 MiB: more than a frame carries
  far_host host({make_cpu_device("cpu")});
  const auto far = make_remote_device(host.connect(), 0);
  test::graph_builder b;
  const value_id x = b.input("x", {parts, part_bytes}, dtype::uint8);
  std::vector<std::string> names;
  for (int64_t i = 0; i < parts; ++i)
    names.push_back(fmt::format("y{}", i));
  const std::vector<value_id> made = b.call("Split", {x}, names, test::attrs_of({{"axis", int64_t{0}}}));
  const auto p = make_plan(b.program(made), {far->info()}, {});
  const bound_plan_ptr bound = bind_segment(p, 0, {});
  far->install(bound, 0);
  tensor all(dtype::uint8, {parts, part_bytes});
  for (int64_t i = 0; i < parts; ++i)
    std::fill_n(all.mutable_data<uint8_t>() + i * part_bytes, part_bytes, static_cast<uint8_t>(i));
  const chunk_work work = test::work_of(*bound, 0, {all});
  std::promise<chunk_result> ended;
  far->submit(work, [&](chunk_result r) { ended.set_value(std::move(r)); });
  REQUIRE(ended.get_future().get().message == "");
  REQUIRE(work.downloads.size() == parts);
  for (int64_t i = 0; i < parts; ++i) {
    const auto made = work.downloads[static_cast<size_t>(i)]->host().values<uint8_t>();
    CHECK(made.size() == static_cast<size_t>(part_bytes));
    CHECK((made.front() == static_cast<uint8_t>(i) && made.back() == static_cast<uint8_t>(i)));
  }
}

TEST_CASE("a value that is too long to be in a message is refused there", "[remote][D2]") {
  const auto refusal = [](int64_t size) {
    std::string said;
    take({.type = dtype::uint8, .dims = {size}, .bytes = std::vector<uint8_t>(static_cast<size_t>(size))}, {}, {},
         [&](const tensor&, const failure& why) { said = why.message; });
    return said;
  };
  CHECK(refusal(message_bytes).empty());
  CHECK_THAT(refusal(message_bytes + 1), Contains("at most 65536"));
}

TEST_CASE("plans that run together have a limited number of chunks", "[remote][D2]") {
  const test::round_trip m = test::there_and_back(make_cpu_device("cpu")->info());
  const size_t chunks = m.bound->source->chunks.size();
  served_executions all(2 * chunks - 1);
  all.begin({1, 0}, m.bound, 0, m.first, 0);
  CHECK_THROWS_WITH(all.begin({2, 0}, m.bound, 0, m.first, 1), Contains("chunks are to run at a time"));
  CHECK(all.end({2, 0}));
  all.finish({1, 0}, m.first, true);
  CHECK(all.end({1, 0})); // gives its chunks back
  CHECK_NOTHROW(all.begin({3, 0}, m.bound, 0, m.first, 1));
}
