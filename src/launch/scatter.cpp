// GPU launch rules of ScatterElements (Scatter) and ScatterND: the data is copied, then the updates are put into the
// copy. If indices repeat without a reduction, ONNX leaves open which update stays. And of TensorScatter, one launch.
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "ops/movement.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// The number that the shaders give a reduction.
std::optional<uint32_t> reduction_code(const gpu_call& call) {
  constexpr std::pair<std::string_view, uint32_t> codes[] = {{"none", shader::scatter_none},
                                                             {"add", shader::scatter_add},
                                                             {"mul", shader::scatter_mul},
                                                             {"min", shader::scatter_min},
                                                             {"max", shader::scatter_max}};
  const std::string wanted = call.attrs.text("reduction", "none");
  for (const auto& [name, code] : codes)
    if (name == wanted && (code == shader::scatter_none || call.outputs[0].type != dtype::boolean))
      return code;
  return std::nullopt;
}

std::optional<std::string> variant_of(const gpu_call& call, uint32_t reduction, int64_t per_word) {
  const dtype type = call.outputs[0].type;
  if (reduction > 0)
    return arithmetic_variant(type, call.gpu);
  const auto bits = element_bits(type);
  return bits ? word_variant(static_cast<int>(*bits * per_word), call.gpu) : std::nullopt;
}

launch_lists scatter_elements_launches(const gpu_call& call) {
  const operand &indices = call.inputs[1], &updates = call.inputs[2], &out = call.outputs[0];
  const size_t rank = out.dims.size(), axis = normalize_axis(call.attrs.integer("axis", 0), rank);
  check_known_indices(indices, out.dims[axis]);
  for (size_t i = 0; i < rank; ++i)
    if (indices.dims[i] != updates.dims[i] || (i != axis && indices.dims[i] > out.dims[i]))
      fail(errc::invalid_input, "indices {} and updates {} do not fit data {}", to_string(indices.dims),
           to_string(updates.dims), to_string(out.dims));
  const auto reduction = reduction_code(call);
  const auto words = index_words(indices);
  if (!reduction || !words || rank > max_copy_axes || !is_countable(out.dims[axis], updates.size()))
    return {};
  const auto variant = variant_of(call, *reduction, 1);
  launch_builder b(call, "scatter_elements");
  if (!variant || !add_whole_copy(b, call, 0, 0))
    return {};
  b.next_step();
  const shape from = strides_of(indices.dims), to = strides_of(out.dims);
  const int64_t repeats = *reduction > 0 ? indices.dims[axis] : 1;
  const int64_t count = repeats == 0 ? 0 : indices.size() / repeats;
  launch& l = b.add("scatter_elements." + *variant, flat_groups(count, 256, call.gpu), {b.in(1), b.in(2), b.out(0)});
  l.constants = {*reduction};
  shader::scatter_elements block{.count = count,
                                 .rank = rank,
                                 .repeats = repeats,
                                 .repeat_step = from[axis],
                                 .bound = out.dims[axis],
                                 .step = to[axis],
                                 .index_words = *words};
  for (size_t i = 0; i < rank; ++i)
    block.axes[rank - 1 - i] = {i == axis && *reduction > 0 ? 1 : indices.dims[i], from[i], i == axis ? 0 : to[i]};
  l.params = words_of(block);
  return single_list(b);
}

launch_lists scatter_nd_launches(const gpu_call& call) {
  const operand &indices = call.inputs[1], &updates = call.inputs[2], &out = call.outputs[0];
  const auto length = static_cast<size_t>(indices.dims.back());
  const size_t rank = out.dims.size();
  const int64_t tuples = product(indices.dims, 0, indices.dims.size() - 1);
  if (length > rank || updates.size() != tuples * product(out.dims, length, rank))
    fail(errc::invalid_input, "updates {} do not fit indices {} into data {}", to_string(updates.dims),
         to_string(indices.dims), to_string(out.dims));
  const auto reduction = reduction_code(call);
  const auto words = index_words(indices);
  const auto bits = element_bits(out.type);
  if (!reduction || !words || !bits || length > max_copy_axes)
    return {};
  const int64_t run = product(out.dims, length, rank);
  const int64_t per_word = *reduction > 0 ? 1 : elements_per_word(*bits, {run});
  const auto variant = variant_of(call, *reduction, per_word);
  launch_builder b(call, "scatter_nd");
  if (!variant || !add_whole_copy(b, call, 0, 0))
    return {};
  b.next_step();
  const int64_t repeats = *reduction > 0 ? tuples : 1;
  const int64_t count = repeats == 0 ? 0 : tuples / repeats * run / per_word;
  launch& l = b.add("scatter_nd." + *variant, flat_groups(count, 256, call.gpu), {b.in(1), b.in(2), b.out(0)});
  l.constants = {*reduction};
  shader::scatter_nd block{
      .count = count, .run = run / per_word, .tuple = length, .repeats = repeats, .index_words = *words};
  const shape strides = strides_of(out.dims);
  for (size_t i = 0; i < length; ++i) {
    if (!is_countable(out.dims[i], updates.size()))
      return {};
    block.axes[i] = {out.dims[i], strides[i] / per_word};
  }
  l.params = words_of(block);
  return single_list(b);
}

launch_lists tensor_scatter_launches(const gpu_call& call) {
  const operand &update = call.inputs[1], &out = call.outputs[0];
  const size_t rank = out.dims.size(), axis = normalize_axis(call.attrs.integer("axis", -2), rank);
  const std::string mode = call.attrs.text("mode", "linear");
  for (size_t i = 0; i < rank; ++i)
    if (i != axis ? update.dims[i] != out.dims[i] : update.dims[i] > out.dims[i])
      fail(errc::invalid_input, "update {} does not fit cache {}", to_string(update.dims), to_string(out.dims));
  const bool given = call.has_input(2);
  const auto words = given ? index_words(call.inputs[2]) : std::optional<uint32_t>(0);
  const auto bits = element_bits(out.type);
  const bool known_mode = mode == "linear" || mode == "circular";
  if (!words || !bits || !known_mode || axis == 0 || !is_countable(out.dims[axis] + 1, 1) ||
      (given && call.inputs[2].size() != out.dims[0]))
    return {};
  const int64_t inner = product(out.dims, axis + 1, rank), per_word = elements_per_word(*bits, {inner});
  const auto variant = word_variant(static_cast<int>(*bits * per_word), call.gpu);
  if (!variant)
    return {};
  const int64_t count = out.size() / per_word;
  launch_builder b(call, "tensor_scatter");
  launch& l = b.add("tensor_scatter." + *variant, flat_groups(count, 256, call.gpu),
                    {b.in(0), b.in(1), b.in(given ? 2 : 1), b.out(0)});
  l.params = words_of(
      shader::tensor_scatter{.count = count,
                             .size = out.dims[axis],
                             .update_size = update.dims[axis],
                             .inner = inner / per_word,
                             .batch_step = count / std::max<int64_t>(out.dims[0], 1),
                             .start_words = *words,
                             .circular = mode == "circular",
                             .clear_after = update.dims[axis] > 0 && call.attrs.integer("clear_after", 0) != 0});
  return single_list(b);
}

} // namespace

extern constinit const launch_rows scatter_rules = {
    {"", "Scatter", scatter_elements_launches},
    {"", "ScatterElements", scatter_elements_launches},
    {"", "ScatterND", scatter_nd_launches},
    {"", "TensorScatter", tensor_scatter_launches},
};

} // namespace troupe
