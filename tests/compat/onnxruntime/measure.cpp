// What the C interface costs, by hand: troupe_onnxruntime_measure
//
// - one run of a small model through the table, and through troupe's C++ interface, turn by turn in one process: the
//   median of each, and the difference;
// - one run with an input of 64 MiB: the time, and how much the process's memory grows while it lasts;
// - many runs: how much the process's memory grows from the 10,000th to the last.
#include "compat/onnxruntime/api.hpp"
#include "compat/onnxruntime/models.hpp"
#include "troupe/engine.hpp"
#include "troupe/model_file.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
constexpr int turns = 5000;
constexpr int many = 1'000'000, warm = 10'000;

const OrtApi& ort() {
  static const OrtApi& api = *OrtGetApiBase()->GetApi(30);
  return api;
}

void must(OrtStatus* status) {
  if (!status)
    return;
  std::fprintf(stderr, "%s\n", ort().GetErrorMessage(status));
  std::exit(1);
}

double microseconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Returns a figure of /proc/self/status, in KiB.
long memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":"))
      return std::stol(line.substr(name.size() + 1));
  return 0;
}

OrtValue* tensor_over(const OrtMemoryInfo* where, std::vector<float>& data) {
  const int64_t dims[] = {static_cast<int64_t>(data.size() / 2), 2};
  OrtValue* made = nullptr;
  must(ort().CreateTensorWithDataAsOrtValue(where, data.data(), data.size() * sizeof(float), dims, 2,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &made));
  return made;
}

/// A run of c = a + b through the table, as a client does it.
struct table_client {
  OrtSession* session = nullptr;
  OrtMemoryInfo* where = nullptr;

  void run(std::vector<float>& a, std::vector<float>& b) const {
    const char *names[] = {"a", "b"}, *output = "c";
    OrtValue *values[] = {tensor_over(where, a), tensor_over(where, b)}, *sum = nullptr;
    must(ort().Run(session, nullptr, names, values, 2, &output, 1, &sum));
    for (OrtValue* v : {values[0], values[1], sum})
      ort().ReleaseValue(v);
  }
};

troupe::tensor over(std::vector<float>& data) {
  return {troupe::dtype::float32, {static_cast<int64_t>(data.size() / 2), 2}, nullptr, data.data()};
}

void measure_overhead(const table_client& client, const troupe::session& model) {
  std::vector<float> a(8, 1), b(8, 2);
  std::vector<double> by_table, by_interface;
  for (int i = 0; i < turns; ++i) {
    auto begin = clock_type::now();
    client.run(a, b);
    by_table.push_back(microseconds_since(begin));
    begin = clock_type::now();
    model.run({{"a", over(a)}, {"b", over(b)}});
    by_interface.push_back(microseconds_since(begin));
  }
  const double table = median(by_table), interface = median(by_interface);
  std::printf("one run: %.2f us through the table, %.2f us through C++: %.2f us more\n", table, interface,
              table - interface);
}

void measure_large_input(const table_client& client) {
  constexpr size_t floats = (64u << 20) / sizeof(float);
  std::vector<float> a(floats, 1);
  const long before = memory("VmRSS");
  std::vector<float> large_b(floats, 1);
  const long one = memory("VmRSS") - before; // the memory of a vector of this size
  const long start = memory("VmRSS");
  std::ofstream("/proc/self/clear_refs") << 5; // the peak counts from here
  client.run(a, large_b);
  std::printf("64 MiB twice in, 64 MiB out: the peak is %.0f MiB above what was there (one such value has %ld MiB)\n",
              static_cast<double>(memory("VmHWM") - start) / 1024, one / 1024);
}

void measure_many(const table_client& client) {
  std::vector<float> a(8, 1), b(8, 2);
  long start = 0;
  const auto begin = clock_type::now();
  for (int i = 0; i < many; ++i) {
    if (i == warm)
      start = memory("VmRSS");
    client.run(a, b);
  }
  std::printf("%d runs: %ld KiB more memory than after %d, %.1f us a run\n", many, memory("VmRSS") - start, warm,
              microseconds_since(begin) / many);
}

} // namespace

int main() {
  OrtEnv* env = nullptr;
  OrtSessionOptions* options = nullptr;
  table_client client;
  must(ort().CreateEnv(ORT_LOGGING_LEVEL_WARNING, "measure", &env));
  must(ort().CreateSessionOptions(&options));
  must(ort().AddSessionConfigEntry(options, "troupe.devices", "cpu"));
  const std::string bytes = troupe::test::onnx_bytes::add();
  must(ort().CreateSessionFromArray(env, bytes.data(), bytes.size(), options, &client.session));
  must(ort().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &client.where));
  troupe::engine devices({.devices = {"cpu"}});
  const troupe::session model = devices.load(troupe::parse_model(std::as_bytes(std::span(bytes))));

  measure_overhead(client, model);
  measure_large_input(client);
  measure_many(client);
  ort().ReleaseMemoryInfo(client.where);
  ort().ReleaseSession(client.session);
  ort().ReleaseSessionOptions(options);
  ort().ReleaseEnv(env);
}
