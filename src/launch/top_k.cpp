// GPU kernels of TopK (shaders/top_k.comp): rows are sorted if they fit a workgroup's memory, else searched k times.
#include "launch/launches.hpp"
#include "launch/parameters.hpp"
#include "launch/row_team.hpp"
#include "ops/op.hpp"

#include <algorithm>
#include <bit>

namespace troupe {

launch_lists top_k_launches(const gpu_call& call) {
  constexpr int64_t longest_sorted = 4096, pair_bytes = 8;
  const operand& x = call.inputs.at(0);
  const auto variant = arithmetic_variant(x.type, call.gpu);
  const bool has_values = call.has_output(0), has_indices = call.has_output(1);
  if ((variant != "f32" && variant != "f16" && variant != "i32") || (!has_values && !has_indices))
    return {};
  const size_t axis = normalize_axis(call.attrs.integer("axis", -1), x.dims.size());
  const row_extent e{volume(std::span(x.dims).first(axis)), x.dims[axis], volume(std::span(x.dims).subspan(axis + 1))};
  const int64_t k = call.outputs[has_values ? 0 : 1].dims.at(axis);
  if (k > e.size)
    fail(errc::invalid_input, "TopK takes {} elements of a dim of {}", k, e.size);
  const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(e.size, 2))));
  launch_lists lists;
  for (bool sorts : {true, false}) {
    if (sorts && (padded > longest_sorted || padded * pair_bytes > call.gpu.shared_bytes))
      continue;
    const int64_t most = std::min<int64_t>(call.gpu.max_group_size, 256), wanted = sorts ? padded / 2 : padded;
    const auto threads =
        std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(wanted, std::min<int64_t>(32, most), most)));
    launch_builder b(call, sorts ? "top_k.sort" : "top_k.select");
    launch& l = b.add("top_k." + *variant, flat_groups(e.rows(), 1, call.gpu),
                      {b.in(0), b.out(has_values ? 0 : 1), b.out(has_indices ? 1 : 0)});
    l.constants = {static_cast<uint32_t>(threads), sorts ? static_cast<uint32_t>(padded) : 0u,
                   call.attrs.integer("largest", 1) != 0, has_values, has_indices};
    l.params = words_of(shader::top_k{.rows = e.rows(), .size = e.size, .inner = e.inner, .k = k});
    if (auto list = b.finish())
      lists.push_back(std::move(*list));
  }
  return lists;
}

} // namespace troupe
