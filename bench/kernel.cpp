// Every kernel that could run a call, timed on one GPU, best first as the launch rules have them.
//
// Usage: bench_kernel GPU TYPE CALL…      GPU: its number; TYPE: fp32 or fp16
//        CALL: product:ROWS,COLUMNS,DEPTH          of two operands that are given
//              matmul:ROWS,COLUMNS,DEPTH           by a constant matrix, with a bias
//              row:ROWS,COLUMNS,DEPTH              a row of them, each after the one before: what one more takes, with
//                                                  its barrier, without time stamps
//              conv:IMAGES,CHANNELS,SIZE,FILTERS,KERNEL,STRIDE
//              attention:HEADS,POSITIONS,WIDTH
//              masked:BATCH,HEADS,POSITIONS,WIDTH         attention as exporters write it, with a mask of each batch
//                                                         element's keys
//              decode:HEADS,KEY_HEADS,CACHED,WIDTH        one query beside a cache of TYPE
//              decode_wide:HEADS,KEY_HEADS,CACHED,WIDTH   beside a float32 cache
//              normed:ROWS,DEPTH,BLOCK,COLUMNS…   an RMS norm and one to three products; BLOCK: of 4-bit weights, 0 for
//                                                 those of TYPE
//              gated:ROWS,DEPTH,BLOCK,COLUMNS     an RMS norm, gate and up
//              added:ROWS,DEPTH,BLOCK,COLUMNS     a product and a residual
//              summed:ROWS,DEPTH,BLOCK,COLUMNS    those and a layer norm of the sum, which is a result as well
//
// Prints for each kernel the median of its GPU times, all in turns, and how far its result is from the last kernel's
// (relative L2), the simplest one's. Each is timed after other work: the clocks of an idle GPU fall to a fifth. A node
// between two timestamps takes some 4 µs more than its work.
#include "bench/models.hpp"
#include "tensor/convert.hpp"
#include "trace/run_trace.hpp"
#include "vulkan/vulkan_device.hpp"

#include <cmath>
#include <random>

using namespace troupe;
using namespace troupe::bench;

namespace {

/// Of -size / 2 to size / 2.
tensor random_tensor(dtype type, const shape& dims, uint32_t seed = 0, float size = 1) {
  std::mt19937 random(static_cast<uint32_t>(volume(dims)) + seed);
  std::uniform_real_distribution<float> uniform(-size / 2, size / 2);
  tensor t(dtype::float32, dims);
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = uniform(random);
  tensor of_type(type, dims);
  convert(t.view(), of_type.mutable_ref());
  return of_type;
}

struct measured_call {
  built_model model;
  named_tensors inputs;
  double flops = 0;
  std::optional<built_model> longer{}; // has the call `more` times more
  int64_t more = 0;
};

/// The models of calls, with random operands.
class call_maker {
public:
  explicit call_maker(dtype type) : type_(type) {}

  measured_call make(const std::string& text) {
    const size_t colon = text.find(':');
    const std::string op = text.substr(0, colon);
    std::vector<int64_t> n;
    for (size_t at = colon; at != std::string::npos; at = text.find(',', at + 1))
      n.push_back(std::stoll(text.substr(at + 1)));
    if ((op == "product" || op == "matmul") && n.size() == 3)
      return product(n, op == "matmul");
    if (op == "row" && n.size() == 3)
      return products_in_a_row(n);
    if (op == "conv" && n.size() == 6)
      return convolution(n);
    if (op == "attention" && n.size() == 3)
      return attention(n);
    if (op == "masked" && n.size() == 4)
      return masked_attention(n);
    if ((op == "decode" || op == "decode_wide") && n.size() == 4)
      return decode(n, op == "decode" ? type_ : dtype::float32);
    if (op == "normed" && n.size() > 3)
      return normed(n);
    if (n.size() == 4 && op == "gated")
      return gated(n);
    if (n.size() == 4 && op == "added")
      return done(added(n), flops_of(n, n[3]));
    if (n.size() == 4 && op == "summed")
      return summed(n);
    fail(errc::invalid_argument, "'{}' is no call that is measured here", text);
  }

private:
  variable given(const std::string& name, const shape& dims) { return given(name, dims, type_); }

  variable given(const std::string& name, const shape& dims, dtype type) {
    inputs_[name] = random_tensor(type, dims);
    return m_.input(name, type, to_symbolic(dims));
  }

  measured_call done(const variable& y, double flops) { return {finish(m_, {y}), std::move(inputs_), flops}; }

  measured_call product(const std::vector<int64_t>& n, bool constant) {
    const variable a = given("a", {n[0], n[2]});
    const double flops = flops_of(n, n[2]);
    if (!constant)
      return done(m_.call("MatMul", {a, given("b", {n[2], n[1]})}), flops);
    const variable b = m_.constant(random_tensor(type_, {n[2], n[1]})), c = m_.constant(random_tensor(type_, {n[1]}));
    return done(m_.call("Gemm", {a, b, c}), flops);
  }

  /// Each product waits for the one before it: it multiplies that one's result or, if the numbers of columns and depths
  /// differ, adds it.
  built_model row_of_products(const std::vector<int64_t>& n, int64_t count) const {
    model_builder m;
    // Results are about as large as the operands: elements of -0.5 to 0.5 have a variance of 1 / 12.
    const float size = std::sqrt(12.f / static_cast<float>(n[2]));
    const variable a = m.input("a", type_, to_symbolic(shape{n[0], n[2]})),
                   b = m.constant(random_tensor(type_, {n[2], n[1]}, 0, size));
    variable y = m.call("MatMul", {a, b});
    for (int64_t i = 1; i < count; ++i)
      y = n[1] == n[2] ? m.call("MatMul", {y, b}) : m.call("Gemm", {a, b, y});
    return finish(m, {y});
  }

  measured_call products_in_a_row(const std::vector<int64_t>& n) const {
    constexpr int64_t few = 4, more = 64;
    return {.model = row_of_products(n, few),
            .inputs = {{"a", random_tensor(type_, {n[0], n[2]})}},
            .flops = flops_of(n, n[2]),
            .longer = row_of_products(n, few + more),
            .more = more};
  }

  measured_call convolution(const std::vector<int64_t>& n) {
    const variable x = given("x", {n[0], n[1], n[2], n[2]});
    const variable w = m_.constant(random_tensor(type_, {n[3], n[1], n[4], n[4]}));
    const int64_t pad = n[4] / 2, out = (n[2] + 2 * pad - n[4]) / n[5] + 1;
    const variable y =
        m_.call("Conv", {x, w}, {{"pads", std::vector<int64_t>(4, pad)}, {"strides", std::vector<int64_t>(2, n[5])}});
    return done(y, 2.0 * static_cast<double>(n[0] * out * out * n[3]) * static_cast<double>(n[1] * n[4] * n[4]));
  }

  measured_call attention(const std::vector<int64_t>& n) {
    const shape dims{1, n[0], n[1], n[2]};
    const variable y = m_.call("Attention", {given("q", dims), given("k", dims), given("v", dims)});
    return done(y, 4.0 * static_cast<double>(n[0] * n[1]) * static_cast<double>(n[1] * n[2]));
  }

  measured_call masked_attention(const std::vector<int64_t>& n) {
    const auto heads = [&](const char* name, std::vector<int64_t> order) {
      return m_.call("Transpose", {given(name, {n[0], n[2], n[1], n[3]})}, {{"perm", std::move(order)}});
    };
    const variable scores = m_.call("MatMul", {heads("q", {0, 2, 1, 3}), heads("k", {0, 2, 3, 1})}),
                   weights = m_.call("Softmax", {m_.call("Add", {scores, given("mask", {n[0], 1, 1, n[2]})})}),
                   y = m_.call("MatMul", {weights, heads("v", {0, 2, 1, 3})});
    return done(m_.call("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}),
                4.0 * static_cast<double>(n[0] * n[1] * n[2]) * static_cast<double>(n[2] * n[3]));
  }

  measured_call decode(const std::vector<int64_t>& n, dtype cached) {
    const shape queries{1, 1, n[0] * n[3]}, rows{1, 1, n[1] * n[3]}, cache{1, n[1], n[2], n[3]};
    const variable y = m_.call("Attention",
                               {given("q", queries), given("k", rows), given("v", rows), variable(),
                                given("past_k", cache, cached), given("past_v", cache, cached)},
                               {{"q_num_heads", n[0]}, {"kv_num_heads", n[1]}});
    return done(y, 4.0 * static_cast<double>(n[0] * n[3]) * static_cast<double>(n[2] + 1));
  }

  /// Rows after an RMS norm.
  variable normed_rows(const std::vector<int64_t>& n) {
    return m_.call("RMSNormalization", {given("x", {1, n[0], n[1]}), m_.constant(random_tensor(type_, {n[1]}))});
  }

  /// A product by constant weights, packed in blocks of n[2] or, if that is 0, of floats. No two have equal weights:
  /// equal ones would be merged.
  variable weighted(const variable& x, const std::vector<int64_t>& n, int64_t columns) {
    const int64_t k = n[1], block = n[2];
    ++products_;
    if (block == 0)
      return m_.call("MatMul", {x, m_.constant(random_tensor(type_, {k, columns}, products_))});
    const int64_t blocks = (k + block - 1) / block;
    tensor codes(dtype::uint8, {columns, blocks, block / 2});
    std::mt19937 random(static_cast<uint32_t>(columns) + products_);
    for (int64_t i = 0; i < codes.size(); ++i)
      codes.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(random());
    return m_.call("MatMulNBits", {x, m_.constant(codes), m_.constant(random_tensor(type_, {columns, blocks}))},
                   {{"K", k}, {"N", columns}, {"bits", int64_t{4}}, {"block_size", block}},
                   {.domain = "com.microsoft"});
  }

  static double flops_of(const std::vector<int64_t>& n, int64_t columns) {
    return 2.0 * static_cast<double>(n[0] * n[1]) * static_cast<double>(columns);
  }

  measured_call normed(const std::vector<int64_t>& n) {
    const variable x = normed_rows(n);
    std::vector<variable> results;
    int64_t columns = 0;
    for (size_t i = 3; i < n.size(); ++i) {
      results.push_back(weighted(x, n, n[i]));
      columns += n[i];
    }
    return {finish(m_, results), std::move(inputs_), flops_of(n, columns)};
  }

  measured_call gated(const std::vector<int64_t>& n) {
    const variable x = normed_rows(n), gate = weighted(x, n, n[3]), up = weighted(x, n, n[3]);
    return done(m_.mul(m_.mul(gate, m_.sigmoid(gate)), up), flops_of(n, 2 * n[3]));
  }

  variable added(const std::vector<int64_t>& n) {
    const variable y = weighted(given("x", {1, n[0], n[1]}), n, n[3]);
    return m_.add(given("r", {1, n[0], n[3]}), y);
  }

  measured_call summed(const std::vector<int64_t>& n) {
    const variable sum = added(n), scale = m_.constant(random_tensor(type_, {n[3]}, 1)),
                   shift = m_.constant(random_tensor(type_, {n[3]}, 2));
    return {finish(m_, {m_.call("LayerNormalization", {sum, scale, shift}), sum}), std::move(inputs_),
            flops_of(n, n[3])};
  }

  dtype type_;
  uint32_t products_ = 0;
  model_builder m_;
  named_tensors inputs_;
};

/// One alternative: an engine whose GPU runs the i-th best kernel of each call, or the last one if there are fewer.
class alternative {
public:
  alternative(const std::shared_ptr<const vulkan::instance>& gpus, uint32_t gpu, uint32_t i)
      : engine_(make_engine({.devices = {}}, {.custom_devices = {[=] {
                                                return vulkan::make_vulkan_device(
                                                    gpus, gpu, fmt::format("vulkan:{}", gpu),
                                                    {.blocks = std::make_shared<host_block_pool>(), .alternative = i});
                                              }}})),
        heater_(engine_.load(heating())) {}

  void load(const measured_call& call) {
    model_ = engine_.load(call.model);
    samples_.clear();
    result_ = to_double(model_->run(call.inputs).outputs.begin()->second.view());
    if (call.longer) {
      longer_ = engine_.load(*call.longer);
      longer_->run(call.inputs);
      longest_node(call); // says which kernel it is
    }
  }

  void forget_times() { samples_.clear(); }

  /// Runs the call and notes its time. It is called after work that keeps the GPU busy, since the clocks of an idle GPU
  /// fall.
  void time(const measured_call& call) {
    samples_.push_back(call.longer ? (busy(*longer_, call) - busy(*model_, call)) / static_cast<double>(call.more)
                                   : longest_node(call));
  }

  const std::string& kernel() const { return kernel_; }
  double microseconds() const { return median(samples_); }
  const std::vector<double>& result() const { return result_; }

private:
  /// Returns the time of the longest node, in microseconds: layouts may be changed before and after it.
  double longest_node(const measured_call& call) {
    heater_.run({{"x", tensor::scalar(1.f)}});
    const run_result result = model_->run(call.inputs, {.trace = true});
    double longest = 0;
    for (const auto& c : result.trace->chunks)
      for (const device_timing& t : c.timings)
        if (t.kind == device_timing::work::node && t.seconds() > longest) {
          longest = t.seconds();
          kernel_ = t.kernel;
        }
    return longest * 1e6;
  }

  double busy(session& model, const measured_call& call) {
    heater_.run({{"x", tensor::scalar(1.f)}});
    return model.run(call.inputs).stats.busy_ms.at(0).second * 1e3;
  }

  /// Some milliseconds of work that moves nothing to or from the host.
  static built_model heating() {
    constexpr int64_t n = 2048;
    model_builder m;
    const int64_t dims[] = {n, n};
    const variable a = m.call("Expand", {m.input("x", dtype::float32, {}), m.constant(tensor::of<int64_t>({2}, dims))});
    return finish(m, {m.call("ReduceMax", {m.call("MatMul", {m.call("MatMul", {a, a}), a})})});
  }

  engine engine_;
  session heater_;
  std::optional<session> model_, longer_;
  std::string kernel_;
  std::vector<double> samples_;
  std::vector<double> result_;
};

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double off = 0, all = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    off += (a[i] - b[i]) * (a[i] - b[i]);
    all += b[i] * b[i];
  }
  return std::sqrt(off / all);
}

void time_alternatives(std::span<const std::unique_ptr<alternative>> all, const measured_call& call) {
  constexpr int rounds = 25;
  constexpr std::chrono::milliseconds warm_up{1000}; // clocks of a process's first second are low
  size_t count = 0;
  do { // the last alternative is used for all that do not exist
    all[count]->load(call);
    all[count]->time(call);
    ++count;
  } while (count < all.size() && (count < 2 || all[count - 1]->kernel() != all[count - 2]->kernel()));
  if (count > 1 && all[count - 1]->kernel() == all[count - 2]->kernel())
    --count;
  for (const auto warm = clock_type::now() + warm_up; clock_type::now() < warm;)
    all[0]->time(call);
  for (const auto& each : all.first(count))
    each->forget_times();
  for (int round = 0; round < rounds; ++round)
    for (const auto& each : all.first(count))
      each->time(call);
  for (const auto& each : all.first(count))
    fmt::print("  {:<36} {:9.1f} us {:8.1f} TFLOP/s  off by {:.1e}\n", each->kernel(), each->microseconds(),
               call.flops / each->microseconds() * 1e-6, distance(each->result(), all[count - 1]->result()));
}

} // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 4)
      fail(errc::invalid_argument, "usage: bench_kernel GPU fp32|fp16 CALL…");
    constexpr uint32_t most_alternatives = 12;
    const auto gpu = static_cast<uint32_t>(std::stoul(argv[1]));
    const dtype type = std::string(argv[2]) == "fp16" ? dtype::float16 : dtype::float32;
    const auto gpus = std::make_shared<const vulkan::instance>();
    std::vector<std::unique_ptr<alternative>> all;
    for (uint32_t i = 0; i < most_alternatives; ++i)
      all.push_back(std::make_unique<alternative>(gpus, gpu, i));
    for (int i = 3; i < argc; ++i) {
      fmt::print("{} {}\n", argv[i], argv[2]);
      time_alternatives(all, call_maker(type).make(argv[i]));
    }
  } catch (const std::exception& problem) {
    fmt::print(stderr, "bench_kernel: {}\n", problem.what());
    return 1;
  }
  return 0;
}
