// Claims and answers of a worker that cannot be true end the link, with an error that says why.
#include "cpu/cpu_device.hpp"
#include "remote/remote_device.hpp"
#include "support/catch.hpp"
#include "support/chunk_works.hpp"
#include "support/fabricated_gpu.hpp"
#include "support/grammar_talk.hpp"
#include "support/link_pair.hpp"
#include "support/thrown.hpp"
#include "wire/facts.hpp"

#include <fmt/format.h>
#include <future>

using namespace troupe;
using namespace troupe::remote;
using Catch::Contains;

namespace {

device_info a_cpu() {
  return make_cpu_device("cpu")->info();
}

error refusal_of(std::vector<device_info> devices) {
  const frame said = encode(welcome{.version = "0.1.0", .devices = std::move(devices)});
  return test::thrown_by([&] { decode(said); });
}

device_info changed(const std::function<void(device_info&)>& change) {
  device_info d = a_cpu();
  change(d);
  return d;
}

} // namespace

TEST_CASE("a worker lends no devices that cannot be", "[remote][D2]") {
  const auto refused = [](const device_info& d) {
    const error e = refusal_of({a_cpu(), d});
    INFO(e.what());
    return e.code() == errc::invalid_input;
  };
  CHECK_NOTHROW(decode(encode(welcome{.version = "0.1.0", .devices = {a_cpu(), a_cpu()}})));
  CHECK(refused(changed([](device_info& d) { d.kind = device_kind::control; })));
  CHECK(refused(changed([](device_info& d) { d.kind = device_kind::vulkan; }))); // without features
  CHECK(refused(changed([](device_info& d) { d.host_memory = false; })));        // a CPU
  CHECK(refused(changed([](device_info& d) {
    d.gpu = testing::h100_like();
    d.host_memory = false;
  })));
  CHECK(refused(changed([](device_info& d) { d.memory_bytes = INT64_MAX; })));
  CHECK(refused(changed([](device_info& d) { d.name = "c\033[31mpu"; })));
  CHECK(refused(changed([](device_info& d) { d.description = "a\nb"; })));
}

TEST_CASE("a worker lends a limited number of devices", "[remote][D2]") {
  std::vector<device_info> many(max_lent_devices, a_cpu());
  CHECK_NOTHROW(decode(encode(welcome{.version = "0.1.0", .devices = many})));
  many.push_back(a_cpu());
  CHECK_THAT(refusal_of(many).what(), Contains(fmt::format("{} devices", max_lent_devices + 1)));
}

TEST_CASE("a worker that answers another question than it was asked loses its link", "[remote][D2]") {
  test::link_pair pair;
  const link_ptr far = pair.end(1);
  far->receive({.on_frame =
                    [far](const frame& f) {
                      const message m = decode(f);
                      if (const auto* asked = std::get_if<ping>(&m))
                        far->send(encode(stats_told{asked->request, {}}));
                    },
                .on_closed = [](const std::string&) {}});
  const error e = test::thrown_by([&] {
    host_client::make(pair.end(0), "w", "w:1", {.version = "0.1.0", .devices = {a_cpu()}}, std::make_shared<outbox>());
  });
  CHECK(e.code() == errc::device_lost);
  CHECK_THAT(e.what(), Contains("another kind") && !Contains("std::get"));
  pair.stop();
}

namespace {

/// Returns what comes of a chunk whose worker says that it keeps a value of these dims, instead of sending it.
chunk_result result_of_keeping(const shape& dims) {
  test::link_pair pair;
  const link_ptr far = pair.end(1);
  const auto answer = [far, dims](const message& m) {
    if (const auto* asked = std::get_if<ping>(&m))
      far->send(encode(pong{asked->request, now_ns(), std::vector<uint8_t>(asked->answer_bytes)}));
    else if (const auto* order = std::get_if<install>(&m))
      far->send(encode(installed{order->device, order->bound_plan, {}}));
    else if (const auto* work = std::get_if<run_chunk>(&m))
      far->send(encode(chunk_made{.execution = work->execution,
                                  .chunk = work->chunk,
                                  .result = {},
                                  .downloads = {{.from = origin::kept, .type = dtype::float32, .dims = dims}}}));
  };
  far->receive({.on_frame = [answer](const frame& f) { answer(decode(f)); }, .on_closed = [](const std::string&) {}});
  const auto client = host_client::make(pair.end(0), "w", "w:1", {.version = "0.1.0", .devices = {a_cpu()}},
                                        std::make_shared<outbox>());
  const auto device = make_remote_device(client, 0);
  const test::round_trip m = test::there_and_back(device->info());
  device->install(m.bound, 0);
  std::promise<chunk_result> ended;
  device->submit(test::work_of(*m.bound, m.first, {tensor(dtype::float32, {8, 8})}),
                 [&](chunk_result r) { ended.set_value(std::move(r)); });
  chunk_result result = ended.get_future().get();
  pair.stop();
  return result;
}

} // namespace

TEST_CASE("a worker that keeps another value than its chunk makes fails the chunk", "[remote][D2]") {
  const chunk_result result = result_of_keeping({8, 9});
  CHECK(result.code == errc::device_failed);
  CHECK_THAT(result.message, Contains("host 'w' keeps another value") && Contains("[8, 9]"));
}

TEST_CASE("a worker that keeps what it was to send fails the chunk", "[remote][D2]") {
  const chunk_result result = result_of_keeping({8, 8});
  CHECK(result.code == errc::device_failed);
  CHECK_THAT(result.message, Contains("host 'w' keeps a value that it was to send"));
}

TEST_CASE("any device of another host may hang", "[remote][C11]") {
  test::far_host host({make_cpu_device("cpu")});
  CHECK(make_remote_device(host.connect(), 0)->may_hang());
}
