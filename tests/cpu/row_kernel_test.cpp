#include "cpu/kernel_check.hpp"
#include "ops/activation.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("softmax rows agree with the reference", "[cpu]") {
  for (const shape& x : std::vector<shape>{{5}, {3, 1}, {2, 3, 17}, {4, 700}})
    CHECK(kernel_check("", "Softmax").input(x, false, layout::plain, -8, 8).worst("softmax") < 1);
}

TEST_CASE("row norms agree with the reference", "[cpu]") {
  for (const shape& x : std::vector<shape>{{3, 8}, {2, 5, 33}, {1, 768}, {300, 64}}) {
    const shape last{x.back()};
    CHECK(kernel_check("", "LayerNormalization")
              .input(x, false, layout::plain, 3, 5)
              .input(last)
              .input(last)
              .worst("row_norm") < 1);
    CHECK(
        kernel_check("", "RMSNormalization").input(x, false, layout::plain, -4, 5).input(last, true).worst("row_norm") <
        1);
  }
  attributes a;
  a.set("axis", int64_t{1});
  CHECK(kernel_check("", "LayerNormalization", a).input({2, 3, 5}).input({3, 5}).input({3, 5}).worst("row_norm") < 1);
}

TEST_CASE("sums of long rows are as exact as floats", "[cpu]") {
  const shape row{1, 420'000};
  kernel_check norm("", "LayerNormalization");
  norm.input(row, false, layout::plain, 0, 1).input({row[1]}, true).input({row[1]}, true);
  CHECK(norm.worst("row_norm", 1e-6, 2e-6) < 1);
  kernel_check softmax("", "Softmax");
  CHECK(softmax.input(row, false, layout::plain, -0.1f, 0.1f).worst("softmax", 2e-6, 0) < 1);
}

TEST_CASE("recurrent layers agree with the reference", "[cpu]") {
  struct layer {
    const char *op, *kernel;
    int64_t gates;
    attributes attrs = {};
  };
  std::vector<layer> layers{
      {"LSTM", "lstm", 4}, {"GRU", "gru", 3}, {"GRU", "gru", 3}, {"RNN", "rnn", 1}, {"RNN", "rnn", 1}};
  layers[2].attrs.set("linear_before_reset", int64_t{1});
  layers[4].attrs.set("activations", std::vector<std::string>{"ReLU", "ReLU"});
  for (const layer& l : layers)
    for (const char* direction : {"forward", "reverse", "bidirectional"})
      for (const auto& [batch, hidden] : {std::pair<int64_t, int64_t>{1, 19}, {3, 19}, {6, 130}, {6, 128}})
        for (bool state : {false, true}) {
          const int64_t directions = std::string(direction) == "bidirectional" ? 2 : 1, inputs = 7, steps = 6;
          INFO(l.op << " " << direction << " batch " << batch << " hidden " << hidden);
          attributes a = l.attrs;
          if (a.has("activations") && directions == 1)
            a.set("activations", std::vector<std::string>{"Relu"});
          a.set("direction", std::string(direction));
          a.set("hidden_size", hidden);
          const int64_t rows = l.gates * hidden;
          kernel_check check("", l.op, a);
          check.input({steps, batch, inputs}).input({directions, rows, inputs}, true);
          check.input({directions, rows, hidden}, true, layout::plain, -0.1, 0.1);
          if (batch != 3)
            check.input({directions, 2 * rows}, true);
          else
            check.absent();
          if (state)
            check.absent().input({directions, batch, hidden});
          if (state && l.gates == 4)
            check.input({directions, batch, hidden});
          CHECK(check.worst(l.kernel, 1e-4, 1e-5, l.gates == 4 ? 3 : 2) < 1);
        }
}

TEST_CASE("channel norms of channels-last values agree with the reference", "[cpu]") {
  for (const shape& x : std::vector<shape>{{1, 6, 5, 7}, {2, 12, 33, 9}, {3, 4, 200}}) {
    INFO(to_string(x));
    kernel_check instance("", "InstanceNormalization");
    instance.input(x, false, layout::channels_last, 2, 4).input({x[1]}).input({x[1]}).channels_last_output();
    CHECK(instance.worst("group_norm") < 1);
    attributes a;
    a.set("num_groups", int64_t{2});
    kernel_check group("", "GroupNormalization", a);
    group.input(x, false, layout::channels_last, -3, 2).input({x[1]}).input({x[1]}).channels_last_output();
    CHECK(group.worst("group_norm") < 1);
    set_activation(a, {scalar_code::swish, 1, 0});
    kernel_check ended("troupe", "GroupNormalization", a);
    ended.input(x, false, layout::channels_last, -3, 2).input({2}).input({2}).channels_last_output(); // a scale a group
    CHECK(ended.worst("group_norm") < 1);
  }
}
