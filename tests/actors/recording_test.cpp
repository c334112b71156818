// Sessions of engines, recorded while their devices fail, and done again.
#include "loader/models.hpp"
#include "recording/replay.hpp"
#include "support/bound_values.hpp"
#include "support/control_models.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

const shape three{3};

engine recorded_engine(const scratch_folder& folder, std::vector<device_factory> devices, size_t memory = 0) {
  return make_engine({.devices = {},
                      .device_timeout = std::chrono::minutes(1),
                      .recorder = {.folder = folder.path().string(), .memory = memory}},
                     {.custom_devices = std::move(devices)});
}

/// Returns the recordings in a folder.
std::vector<std::filesystem::path> recordings_in(const scratch_folder& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    files.push_back(entry.path());
  return files;
}

/// Does all recordings of a folder again; returns how many runs were answered.
uint64_t replay_all(const scratch_folder& folder, const graph& source) {
  uint64_t runs = 0;
  for (const std::filesystem::path& file : recordings_in(folder)) {
    const recording::replay_result done =
        recording::replay(recording::read_recording(file), source, [](recording::device_facts&) {});
    CHECK(done.difference == "");
    CHECK(done.ended == "");
    runs += done.runs;
  }
  return runs;
}

} // namespace

TEST_CASE("recorded decoders whose devices are lost act the same again", "[actors][recording][B7]") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const scratch_folder folder;
    const uint64_t knows_from = seed % 2 == 0 ? 1 : fault_script::never;
    {
      engine e = recorded_engine(folder, {reference("a", {.die_at = 1 + seed % 10, .knows_from = knows_from}),
                                          reference("b", {.die_at = 2 + seed % 7}), reference("c")});
      bound_session sum =
          e.load(summing_model(three)).bind({{"next", "state"}}, {.checkpoint = seed % 3 == 0 ? seed % 4 : 0});
      for (uint64_t step = 1; step <= 12; ++step) {
        named_tensors inputs{{"x", filled(three, static_cast<float>(step))}};
        if (step == 1)
          inputs["state"] = filled(three, 0);
        sum.run(inputs);
      }
      CHECK(same(sum.fetch("next"), filled(three, 78)));
    }
    CHECK(replay_all(folder, summing_model(three)) >= 12);
  }
}

TEST_CASE("recorded loops whose devices are lost act the same again", "[actors][recording][A14]") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    const scratch_folder folder;
    {
      engine e = recorded_engine(
          folder, {reference("a", {.die_at = 3 + seed, .delay = std::chrono::microseconds(seed % 3 * 20)}),
                   reference("b", {.fail_at = 5 + 2 * seed}), reference("c")});
      const session s =
          e.load(growing_loop(), {.policy = placement_policy::round_robin, .strategy = strategy::none, .fuse = false});
      std::vector<std::future<run_result>> results;
      for (int run = 0; run < 6; ++run) {
        std::stop_source stop;
        results.push_back(s.run_async(growing_inputs(run % 4, 1e9F), {.cancel = stop.get_token()}));
        if (run % 5 == 4)
          stop.request_stop();
      }
      for (std::future<run_result>& result : results)
        capture([&] { result.get(); });
    }
    CHECK(replay_all(folder, growing_loop()) >= 5); // the one that is cancelled may not get to the session
  }
}

TEST_CASE("a recording in memory is written when a run fails", "[actors][recording]") {
  const scratch_folder folder;
  const graph source = summing_model(three);
  {
    engine e = recorded_engine(folder, {reference("a", {.fail_at = 1})}, size_t{16} << 20);
    const session s = e.load(source);
    const named_tensors inputs{{"x", filled(three, 1)}, {"state", filled(three, 0)}};
    s.run(inputs);
    CHECK_THROWS(s.run({})); // the caller's fault
    CHECK(recordings_in(folder).empty());
    CHECK_THROWS(s.run(inputs));
    CHECK(recordings_in(folder).size() == 1);
  }
  CHECK(replay_all(folder, source) == 3);
}

TEST_CASE("a folder for recordings that cannot be made is refused", "[actors][recording]") {
  const scratch_folder folder;
  folder.write("file", "");
  refuses([&] { engine({.devices = {"null"}, .recorder = {.folder = (folder.path() / "file/in").string()}}); },
          errc::io, "recordings");
}
