#include "support/catch.hpp"
#include "support/kernel_case.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("GPU LinearAttention: rules, gates, states, heads that share them", "[vulkan]") {
  constexpr int64_t batch = 2, steps = 5, keys = 6, values = 7, heads = 2;
  for (const char* rule : {"linear", "gated", "delta", "gated_delta"})
    for (int64_t q_heads : {2, 4})
      for (bool by_rows : {false, true}) {
        kernel_case c{.op = "LinearAttention", .opset = 27, .outputs = by_rows ? size_t{1} : size_t{2}, .rtol = 1e-3};
        c.attrs.set("update_rule", std::string(rule));
        c.attrs.set("q_num_heads", q_heads);
        c.attrs.set("kv_num_heads", heads);
        c.inputs = {random_floats({batch, steps, q_heads * keys}, 1),
                    random_floats({batch, steps, heads * keys}, 2),
                    random_floats({batch, steps, heads * values}, 3),
                    by_rows ? tensor() : random_floats({batch, heads, keys, values}, 4),
                    random_floats({batch, steps, by_rows ? heads * keys : heads}, 5, -1, 0),
                    random_floats({batch, steps, by_rows ? 1 : heads}, 6, 0, 1)};
        check_gpu_kernels(c);
        c.atol = 5e-3;
        check_gpu_kernels(c, true);
      }
}
