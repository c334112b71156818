// Recorded sessions, done again.
#include "recording/replay.hpp"

#include "loader/models.hpp"
#include "support/session_world.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

recording::replay_result replay_file(const std::filesystem::path& file, const session_trial& t) {
  return recording::replay(recording::read_recording(file), t.model, [](recording::device_facts&) {});
}

} // namespace

TEST_CASE("a recorded session, done again, asks for the same", "[recording][A13]") {
  const std::vector<session_trial> all = session_trials();
  const scratch_folder folder;
  const std::filesystem::path file = folder.path() / "session.recording";
  recording::replay_result sum;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    const session_trial& t = all[seed % all.size()];
    session_world(t, seed, file).play(60);
    const recording::replay_result done = replay_file(file, t);
    CHECK(done.difference == "");
    CHECK(done.ended == "");
    sum.events += done.events;
    sum.commands += done.commands;
    sum.runs += done.runs;
  }
  WARN(sum.events << " events, " << sum.commands << " commands, " << sum.runs << " runs");
  CHECK(sum.runs > 1000);
}

TEST_CASE("damaged recordings are refused, or differ, and do no harm", "[recording]") {
  const scratch_folder folder;
  const std::filesystem::path file = folder.path() / "session.recording";
  const std::vector<session_trial> all = session_trials();
  dice d(1);
  size_t refused = 0, differed = 0;
  for (uint32_t seed = 0; seed < 5; ++seed) {
    session_world(all[seed], seed, file).play(60);
    const recording::recorded_session whole = recording::read_recording(file);
    for (int i = 0; i < 400; ++i) {
      recording::recorded_session damaged = whole;
      for (size_t left = 1 + d.below(3); left > 0; --left)
        damaged.bytes[damaged.records_at + d.below(damaged.records().size())] = static_cast<uint8_t>(d.below(256));
      if (d.chance(0.1))
        damaged.bytes.resize(damaged.records_at + d.below(damaged.records().size()));
      const failure why = capture([&] {
        const auto done = recording::replay(damaged, all[seed].model, [](recording::device_facts&) {});
        differed += done.difference.empty() ? 0 : 1;
      });
      refused += why.failed() ? 1 : 0;
      CHECK(why.code != errc::io);
    }
  }
  WARN(refused << " of 2,000 refused, " << differed << " act otherwise");
  CHECK(refused > 100);
  CHECK(differed > 100);
}

TEST_CASE("a recording does not say which library is opened", "[recording]") {
  recording::recorded_session recorded;
  recorded.session.options.policy_plugin = "/nowhere/policy.so";
  const session_trial t = session_trials().front();
  const failure why = capture([&] { recording::replay(recorded, t.model, [](recording::device_facts&) {}); });
  CHECK(why.code == errc::invalid_argument);
  CHECK_THAT(why.message, Catch::Contains("/nowhere/policy.so"));
}
