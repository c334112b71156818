// Whether GPUs are proven to wait for each other, and how proofs are used.
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/shared_semaphores.hpp"
#include "vulkan/peer_proof.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;
using namespace troupe::vulkan;
using Catch::Contains;

namespace {

/// A GPU that shares all that is needed, as an H200 states that it does.
gpu_snapshot sharing_gpu() {
  gpu_snapshot s;
  s.name = "made up";
  s.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  s.memory_types = {{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0},
                    {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, 1}};
  s.heap_bytes = {int64_t{1} << 30, int64_t{1} << 30};
  s.extensions = {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME};
  s.host_pointer_alignment = 4096;
  s.exports_timelines = true;
  return s;
}

const std::vector<gpu_snapshot> three(3, sharing_gpu());
const std::vector<gpu_pair> all_pairs{{0, 1}, {0, 2}, {1, 2}};

/// A shell script in the place of the command; its arguments are the pairs.
trial_command script(const std::string& text) {
  return {"/bin/sh", "-c", text, "trials"};
}

struct verdict_file {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("troupe-peers-{}", getpid())).string();
  ~verdict_file() { std::filesystem::remove(path); }
};

std::vector<std::string> reasons(const std::vector<peer_verdict>& verdicts) {
  std::vector<std::string> all;
  for (const peer_verdict& v : verdicts)
    all.push_back(v.why_not);
  return all;
}

} // namespace

TEST_CASE("two GPUs that share timelines are proven, by hops to and fro", "[vulkan][peers]") {
  const shared_semaphores shared;
  const auto all = std::make_shared<const instance>(instance_options{.validation = gpus_are_validated()});
  CHECK(try_peers(all, {0, 0}) == "");
  CHECK(shared.early_ends() == 0);
  CHECK(all->messages() == std::vector<std::string>{});
}

TEST_CASE("two GPUs of which one does not wait for the other are no peers", "[vulkan][peers]") {
  const shared_semaphores shared(false);
  const auto all = std::make_shared<const instance>(instance_options{});
  CHECK_THAT(try_peers(all, {0, 0}), Contains("a GPU did not wait for the other"));
}

TEST_CASE("GPUs whose driver shares no timelines are not peers, and are not tried", "[vulkan][peers]") {
  std::vector<gpu_snapshot> gpus = three;
  gpus[1].exports_timelines = false;
  const std::vector<peer_verdict> found = prove_peers(gpus, {{0, 1}}, script("echo peers 0:1"), "");
  CHECK_THAT(found.at(0).why_not, Contains("shares no timelines"));
}

TEST_CASE("a trial that crashes, hangs or is killed counts against the pair that it was trying alone",
          "[vulkan][peers]") {
  const std::string yes = "for p in \"$@\"; do echo \"noise\"; echo \"peers $p \"; done";
  CHECK(reasons(prove_peers(three, all_pairs, script(yes), "")) == std::vector<std::string>{"", "", ""});
  const auto with = [](const std::string& end) {
    return script("for p in \"$@\"; do if [ $p = 0:2 ]; then " + end + "; fi; echo \"peers $p \"; done");
  };
  for (const auto& [end, why] :
       {std::pair("kill -SEGV $$; sleep 1", "signal 11"), std::pair("kill -KILL $$", "signal 9"),
        std::pair("exit 3", "status 3"), std::pair("exec sleep 60", "did not end"),
        std::pair("echo \"peers 0:2 they do not\"; continue", "they do not")}) {
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<std::string> found = reasons(prove_peers(three, all_pairs, with(end), "", 1s));
    CHECK(found[0].empty());
    CHECK_THAT(found[1], Contains(why));
    CHECK(found[2].empty());
    CHECK(std::chrono::steady_clock::now() - begin < 30s);
  }
  CHECK_THAT(prove_peers(three, {{0, 1}}, {}, "").at(0).why_not, Contains("not beside the library"));
  CHECK_THAT(prove_peers(three, {{0, 1}}, {"/no/such/troupe"}, "").at(0).why_not, Contains("does not start"));
}

TEST_CASE("results of trials are kept, ends of trials from outside are not", "[vulkan][peers]") {
  const verdict_file file;
  const auto prove = [&](const std::string& text) {
    return prove_peers(three, {{0, 1}}, script(text), file.path).at(0).why_not;
  };
  CHECK_THAT(prove("kill -KILL $$"), Contains("signal 9"));
  CHECK(prove("echo \"peers 0:1 \"") == "");
  CHECK(prove("echo \"peers 0:1 no more\"") == ""); // it is not asked again
  std::vector<gpu_snapshot> newer = three;
  newer[0].driver_version = 2;
  CHECK(prove_peers(newer, {{0, 1}}, script("echo \"peers 0:1 no more\""), file.path).at(0).why_not == "no more");
  CHECK(prove("exit 1") == "");
  std::ofstream(file.path) << "damaged\n";
  CHECK(prove("echo \"peers 0:1 not now\"") == "not now");
}

TEST_CASE("GPUs of one set all wait for each other", "[vulkan][peers]") {
  const std::vector<size_t> gpus{0, 1, 2, 3};
  const auto sets = [&](std::vector<peer_verdict> verdicts) { return peer_sets(gpus, verdicts); };
  CHECK(sets({}) == std::vector<uint32_t>{0, 0, 0, 0});
  CHECK(sets({{{0, 1}, ""}, {{2, 3}, ""}, {{1, 2}, "no"}}) == std::vector<uint32_t>{1, 1, 2, 2});
  CHECK(sets({{{0, 2}, ""}, {{0, 1}, "no"}, {{2, 3}, ""}}) == std::vector<uint32_t>{1, 0, 1, 0});
  CHECK(peer_sets(std::vector<size_t>{0, 0}, std::vector<peer_verdict>{{{0, 0}, ""}}) == std::vector<uint32_t>{1, 1});
}
