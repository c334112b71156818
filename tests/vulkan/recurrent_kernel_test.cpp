#include "support/catch.hpp"
#include "support/kernel_case.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct layer {
  std::string op;
  int64_t gates, steps, batch, inputs, hidden;
  std::string direction = "forward";
};

/// A call with bias, without initial states.
kernel_case call_of(const layer& l) {
  const int64_t directions = l.direction == "bidirectional" ? 2 : 1, rows = l.gates * l.hidden;
  attributes attrs;
  attrs.set("hidden_size", l.hidden);
  attrs.set("direction", l.direction);
  attrs.set("linear_before_reset", int64_t{1});
  const float size = 1 / std::sqrt(static_cast<float>(l.hidden));
  return {.op = l.op,
          .inputs = {random_floats({l.steps, l.batch, l.inputs}, 1),
                     random_floats({directions, rows, l.inputs}, 2, -size, size),
                     random_floats({directions, rows, l.hidden}, 3, -size, size),
                     random_floats({directions, 2 * rows}, 4, -size, size)},
          .attrs = attrs,
          .outputs = l.op == "LSTM" ? size_t{3} : size_t{2},
          .rtol = 1e-3,
          .atol = 2e-5};
}

tensor state(const layer& l, uint64_t seed) {
  return random_floats({l.direction == "bidirectional" ? 2 : 1, l.batch, l.hidden}, seed);
}

} // namespace

TEST_CASE("GPU LSTM, one launch or one a step", "[vulkan]") {
  check_gpu_kernels(call_of({"LSTM", 4, 3, 2, 5, 6, "bidirectional"}));
}

TEST_CASE("GPU GRU whose reset gate comes before the product", "[vulkan]") {
  for (const layer& l :
       {layer{"GRU", 3, 5, 3, 7, 12}, {"GRU", 3, 4, 2, 20, 9, "bidirectional"}, {"GRU", 3, 1, 1, 4, 300}}) {
    kernel_case c = call_of(l);
    c.attrs.set("linear_before_reset", int64_t{0});
    check_gpu_kernels(c);
    c.inputs.resize(6);
    c.inputs[5] = state(l, 5);
    c.attrs.set("clip", 0.4f);
    c.inputs[3] = tensor();
    check_gpu_kernels(c);
    c.atol = 3e-3;
    check_gpu_kernels(c, true);
  }
}

TEST_CASE("GPU recurrent layers of other sizes", "[vulkan][slow]") {
  for (const auto& [op, gates] : {std::pair<const char*, int64_t>{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}})
    for (const layer& l : {layer{op, gates, 5, 1, 7, 12},
                           {op, gates, 4, 3, 20, 9, "reverse"},
                           {op, gates, 6, 5, 33, 40, "bidirectional"},
                           {op, gates, 1, 2, 4, 1}}) {
      kernel_case c = call_of(l);
      const bool with_states = l.batch > 1;
      if (with_states) {
        c.inputs.resize(6);
        c.inputs[5] = state(l, 5);
        if (gates == 4)
          c.inputs.push_back(state(l, 6));
      }
      check_gpu_kernels(c);
    }
  kernel_case half = call_of({"LSTM", 4, 6, 5, 33, 40, "bidirectional"});
  half.atol = 3e-3;
  check_gpu_kernels(half, true);
}

TEST_CASE("GPU recurrent layers too large for one group", "[vulkan][slow]") {
  check_gpu_kernels(call_of({"LSTM", 4, 3, 2, 16, 200, "bidirectional"}));
}

TEST_CASE("GPU recurrent layers: batch first, clip, coupled gates, Relu", "[vulkan][slow]") {
  const layer l{"LSTM", 4, 5, 2, 6, 8};
  kernel_case c = call_of(l);
  c.attrs.set("clip", 0.3f);
  c.attrs.set("input_forget", int64_t{1});
  check_gpu_kernels(c);
  c.attrs.set("layout", int64_t{1});
  c.inputs[0] = random_floats({2, 5, 6}, 1);
  check_gpu_kernels(c);
  kernel_case relu = call_of({"RNN", 1, 5, 2, 6, 8});
  relu.attrs.set("activations", std::vector<std::string>{"Relu"});
  check_gpu_kernels(relu);
}
