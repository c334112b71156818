// Attention of few queries whose last groups join the splits of the keys: what counts the groups is as it was when they are done.
#include "launch/launches.hpp"
#include "support/bound_values.hpp"
#include "support/kernel_case.hpp"
#include "vulkan/device_choice.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t keys = 3000, width = 64;

/// One query beside many keys of one head; its attention twice, one behind the other, and once more beside the first.
graph attention_model() {
  graph_builder b(23);
  const value_id q = b.input("q", {1, 1, width}), other = b.input("other", {1, 1, width}),
                 k = b.input("k", {1, keys, width}), v = b.input("v", {1, keys, width});
  const auto attention = [&](value_id query, const std::string& name) {
    return b.op("Attention", {query, k, v}, attrs_of({{"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}}),
                name);
  };
  const value_id first = attention(q, "first");
  b.g.outputs = {first, attention(first, "second"), attention(other, "beside")};
  return b.g;
}

} // namespace

TEST_CASE("GPU attention whose last groups join its splits is right run after run", "[vulkan][A9]") {
  attributes attrs;
  attrs.set("q_num_heads", int64_t{1});
  attrs.set("kv_num_heads", int64_t{1});
  const operand row{.type = dtype::float32, .dims = {1, 1, width}},
      many{.type = dtype::float32, .dims = {1, keys, width}};
  const gpu_features features = vulkan::features_of(gpus()->gpus()[0].snapshot);
  const launch_list usual = attention_launches({attrs, {row, many, many}, {row}, features}).at(0);
  REQUIRE(usual.name == "attention.lanes.split1");
  REQUIRE(usual.launches.at(0).groups[2] > 1);

  engine on_gpu(engine_of({gpu("g", {.poison = true})})), on_cpu(engine_of({reference("ref")}));
  const session split = on_gpu.load(attention_model()), wanted = on_cpu.load(attention_model());
  named_tensors inputs{{"k", random_floats({1, keys, width}, 1)}, {"v", random_floats({1, keys, width}, 2)}};
  for (uint64_t run = 0; run < 4; ++run) {
    inputs["q"] = random_floats({1, 1, width}, 10 + run);
    inputs["other"] = random_floats({1, 1, width}, 20 + run);
    const named_tensors right = wanted.run(inputs).outputs;
    for (const auto& [name, value] : split.run(inputs).outputs)
      check_close(value, right.at(name), 1e-3, 1e-5);
  }
  CHECK(new_gpu_messages() == "");
}
