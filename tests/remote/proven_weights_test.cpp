// A worker gives weights that it has to sessions that have them too: a session that only knows a weight's name gets
// nothing.
#include "cpu/cpu_device.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"
#include "support/spoken_session.hpp"
#include "wire/plans.hpp"

#include <algorithm>

using namespace troupe;
using test::far_host;
using test::graph_builder;
using test::spoken_session;

namespace {

constexpr int64_t size = 200; // its weight is too long for a plan

tensor matrix(float value) {
  tensor t(dtype::float32, {size, size});
  std::fill_n(t.mutable_data<float>(), t.size(), value);
  return t;
}

bound_plan_ptr product_with(const tensor& w, const device_info& far) {
  graph_builder g;
  const value_id x = g.input("x", {1, size});
  return bind_segment(make_plan(g.program({g.op("MatMul", {x, g.constant("W", w)})}), {far}, {}), 0, {});
}

/// The order of a session that names a weight which it does not have.
remote::install claim(spoken_session& s, const bound_plan_ptr& bound, const hash128& name) {
  const auto encoded = wire::encode_plan(*bound->source, [&](const weight&) { return name; });
  tensor blob(dtype::uint8, {static_cast<int64_t>(encoded.size())});
  std::copy(encoded.begin(), encoded.end(), blob.mutable_data<uint8_t>());
  const hash128 key = remote::new_key();
  s.offers().offers().offer(key, blob);
  return {.plan = 1, .encoded = {key, blob.bytes()}, .bound_plan = bound->id, .binding = wire::encode_binding(*bound)};
}

} // namespace

TEST_CASE("a weight's name alone does not give a session the weight", "[remote]") {
  far_host host({make_cpu_device("cpu")});
  spoken_session owner(host), thief(host);
  const tensor w = matrix(0.5f);
  REQUIRE_FALSE(owner.install(product_with(w, owner.devices()[0]), 0).failed());
  thief.say(claim(thief, product_with(matrix(0), thief.devices()[0]), content_hash(w)));
  const auto asked = thief.hear<remote::prove_weights>();
  REQUIRE(asked);
  CHECK(asked->contents == std::vector{content_hash(w)});
  SECTION("it proves nothing, and has nothing to send") {
    thief.say(remote::weight_proofs{asked->challenge, {hash128{}}});
    const auto answer = thief.hear<remote::installed>();
    REQUIRE(answer);
    CHECK(answer->why.failed());
  }
  SECTION("an answer to another challenge ends the link") {
    thief.say(remote::weight_proofs{remote::new_key(), {hash128{}}});
    CHECK(thief.await_end());
  }
}

TEST_CASE("a weight that the worker has is not sent by a session that shows it", "[remote]") {
  int64_t here = 0, sent = 0;
  remote::service_options how;
  how.log = [&](const std::string&, const remote::service_options::facts& facts) {
    for (const auto& [name, value] : facts)
      if (name == "bytes_here")
        here += std::stoll(value);
      else if (name == "bytes_from_session")
        sent += std::stoll(value);
  };
  far_host host({make_cpu_device("cpu")}, std::move(how));
  const tensor w = matrix(0.5f);
  const auto first = host.connect(), second = host.connect();
  const auto one = remote::make_remote_device(first, 0), other = remote::make_remote_device(second, 0);
  one->install(product_with(w, one->info()), 0);
  CHECK(sent == w.bytes());
  other->install(product_with(w, other->info()), 0);
  CHECK(here == w.bytes());
  CHECK(sent == w.bytes());
}

TEST_CASE("a proof is one of all bytes, for one challenge", "[remote]") {
  const tensor w = matrix(1), other = matrix(2);
  const hash128 challenge{1, 2};
  CHECK(remote::content_proof(challenge, remote::to_blob(w)) == remote::content_proof(challenge, remote::to_blob(w)));
  CHECK(remote::content_proof(challenge, remote::to_blob(w)) != remote::content_proof({1, 3}, remote::to_blob(w)));
  CHECK(remote::content_proof(challenge, remote::to_blob(w)) !=
        remote::content_proof(challenge, remote::to_blob(other)));
}
