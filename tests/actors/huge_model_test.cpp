// A model of 1 TiB, far larger than this machine: its weights are a hole in a file. It is planned, not run.
#include "loader/mapped_file.hpp"
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/small_models.hpp"

#include <ctime>
#include <iostream>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

constexpr int64_t gib = int64_t{1} << 30, narrow = 16384, wide = 32768, layer_bytes = narrow * wide * 4;
constexpr int64_t layers = 512, all_weights = layers * layer_bytes, device_count = 64;
static_assert(all_weights == 1024 * gib);

void add_external(onnx::GraphProto& g, const std::string& name, int64_t rows, int64_t columns, int64_t offset) {
  onnx::TensorProto& t = *g.add_initializer();
  t.set_name(name);
  t.set_data_type(onnx::TensorProto::FLOAT);
  t.add_dims(rows);
  t.add_dims(columns);
  t.set_data_location(onnx::TensorProto::EXTERNAL);
  const std::pair<std::string, std::string> entries[] = {
      {"location", "weights"}, {"offset", std::to_string(offset)}, {"length", std::to_string(layer_bytes)}};
  for (const auto& [key, value] : entries) {
    auto* entry = t.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
}

/// x [batch, 16384] → 512 × (a product, Relu) → y. Half of the weights are transposed, as exporters write a Gemm's.
onnx::ModelProto huge_model() {
  onnx::ModelProto m = relu_model();
  auto& g = *m.mutable_graph();
  g.clear_node();
  for (auto* info : {g.mutable_input(0), g.mutable_output(0)})
    info->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(1)->set_dim_value(narrow);
  std::string last = "x";
  for (int64_t i = 0; i < layers; ++i) {
    const std::string number = std::to_string(i), weight = "w" + number, product = "p" + number;
    const int64_t from = i % 2 ? wide : narrow, to = i % 2 ? narrow : wide;
    const bool transposed = i % 4 < 2;
    add_external(g, weight, transposed ? to : from, transposed ? from : to, i * layer_bytes);
    auto& call = add_node(g, transposed ? "Gemm" : "MatMul", {last, weight}, {product});
    if (transposed) {
      auto* attribute = call.add_attribute();
      attribute->set_name("transB");
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(1);
    }
    last = i + 1 < layers ? "a" + number : "y";
    add_node(g, "Relu", {product}, {last});
  }
  return m;
}

/// A folder with the model, if its file system has sparse files of that size and this process may map one.
struct huge_files {
  huge_files() {
    folder.write("model.onnx", huge_model().SerializeAsString());
    folder.write("weights", "");
    std::error_code problem;
    fs::resize_file(folder.path() / "weights", static_cast<uintmax_t>(all_weights), problem);
    why_not = problem ? problem.message() : mapping_problem();
  }
  /// Says why if the test has to be skipped.
  bool are_there() const {
    if (!why_not.empty())
      WARN("skipped: there are no files of 1 TiB, or no room for them in address space: " << why_not);
    return why_not.empty();
  }
  std::string model() const { return (folder.path() / "model.onnx").string(); }

  scratch_folder folder;
  std::string why_not;

private:
  std::string mapping_problem() const {
    try {
      mapped_file::open(folder.path() / "weights");
      return "";
    } catch (const error& e) {
      return e.what();
    }
  }
};

/// 64 devices that compute nothing, each with that much memory.
engine open_devices(int64_t bytes_each) {
  engine_options options{.devices = {fmt::format("null*{}", device_count)}};
  for (int64_t i = 0; i < device_count; ++i)
    options.memory[i == 0 ? "null" : fmt::format("null#{}", i)] = bytes_each;
  return engine(options);
}

/// Kilobytes of a file that are in this process's memory, -1 if it is not mapped.
int64_t resident_kb_of(const fs::path& file) {
  std::ifstream maps("/proc/self/smaps");
  int64_t sum = -1;
  bool is_it = false;
  for (std::string line; std::getline(maps, line);) {
    const std::string first = line.substr(0, line.find(' '));
    if (first.find('-') != std::string::npos && first.back() != ':') {
      is_it = line.ends_with(fs::canonical(file).string());
      sum = is_it ? std::max<int64_t>(sum, 0) : sum;
    } else if (is_it && first == "Rss:")
      sum += std::stoll(line.substr(4));
  }
  return sum;
}

int64_t resident_bytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

const named_tensors one_row{{"x", tensor(dtype::float32, {1, narrow})}};

/// Checks the memory report of a plan over all devices; returns the bytes that the fullest of them needs.
int64_t check_memory(const session& s, int64_t bytes_each) {
  const bound_plan_ptr bound = bound_plan_of(s, one_row);
  const plan& p = *bound->source;
  int64_t weights = 0, most = 0, used = 0;
  for (device_index d = 0; d < device_count; ++d) {
    weights += p.weight_bytes[d];
    used += p.weight_bytes[d] > 0;
    most = std::max(most, bytes_needed(*bound->layout, d));
  }
  CHECK(weights == all_weights);
  CHECK(most <= bytes_each);
  const std::string report = s.plan(one_row);
  CHECK_THAT(report, Contains(fmt::format("device 0: null ({:.1f} GiB)", static_cast<double>(bytes_each) / gib)));
  CHECK_THAT(report, Contains("device 63: null#63 ("));
  std::cout << fmt::format("1 TiB of weights over {} devices, at most {} bytes each: planned in {:.0f} ms\n", used,
                           most, s.stats().plan_ms);
  return most;
}

} // namespace

TEST_CASE("a model of 1 TiB is planned over 64 devices, and not a byte of its weights is read", "[actors][C12][B3]") {
  const huge_files files;
  if (!files.are_there())
    return;
  const int64_t before = resident_bytes();
  const std::clock_t begin = std::clock();
  {
    engine e = open_devices(20 * gib);
    for (const placement_policy policy : {placement_policy::greedy_memory, placement_policy::pipeline,
                                          placement_policy::heft, placement_policy::single}) {
      const session s = e.load(files.model(), {.policy = policy});
      check_memory(s, 20 * gib);
      CHECK(resident_kb_of(files.folder.path() / "weights") == 0);
    }
    CHECK(resident_bytes() - before < gib / 4);
  }
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < 30); // far above what an optimised build needs
}

TEST_CASE("1 % too little memory for a model of 1 TiB is an error with the figures", "[actors][C12][B2]") {
  const huge_files files;
  if (!files.are_there())
    return;
  int64_t enough = 0;
  {
    engine e = open_devices(20 * gib);
    enough = check_memory(e.load(files.model(), {.policy = placement_policy::pipeline}), 20 * gib);
  }
  for (const placement_policy policy : {placement_policy::greedy_memory, placement_policy::pipeline}) {
    engine just = open_devices(enough);
    CHECK(check_memory(just.load(files.model(), {.policy = policy}), enough) <= enough);
    const int64_t less = enough - enough / 100;
    engine e = open_devices(less);
    try {
      e.load(files.model(), {.policy = policy}).plan(one_row);
      FAIL("it was planned");
    } catch (const error& why) {
      CHECK(why.code() == errc::out_of_memory);
      CHECK_THAT(why.what(), Contains(fmt::format("All weights of the model take {} bytes", all_weights)) &&
                                 Contains(fmt::format("all devices allow {} together", less * device_count)) &&
                                 Contains("'null#3'") && Contains("and 60 devices more"));
    }
  }
}

TEST_CASE("every strategy plans a model of 1 TiB, or says how much memory is missing", "[actors][C12][C2][C3]") {
  const huge_files files;
  if (!files.are_there())
    return;
  engine e = open_devices(20 * gib);
  for (const strategy how : {strategy::model_parallel, strategy::pipeline})
    CHECK_THAT(e.load(files.model(), {.strategy = how}).plan(one_row),
               Contains("replica 0: null, null#1") && Contains("device 55: null#55 (20.0 GiB)"));
  // A replica of the whole model on each device
  for (const strategy how : {strategy::data_parallel, strategy::work_stealing})
    CHECK_THROWS_WITH(e.load(files.model(), {.strategy = how}).plan(one_row),
                      Contains("does not fit") && Contains(std::to_string(all_weights)));
  CHECK(resident_kb_of(files.folder.path() / "weights") <= 0);
}
