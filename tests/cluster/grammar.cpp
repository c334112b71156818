// Conversations with one thing wrong: troupe_grammar CONVERSATIONS SEED
//
// A session says to a worker, or a worker to a session, what a valid conversation says, but for one fault: a message
// left out, said twice, or before its turn; a number, an owner or a size that is another. Both sides run in this
// process, joined by links in memory. Exit status 1 if the other side crashes, hangs, does not end a link that it must
// end, keeps anything afterwards, or serves an honest session wrongly.
#include "cpu/cpu_device.hpp"
#include "support/grammar_talk.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace {

using namespace troupe;
using namespace std::chrono_literals;

/// Counts of things that the worker keeps for an honest session at rest.
struct holdings {
  size_t sessions = 0, values = 0;
  int64_t plans = 0;

  bool operator==(const holdings&) const = default;
};

class trial {
public:
  trial()
      : honest_(host_.connect()), far_(remote::make_remote_device(honest_, 0)),
        model_(test::there_and_back(far_->info())) {
    far_->install(model_.bound, 0);
  }

  int hold(size_t conversations, uint64_t seed) {
    const holdings before = held();
    for (size_t i = 0; i < conversations && problems_ < 10; ++i) {
      const bool as_worker = i % 8 == 7;
      test::fault_source random(seed * 1000003 + i);
      const std::string problem = as_worker ? test::speak_as_worker(random) : test::speak_as_session(host_, random);
      ++tally_[random.name()];
      if (!problem.empty())
        report(i, random.name(), problem);
      if (!as_worker && !host_.drop_newest())
        report(i, random.name(), "the worker keeps the session");
      if (i % 64 == 63 || i + 1 == conversations)
        check(i, random.name(), before);
    }
    for (const auto& [name, count] : tally_)
      fmt::print("{:48} {:7}\n", name, count);
    fmt::print("{} conversations, {} problems\n", conversations, problems_);
    return problems_ > 0 ? 1 : 0;
  }

private:
  void report(size_t i, const std::string& fault, const std::string& problem) {
    ++problems_;
    fmt::print("BAD: conversation {}: {}: {}\n", i, fault, problem);
  }

  holdings held() { return {host_.service().sessions(), host_.service().offered(), far_->stats().installed_plans}; }

  void check(size_t i, const std::string& fault, const holdings& before) {
    for (const auto end = std::chrono::steady_clock::now() + 20s;
         held() != before && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    if (const holdings now = held(); now != before)
      report(i, fault, fmt::format("{} sessions, {} values, {} plans are left", now.sessions, now.values, now.plans));
    if (!runs_right())
      report(i, fault, "an honest session's run is wrong");
  }

  bool runs_right() {
    chunk_work work{.bound_plan = model_.bound->id, .chunk = model_.first, .execution = ++executions_};
    tensor in(dtype::float32, model_.bound->dims[model_.bound->source->program->inputs[0]]);
    std::fill_n(in.mutable_data<float>(), in.size(), 3.f);
    work.uploads.push_back(std::make_shared<moved_value>(in));
    work.downloads.push_back(std::make_shared<moved_value>());
    const value_ref out = work.downloads[0];
    const auto ended = std::make_shared<std::promise<chunk_result>>();
    far_->submit(std::move(work), [ended](chunk_result r) { ended->set_value(std::move(r)); });
    auto result = ended->get_future();
    const bool right =
        result.wait_for(20s) == std::future_status::ready && result.get().ok() && out->host().values<float>()[0] == 3.f;
    far_->stop(executions_); // the rest of it is never run
    far_->end(executions_);
    return right;
  }

  test::far_host host_{{std::shared_ptr(make_cpu_device("a")), std::shared_ptr(make_cpu_device("b"))}};
  std::shared_ptr<remote::host_client> honest_;
  std::unique_ptr<device> far_;
  test::round_trip model_;
  execution_id executions_ = 0;
  std::map<std::string, size_t> tally_;
  size_t problems_ = 0;
};

} // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const size_t conversations = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  return trial().hold(conversations, seed);
}
