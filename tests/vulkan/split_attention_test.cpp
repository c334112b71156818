// Attention of few queries whose last groups join the splits of the keys: the counter of the groups is as it was when
// they are done.
#include "support/bound_values.hpp"
#include "support/kernel_case.hpp"
#include "support/operator_launches.hpp"
#include "vulkan/device_choice.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t heads = 2, width = 64, columns = heads * width;

/// One query beside any number of keys; its attention twice, one after the other, and once more beside the first.
graph attention_model() {
  graph_builder b(23);
  const value_id q = b.input("q", {1, 1, columns}), other = b.input("other", {1, 1, columns}),
                 k = b.input("k", {1, dim::symbol("keys"), columns}),
                 v = b.input("v", {1, dim::symbol("keys"), columns});
  const auto attention = [&](value_id query, const std::string& name) {
    return b.op("Attention", {query, k, v}, attrs_of({{"q_num_heads", heads}, {"kv_num_heads", heads}}), name);
  };
  const value_id first = attention(q, "first");
  b.g.outputs = {first, attention(first, "second"), attention(other, "beside")};
  return b.g;
}

} // namespace

TEST_CASE("GPU attention whose last groups join its splits is right run after run", "[vulkan][A9]") {
  attributes attrs;
  attrs.set("q_num_heads", heads);
  attrs.set("kv_num_heads", heads);
  const gpu_features features = vulkan::features_of(gpus()->gpus()[0].snapshot);
  const auto splits_of = [&](int64_t keys) {
    const operand row{.type = dtype::float32, .dims = {1, 1, columns}},
        many{.type = dtype::float32, .dims = {1, keys, columns}};
    return testing::onnx_launches("Attention", {attrs, {row, many, many}, {row}, features})
        .at(0)
        .launches.at(0)
        .groups[2];
  };
  REQUIRE(splits_of(3000) > splits_of(1000));
  REQUIRE(splits_of(1000) > splits_of(20));

  engine on_gpu(engine_of({gpu("g", {.poison = true})})), on_cpu(engine_of({reference("ref")}));
  const session split = on_gpu.load(attention_model()), wanted = on_cpu.load(attention_model());
  uint64_t seed = 0;
  for (const int64_t keys : {3000, 3000, 1000, 2900, 20, 1000, 3000}) {
    named_tensors inputs;
    for (const char* name : {"q", "other", "k", "v"})
      inputs[name] = random_floats({1, *name == 'k' || *name == 'v' ? keys : 1, columns}, ++seed);
    const named_tensors right = wanted.run(inputs).outputs;
    for (const auto& [name, value] : split.run(inputs).outputs)
      check_close(value, right.at(name), 1e-3, 1e-5);
  }
  CHECK(new_gpu_messages() == "");
}
