// Compiles the kernels that models run on GPU 0, whose driver may be one for hardware that is not there, and prints
// what its compiler made of them. scripts/vendors runs it for GPUs of several kinds.
//
// Usage: troupe_vendor_kernels FIRST MODEL[,DIM=VALUE…]…
//
// The kernels are those that the launch rules choose for this GPU, in float32 and float16, with their parameters as
// constants and without (what runs while better ones are compiled). Each is printed before it is compiled, with its
// number, so that a compiler that ends the process is known by the last line; FIRST is the kernel to begin with.
//
// Lines: "gpu NAME", "kernels COUNT", "compile NUMBER NAME", "made REGISTERS SPILLED SCRATCH SHARED OCCUPANCY" (−1: the
// driver does not say), "failed WHY".
#include "actors/engine_access.hpp"
#include "bench/models.hpp"
#include "device/null_device.hpp"
#include "graph/made_up_dims.hpp"
#include "ops/op.hpp"
#include "plan/plan.hpp"
#include "vulkan/device_choice.hpp"
#include "vulkan/program_kernels.hpp"

#include <fmt/ranges.h>

using namespace troupe;
using namespace troupe::vulkan;

namespace {

/// An engine with a device of the GPU's features, and a CPU for what GPUs do not run; both run nothing.
engine engine_like(const gpu_snapshot& facts) {
  const gpu_features features = features_of(facts);
  device_info gpu{.name = "gpu", .kind = device_kind::vulkan, .description = facts.name};
  gpu.memory_bytes = gpu.total_bytes = int64_t{1} << 40; // none is there
  gpu.host_memory = false;
  gpu.prefers_channels_last = true;
  gpu.gpu = features;
  gpu.profile = typical_gpu(features.units, features.cooperative_matrix);
  const device_info cpu{.name = "cpu", .memory_bytes = int64_t{1} << 40, .fallback = true};
  return make_engine({.devices = {}}, {.custom_devices = {[gpu] { return std::make_unique<null_device>(gpu); },
                                                          [cpu] { return std::make_unique<null_device>(cpu); }}});
}

struct sized_model {
  std::string file;
  bindings dims;
};

sized_model parse(const std::string& text) {
  sized_model m;
  size_t at = text.find(',');
  m.file = text.substr(0, at);
  while (at != std::string::npos) {
    const size_t end = text.find(',', at + 1), equals = text.find('=', at);
    m.dims[text.substr(at + 1, equals - at - 1)] = std::stoll(text.substr(equals + 1, end - equals - 1));
    at = end;
  }
  return m;
}

/// Adds the kernels of a model's first segment, those of its bodies not. Dims that are not given are 1.
void add_kernels(const session& model, bindings dims, std::set<pipeline_key>& keys) {
  for (const value_info& input : model.inputs())
    dims_or_ones(*input.dims, dims);
  const bound_plan_ptr bound = bound_plan_of(model, bench::plain_inputs(model, dims));
  const plan& p = *bound->source;
  for (const chunk& c : p.chunks) {
    if (c.segment != 0 || !p.devices[c.device].gpu)
      continue;
    for (const node_id n : c.nodes)
      if (!launches_nothing(p, p.program->nodes[n]))
        for (const launch& l : choose_kernel(*bound, p.program->nodes[n], p.devices[c.device], {}).launches)
          for (const constant_words words : {constant_words::all, constant_words::none})
            keys.insert(key_of(l, words));
  }
}

/// Returns the sum of what the compiler says of all parts of a pipeline under one of these names; −1 if it does not.
int64_t statistic(const device_context& context, VkPipeline pipeline, std::initializer_list<std::string_view> names) {
  const auto list = reinterpret_cast<PFN_vkGetPipelineExecutableStatisticsKHR>(
      vkGetDeviceProcAddr(context.get(), "vkGetPipelineExecutableStatisticsKHR"));
  VkPipelineExecutableInfoKHR which{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, nullptr, pipeline, 0};
  uint32_t count = 0;
  check(list(context.get(), &which, &count, nullptr), "vkGetPipelineExecutableStatisticsKHR");
  std::vector<VkPipelineExecutableStatisticKHR> all(count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
  check(list(context.get(), &which, &count, all.data()), "vkGetPipelineExecutableStatisticsKHR");
  int64_t sum = -1;
  for (const VkPipelineExecutableStatisticKHR& s : all)
    if (std::ranges::find(names, std::string_view(s.name)) != names.end())
      sum = std::max<int64_t>(sum, 0) + static_cast<int64_t>(s.value.u64);
  return sum;
}

void compile(const device_context& context, pipeline_maker& maker, const pipeline_key& key) {
  pipeline_handle made;
  const VkResult result = maker.create(key, VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR, VK_NULL_HANDLE, made);
  if (result != VK_SUCCESS)
    return fmt::print("failed VkResult {}\n", static_cast<int>(result));
  const auto of = [&](std::initializer_list<std::string_view> names) { return statistic(context, made.get(), names); };
  fmt::print("made {} {} {} {} {}\n", of({"VGPRs"}), of({"Spilled SGPRs", "Spilled VGPRs"}), of({"Scratch size"}),
             of({"LDS size"}), of({"Subgroups per SIMD"}));
}

} // namespace

int main(int argc, char** argv) try {
  if (argc < 3) {
    fmt::print(stderr, "usage: troupe_vendor_kernels FIRST MODEL[,DIM=VALUE…]…\n");
    return 2;
  }
  const auto gpus = std::make_shared<const instance>();
  if (gpus->gpus().empty())
    fail(errc::device_failed, "no driver offers a GPU");
  device_context context(gpus, 0, lane_queues::one, true);
  fmt::print("gpu {}\n", context.facts().name);
  std::set<pipeline_key> keys;
  {
    engine e = engine_like(context.facts());
    for (int i = 2; i < argc; ++i)
      for (const precision how : {precision::fp32, precision::fp16}) {
        const sized_model m = parse(argv[i]);
        add_kernels(e.load(m.file, {.precision = how}), m.dims, keys);
      }
  }
  fmt::print("kernels {}\n", keys.size());
  pipeline_maker maker(context);
  size_t number = 0;
  for (const pipeline_key& key : keys) {
    if (number++ < std::stoull(argv[1]))
      continue;
    fmt::print("compile {} {}{}\n", number - 1, key.shader, key.block.empty() ? "" : " (parameters are constants)");
    std::fflush(stdout);
    compile(context, maker, key);
  }
  return 0;
} catch (const std::exception& problem) {
  fmt::print(stderr, "troupe_vendor_kernels: {}\n", problem.what());
  return 1;
}
