// What a new binding of a model with symbolic dims costs, up to the GPU's parameters, on a GPU that need not be there: plans
// and kernel choice are the host's work alone. Recording, which a new bucket costs besides, is not in it.
//
//   bench_bind MODEL.onnx NAME=VALUE… [STEPS]
//
// Gives the model's symbols values; a value that ends in '+' grows by one in each of STEPS steps (default 200), as `past` does in
// a decoder: bench_bind llama.onnx batch=1 seq=1 past=128+ total=129+. Prints medians in milliseconds: exact binding; binding in a
// new bucket; binding inside a bucket; kernels of the dynamic calls; comparing them and filling the parameters.
#include "loader/onnx_loader.hpp"
#include "plan/layout_buckets.hpp"
#include "rewrite/rewrite.hpp"
#include "vulkan/dynamic_calls.hpp"

#include <algorithm>
#include <chrono>

using namespace troupe;

namespace {

using steady = std::chrono::steady_clock;

double ms_since(steady::time_point start) {
  return std::chrono::duration<double, std::milli>(steady::now() - start).count();
}

double median(std::vector<double> samples) {
  if (samples.empty())
    return 0;
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

/// A large GPU, and a CPU for what it cannot run.
std::vector<device_info> devices() {
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
  return {gpu, {.name = "cpu", .memory_bytes = int64_t{1} << 40, .fallback = true}};
}

struct arguments {
  bindings values;
  std::vector<std::string> growing;
  int64_t steps = 200;
};

arguments parse(int argc, char** argv) {
  arguments a;
  for (int i = 2; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      a.steps = std::stoll(text);
      continue;
    }
    a.values[text.substr(0, equals)] = std::stoll(text.substr(equals + 1));
    if (text.back() == '+')
      a.growing.push_back(text.substr(0, equals));
  }
  return a;
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
    times_.exact.push_back(ms_since(start));
    const uint64_t misses = layouts_.stats().misses;
    start = steady::now();
    const bound_plan_ptr bound = layouts_.bind(plan_, 0, values);
    (layouts_.stats().misses > misses ? times_.bucket : times_.inside).push_back(ms_since(start));
    if (layout_ != bound->layout) {
      layout_ = bound->layout;
      calls_.emplace(*layout_, 0);
      programs_.clear();
    }
    start = steady::now();
    std::vector<launch_list> choices = calls_->choose(*bound, 0);
    times_.choose.push_back(ms_since(start));
    start = steady::now();
    const auto found = std::find_if(programs_.begin(), programs_.end(),
                                    [&](const program& p) { return vulkan::runs_on(p.choices, choices); });
    if (found == programs_.end())
      return record(std::move(choices));
    found->table.fill(*bound, choices);
    times_.fill.push_back(ms_since(start));
  }

  void print() const {
    fmt::print("{} values, {} nodes, {} of them dynamic in {} classes, {} bytes of parameters, {} recordings\n",
               plan_->program->values.size(), plan_->program->nodes.size(), calls_->nodes().size(),
               calls_->class_count(), programs_.back().table.bytes(), recordings_);
    fmt::print(
        "exact {:.3f} ms, new bucket {:.3f} ms ({} times), inside a bucket {:.3f} ms, kernels {:.3f} ms, compare "
        "and fill {:.3f} ms\n",
        median(times_.exact), median(times_.bucket), times_.bucket.size(), median(times_.inside), median(times_.choose),
        median(times_.fill));
  }

private:
  /// What a device keeps of a program, without the GPU.
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

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_bind MODEL.onnx NAME=VALUE[+]… [STEPS]\n");
    return 2;
  }
  try {
    arguments a = parse(argc, argv);
    const auto program = std::make_shared<const graph>(rewrite(load_model(argv[1]), {}));
    binder b(make_plan(program, devices(), {}));
    for (int64_t i = 0; i < a.steps; ++i) {
      b.step(a.values);
      for (const std::string& name : a.growing)
        ++a.values[name];
    }
    b.print();
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_bind: {}\n", e.what());
    return 1;
  }
}
