// Control flow whose bodies run on a GPU.
#include "actors/engine_access.hpp"
#include "support/branch_runs.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/gpu.hpp"
#include "support/rank_loops.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("bodies run on GPUs, and beside them on the CPU", "[vulkan][control][A14]") {
  for (const char* devices : {"vulkan:0", "vulkan:0*2"}) {
    engine e = make_engine({.devices = {devices, "cpu"}}, {.gpu_validation = gpus_are_validated()});
    for (const placement_policy policy : {placement_policy::single, placement_policy::round_robin}) {
      const session s = e.load(growing_loop(), {.policy = policy});
      for (int64_t n : {4, 0, 2}) {
        const tensor y = s.run(growing_inputs(n, 1e9F)).outputs.at("loop.0");
        CHECK(y.data<float>()[0] == static_cast<float>((1 << (n + 1)) - 1));
        CHECK(y.data<float>()[1] == static_cast<float>(10 << n));
      }
      const plan& body = *plan_of(s, growing_inputs(1, 1))->bodies.at(0).compiled;
      CHECK(std::any_of(body.placement.begin(), body.placement.end(),
                        [&](device_index d) { return body.devices[d].gpu.has_value(); }));
    }
    CHECK(gpu_messages(e).empty());
  }
}

TEST_CASE("branches of different ranks run on GPUs", "[vulkan][control][A14]") {
  for (const std::vector<std::string>& devices :
       std::vector<std::vector<std::string>>{{"vulkan:0", "cpu"}, {"cpu", "vulkan:0"}}) {
    engine e = make_engine({.devices = devices}, {.gpu_validation = gpus_are_validated()});
    for (const placement_policy policy : {placement_policy::single, placement_policy::round_robin})
      check_branch_models(e, policy);
    CHECK(gpu_messages(e).empty());
  }
}

TEST_CASE("loops that change ranks run on GPUs", "[vulkan][control][A14]") {
  engine e = make_engine({.devices = {"vulkan:0", "cpu"}}, {.gpu_validation = gpus_are_validated()});
  check_rank_loops(e, placement_policy::single);
  CHECK(gpu_messages(e).empty());
}
