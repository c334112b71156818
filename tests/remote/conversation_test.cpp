// What a session hears of a device of another host, and when.
#include "cpu/cpu_device.hpp"
#include "remote/remote_device.hpp"
#include "support/catch.hpp"
#include "support/chunk_works.hpp"
#include "support/grammar_talk.hpp"
#include "support/link_pair.hpp"

#include <future>

using namespace troupe;
using namespace troupe::remote;
using namespace std::chrono_literals;

// Else devices of the host that drop the rest of the execution are heard of first, and seem to be the cause.
TEST_CASE("a failure does not wait for the values of earlier chunks", "[remote][D5]") {
  test::link_pair pair;
  const link_ptr far = pair.end(1);
  constexpr int64_t size = 200; // values that are pulled, and this worker gives none
  const device_info cpu = make_cpu_device("cpu")->info();
  const test::round_trip m = test::there_and_back(cpu, size);
  const auto answer = [far, first = m.first](const message& said) {
    if (const auto* asked = std::get_if<ping>(&said))
      return far->send(encode(pong{asked->request, now_ns(), std::vector<uint8_t>(asked->answer_bytes)}));
    if (const auto* order = std::get_if<install>(&said))
      return far->send(encode(installed{order->device, order->bound_plan, {}}));
    const auto* work = std::get_if<run_chunk>(&said);
    if (!work)
      return;
    chunk_made made{.execution = work->execution, .chunk = work->chunk, .result = {}, .downloads = {}};
    if (work->chunk == first)
      made.downloads = {{.from = origin::sender,
                         .type = dtype::float32,
                         .dims = {size, size},
                         .key = new_key(),
                         .size = size * size * 4}};
    else
      made.result = {.code = errc::device_failed, .message = "out of order"};
    far->send(encode(made));
  };
  far->receive({.on_frame = [answer](const frame& f) { answer(decode(f)); }, .on_closed = [](const std::string&) {}});
  const auto client =
      host_client::make(pair.end(0), "w", "w:1", {.version = "0.1.0", .devices = {cpu}}, std::make_shared<outbox>());
  const auto device = make_remote_device(client, 0);
  device->install(m.bound, 0);
  std::promise<chunk_result> first_ended, last_ended;
  auto first = first_ended.get_future(), last = last_ended.get_future();
  const tensor x(dtype::float32, {size, size});
  device->submit(test::work_of(*m.bound, m.first, {x}), [&](chunk_result r) { first_ended.set_value(std::move(r)); });
  device->submit(test::work_of(*m.bound, m.last, {x, x}), [&](chunk_result r) { last_ended.set_value(std::move(r)); });
  REQUIRE(last.wait_for(20s) == std::future_status::ready);
  CHECK(last.get().message == "out of order");
  CHECK(first.wait_for(0s) != std::future_status::ready);
  pair.stop();
  REQUIRE(first.wait_for(20s) == std::future_status::ready);
  CHECK(first.get().code == errc::device_lost);
}
