// What planning costs the host, for GPUs that need not exist: plans, bindings and the choice of kernels are the host's
// work alone. Recording, which a new bucket costs in addition, is not included (bench_buckets).
//
//   bench_planning MODEL.onnx [NAME=VALUE…] [STEPS]
//
// Gives the model's symbols values; a value that ends in '+' grows by one in each of STEPS steps (default 200), as
// `past` does in a decoder: bench_planning llama.onnx batch=1 seq=1 past=128+ total=129+. Prints medians: loading,
// rewriting and planning; a run whose plan is cached; and, if a value grows, exact binding, binding in a new bucket and
// inside one, kernels of the dynamic calls, comparing them and filling the parameters.
#include "base/elapsed.hpp"
#include "base/quantile.hpp"
#include "bench/growing_dims.hpp"
#include "loader/onnx_loader.hpp"
#include "plan/bind/layout_buckets.hpp"
#include "plan/place/policies.hpp"
#include "rewrite/rewrite.hpp"
#include "run/session_plans.hpp"
#include "vulkan/dynamic_calls.hpp"

#include <algorithm>
#include <chrono>

using namespace troupe;
using namespace troupe::bench;

namespace {

using steady = std::chrono::steady_clock;

/// Large GPUs, and a CPU for nodes that they cannot run.
std::vector<device_info> devices(size_t gpus) {
  device_info gpu{.name = "gpu", .kind = device_kind::vulkan, .memory_bytes = int64_t{140} << 30, .host_memory = false};
  gpu.gpu = gpu_features{.max_group_size = 1024,
                         .shared_bytes = 48 * 1024,
                         .max_groups = {INT32_MAX, 65535, 65535},
                         .max_binding_bytes = UINT32_MAX,
                         .float16 = true,
                         .int8 = true,
                         .int64 = true,
                         .subgroup_arithmetic = true,
                         .cooperative_matrix = true,
                         .units = 132};
  gpu.profile = typical_gpu(gpu.gpu->units, true);
  std::vector<device_info> all;
  for (size_t i = 0; i < gpus; ++i) {
    gpu.name = fmt::format("gpu:{}", i);
    all.push_back(gpu);
  }
  all.push_back({.name = "cpu", .memory_bytes = int64_t{1} << 40, .fallback = true, .profile = typical_cpu(16)});
  return all;
}

/// Times of the steps, by what a step did.
struct times {
  std::vector<double> exact, bucket, inside, choose, fill;
};

class binder {
public:
  explicit binder(std::shared_ptr<const plan> p) : plan_(std::move(p)) {}

  void step(const bindings& values) {
    auto start = steady::now();
    bind_segment(plan_, 0, values);
    times_.exact.push_back(milliseconds_since(start));
    const uint64_t misses = layouts_.stats().misses;
    start = steady::now();
    const bound_plan_ptr bound = layouts_.bind(plan_, 0, values);
    (layouts_.stats().misses > misses ? times_.bucket : times_.inside).push_back(milliseconds_since(start));
    if (layout_ != bound->layout) {
      layout_ = bound->layout;
      calls_.emplace(*layout_, 0);
      programs_.clear();
    }
    start = steady::now();
    std::vector<launch_list> choices = calls_->choose(*bound, {});
    times_.choose.push_back(milliseconds_since(start));
    start = steady::now();
    const auto found = std::find_if(programs_.begin(), programs_.end(),
                                    [&](const program& p) { return vulkan::runs_on(p.choices, choices); });
    if (found == programs_.end())
      return record(std::move(choices));
    found->table.fill(*bound, choices);
    times_.fill.push_back(milliseconds_since(start));
  }

  void print() const {
    int64_t dynamic = 0;
    for (node_id n = 0; n < std::ssize(plan_->program->nodes); ++n)
      dynamic += calls_->class_of(n) != vulkan::dynamic_calls::none ? 1 : 0;
    fmt::print("{} values, {} nodes, {} of them dynamic in {} classes, {} bytes of parameters, {} recordings\n",
               plan_->program->values.size(), plan_->program->nodes.size(), dynamic, calls_->class_count(),
               programs_.back().table.bytes(), recordings_);
    fmt::print(
        "exact {:.3f} ms, new bucket {:.3f} ms ({} times), inside a bucket {:.3f} ms, kernels {:.3f} ms, compare "
        "and fill {:.3f} ms\n",
        median(times_.exact), median(times_.bucket), times_.bucket.size(), median(times_.inside), median(times_.choose),
        median(times_.fill));
  }

private:
  /// The part of a device's program that needs no GPU.
  struct program {
    std::vector<launch_list> choices;
    vulkan::parameter_table table;
  };

  void record(std::vector<launch_list> choices) {
    vulkan::add_scratch_room(choices);
    vulkan::parameter_table table(*calls_, *layout_, choices);
    programs_.push_back({std::move(choices), std::move(table)});
    ++recordings_;
  }

  std::shared_ptr<const plan> plan_;
  layout_buckets layouts_{16};
  arena_layout_ptr layout_;
  std::optional<vulkan::dynamic_calls> calls_;
  std::vector<program> programs_; // of the layout
  times times_;
  size_t recordings_ = 0;
};

constexpr int repeats = 7;

/// Returns the median milliseconds of `f()`.
template <class F>
double median_ms(F&& f) {
  std::vector<double> samples;
  for (int i = 0; i < repeats; ++i) {
    const auto start = steady::now();
    f();
    samples.push_back(milliseconds_since(start));
  }
  return median(std::move(samples));
}

/// Prints the time of each step from a file to its plan.
void print_planning(const char* file) {
  graph source;
  const double load = median_ms([&] { source = load_model(file); });
  std::shared_ptr<const graph> program;
  const double rewriting = median_ms([&] { program = std::make_shared<const graph>(rewrite(source, {})); });
  fmt::print("load {:.1f} ms, rewrite {:.1f} ms ({} nodes to {})\n", load, rewriting, source.nodes.size(),
             program->nodes.size());
  for (const size_t gpus : {1, 4})
    for (const policy_row& row : policies())
      if (!row.small_only && (gpus > 1 || row.policy == placement_policy::single))
        fmt::print("plan on {} GPU{} and a CPU, {}: {:.1f} ms\n", gpus, gpus > 1 ? "s" : "", row.name,
                   median_ms([&] { make_plan(program, devices(gpus), {.policy = row.policy}); }));
}

/// Prints what a run with a cached plan costs: checking inputs, making keys, finding the plan.
void print_hit(const char* file, const bindings& values) {
  session_plans plans(make_model(load_model(file), {}, 0), devices(1));
  const named_tensors inputs = inputs_of(make_model(load_model(file), {}, 0)->inputs, values);
  plans.prepare({inputs, {}});
  constexpr int hits = 2000;
  const double ms = median_ms([&] {
    for (int i = 0; i < hits; ++i)
      plans.prepare({inputs, {}});
  });
  fmt::print("a run whose plan is cached: {:.2f} us\n", ms * 1e3 / hits);
}

void print_steps(const char* file, growing_dims a) {
  const auto program = std::make_shared<const graph>(rewrite(load_model(file), {}));
  binder b(make_plan(program, devices(1), {}));
  for (int64_t i = 0; i < a.steps; ++i) {
    b.step(a.values);
    a.grow();
  }
  b.print();
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_planning MODEL.onnx [NAME=VALUE[+]…] [STEPS]\n");
    return 2;
  }
  try {
    const growing_dims a = parse_dims(argc, argv, 2);
    print_planning(argv[1]);
    print_hit(argv[1], a.values);
    if (!a.growing.empty())
      print_steps(argv[1], a);
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_planning: {}\n", e.what());
    return 1;
  }
}
