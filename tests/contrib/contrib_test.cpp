// Operators of com.microsoft against ONNX Runtime: the cases that generate.mjs wrote, on the CPU and on a GPU.
#include "actors/engine_access.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/peer_cases.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

void check_on(const std::vector<std::string>& devices) {
  engine e = make_engine({.devices = devices}, {.gpu_validation = gpus_are_validated()});
  for (const peer_case& c : read_peer_cases("contrib/cases.jsonl")) {
    std::string problem;
    try {
      problem = peer_difference(c, run_peer_case(e, c));
    } catch (const error& e) {
      problem = e.what();
    }
    if (!problem.empty())
      FAIL_CHECK(c.name << " on " << devices.front() << ": " << problem);
  }
  CHECK(gpu_messages(e).empty());
}

} // namespace

TEST_CASE("operators of com.microsoft give what ONNX Runtime gives", "[ops][contrib]") {
  check_on({"cpu"});
}

TEST_CASE("operators of com.microsoft give that on a GPU, the CPU running what it lacks",
          "[ops][contrib][vulkan][slow]") {
  check_on({"vulkan:0", "cpu"});
}

TEST_CASE("compositions refuse operands that are missing or of the wrong rank", "[ops][contrib]") {
  const tensor single = tensor::of<float>({1}, std::vector<float>{1}),
               cube = tensor::of<float>({1, 1, 1}, std::vector<float>{1});
  for (const op_def* def : all_ops()) {
    if (!def->expand)
      continue;
    INFO(def->domain << "." << def->name);
    const auto most = std::min<size_t>(def->inputs.max, 16);
    for (size_t count = 0; count <= most; ++count) {
      CHECK_THROWS_AS(evaluate(*def, {}, std::vector<tensor>(count)), error);
      for (const tensor& t : {single, cube, tensor::scalar<uint8_t>(1), tensor::scalar<int32_t>(1)})
        try {
          evaluate(*def, {}, std::vector<tensor>(count, t));
        } catch (const error& e) {
          CHECK(e.code() != errc::internal);
        }
    }
  }
}
