// The patterns of real exporters are found. TROUPE_MODELS names a folder of materialised models; without it the test is
// skipped.
#include "loader/onnx_loader.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

#include <cstdlib>
#include <filesystem>

using namespace troupe;
using namespace troupe::test;

namespace {

struct expectation {
  const char* model;
  std::map<std::string, size_t> counts;
  size_t most_nodes;
  size_t projections; // if they are wanted
};

const std::vector<expectation> expectations{
    {"squeezenet1_1", {{"troupe.Conv", 26}, {"Conv", 0}, {"Relu", 0}}, 40, 0},
    {"mobilenet_v2", {{"troupe.Conv", 45}, {"Clip", 0}, {"Add", 0}}, 56, 0},
    {"resnet50", {{"troupe.Conv", 49}, {"Relu", 0}, {"Add", 0}}, 58, 0},
    {"unet_small", {{"troupe.GroupNormalization", 14}, {"Sigmoid", 0}, {"Swish", 0}}, 40, 0},
    {"vit_b_16", {{"troupe.Attention", 12}, {"Softmax", 0}, {"Gelu", 0}, {"Gather", 1}}, 128, 0},
    {"bert_base", {{"troupe.Attention", 12}, {"Softmax", 0}, {"Erf", 0}, {"Transpose", 0}}, 182, 0},
    {"gpt2", {{"troupe.Attention", 12}, {"Gemm", 0}, {"Tanh", 0}}, 212, 25},
    {"llama_160m",
     {{"troupe.Attention", 12}, {"troupe.Rotary", 24}, {"RMSNormalization", 25}, {"Sigmoid", 0}},
     277,
     25},
    {"llama_1b", {{"troupe.Attention", 22}, {"troupe.Rotary", 44}, {"RMSNormalization", 45}, {"Expand", 0}}, 487, 45},
    {"llama_tiny", {{"troupe.Attention", 4}, {"troupe.Rotary", 8}, {"RMSNormalization", 9}, {"Expand", 0}}, 109, 9},
};

} // namespace

TEST_CASE("the patterns of real models are found", "[rewrite][A4]") {
  const char* models = std::getenv("TROUPE_MODELS");
  if (!models) {
    WARN("skipped: TROUPE_MODELS does not name a folder of materialised models");
    return;
  }
  for (const expectation& e : expectations) {
    const auto file = std::filesystem::path(models) / e.model / "model.onnx";
    if (!std::filesystem::exists(file))
      continue;
    INFO(e.model);
    const graph g = rewrite(load_model(file), {});
    CHECK(g.nodes.size() <= e.most_nodes);
    for (const auto& [op, count] : e.counts) {
      INFO(op);
      CHECK(count_nodes(g, op) == count);
    }
    const graph joined = rewrite(load_model(file), {.for_gpus = true});
    CHECK(count_nodes(joined, "troupe.Projections") == e.projections);
    CHECK(count_nodes(joined, "troupe.Rotary") == 0);
  }
}
