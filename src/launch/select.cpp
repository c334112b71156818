// GPU launch rules of operators that choose elements, or make them from nothing: OneHot, Trilu, ReverseSequence,
// ConstantOfShape, EyeLike, Range; Dropout, which hands its operand on and makes a mask; tasks of made-up graphs, whose
// outputs are zeros.
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "ops/movement.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

/// Dims that a shader adds as signed numbers must be below this.
constexpr int64_t signed_limit = int64_t{1} << 30;

/// The bits of the one element of `t`, in two words.
std::array<uint32_t, 2> bits_of_element(const tensor& t) {
  std::array<uint32_t, 2> words{};
  std::memcpy(words.data(), t.data(), static_cast<size_t>(t.bytes()));
  return words;
}

tensor one_of(dtype type) {
  tensor one(type, {});
  if (type == dtype::boolean)
    *one.mutable_data<bool>() = true;
  else
    visit_numeric(type, [&]<class T>(type_tag<T>) { *one.mutable_data<T>() = static_cast<T>(1); });
  return one;
}

/// Fills output `i`, whose number of elements is put into `how`.
void add_fill(launch_builder& b, const gpu_call& call, size_t i, const std::string& variant, shader::fill how) {
  how.count = call.outputs[i].size();
  b.add("fill." + variant, flat_groups(call.outputs[i].size(), 256, call.gpu), {b.out(i)}).params = words_of(how);
}

/// `columns` is 0 if everything is filled with `value`, not only diagonal k.
launch_lists fill(const gpu_call& call, std::string name, const tensor& value, int64_t columns, int64_t k) {
  const operand& out = call.outputs[0];
  const auto variant = movement_variant(out.type, call.gpu);
  if (!variant || value.type() != out.type || value.size() != 1)
    return {};
  const auto words = bits_of_element(value);
  launch_builder b(call, std::move(name));
  add_fill(b, call, 0, *variant, {.low = words[0], .high = words[1], .columns = columns, .k = static_cast<int>(k)});
  return single_list(b);
}

launch_lists constant_of_shape_launches(const gpu_call& call) {
  return fill(call, "constant_of_shape",
              call.attrs.has("value") ? call.attrs.tensor_value("value") : tensor::scalar(0.f), 0, 0);
}

launch_lists task_launches(const gpu_call& call) {
  const auto variant = movement_variant(dtype::float32, call.gpu);
  if (!variant)
    return {};
  launch_builder b(call, "task");
  for (size_t i = 0; i < call.outputs.size(); ++i)
    if (call.outputs[i].size() > 0)
      add_fill(b, call, i, *variant, {.low = 0, .high = 0, .columns = 0, .k = 0});
  return single_list(b);
}

/// Not if elements are dropped: which these are is what one generator draws, each number after the one before.
launch_lists dropout_launches(const gpu_call& call) {
  if (call.has_input(2)) {
    const tensor training = known_elements(call.inputs[2]);
    const tensor ratio = call.has_input(1) ? known_elements(call.inputs[1]) : tensor::scalar(0.5f);
    if (!training.defined() || !ratio.defined() || training.size() != 1 || ratio.size() != 1 ||
        (*training.data<bool>() && to_double(ratio.view())[0] != 0))
      return {};
  }
  launch_builder b(call, "dropout");
  if (!add_whole_copy(b, call, 0, 0))
    return {};
  if (call.has_output(1)) {
    const auto variant = movement_variant(call.outputs[1].type, call.gpu);
    if (!variant)
      return {};
    const auto words = bits_of_element(one_of(call.outputs[1].type));
    add_fill(b, call, 1, *variant, {.low = words[0], .high = words[1], .columns = 0, .k = 0});
  }
  return single_list(b);
}

launch_lists eye_like_launches(const gpu_call& call) {
  const operand& out = call.outputs[0];
  const int64_t k = call.attrs.integer("k", 0);
  if (out.dims[0] >= signed_limit || out.dims[1] >= signed_limit || k <= -signed_limit || k >= signed_limit)
    return {};
  return fill(call, "eye_like", one_of(out.type), std::max<int64_t>(out.dims[1], 1), k);
}

launch_lists range_launches(const gpu_call& call) {
  const operand& out = call.outputs[0];
  tensor start = known_elements(call.inputs[0]), delta = known_elements(call.inputs[2]);
  if (!start.defined() || !delta.defined() || start.size() != 1 || delta.size() != 1)
    return {};
  std::optional<std::string> variant;
  if (out.type == dtype::float32 || out.type == dtype::float16) {
    variant = arithmetic_variant(out.type, call.gpu);
    start = tensor::scalar(static_cast<float>(to_double(start.view()).at(0)));
    delta = tensor::scalar(static_cast<float>(to_double(delta.view()).at(0)));
  } else if ((types::integers & set_of(out.type)) && bits_of(out.type) >= 32) {
    variant = movement_variant(out.type, call.gpu);
  }
  if (!variant)
    return {};
  const auto s = bits_of_element(start), d = bits_of_element(delta);
  launch_builder b(call, "range");
  launch& l = b.add("range." + *variant, flat_groups(out.size(), 256, call.gpu), {b.out(0)});
  l.params = words_of(
      shader::range{.count = out.size(), .start_low = s[0], .start_high = s[1], .delta_low = d[0], .delta_high = d[1]});
  return single_list(b);
}

launch_lists one_hot_launches(const gpu_call& call) {
  const operand &indices = call.inputs[0], &values = call.inputs[2], &out = call.outputs[0];
  const auto variant = movement_variant(out.type, call.gpu);
  const auto kind = indices.type == dtype::float32 ? std::optional(shader::one_hot_float32) : index_words(indices);
  const size_t axis = normalize_axis(call.attrs.integer("axis", -1), out.dims.size());
  if (!variant || !kind || values.size() != 2 || out.dims[axis] >= signed_limit)
    return {};
  launch_builder b(call, "one_hot");
  launch& l = b.add("one_hot." + *variant, flat_groups(out.size(), 256, call.gpu), {b.in(0), b.in(2), b.out(0)});
  l.params = words_of(shader::one_hot{.count = out.size(),
                                      .depth = out.dims[axis],
                                      .inner = product(out.dims, axis + 1, out.dims.size()),
                                      .kind = *kind});
  return single_list(b);
}

launch_lists trilu_launches(const gpu_call& call) {
  const operand& out = call.outputs[0];
  const auto variant = movement_variant(out.type, call.gpu);
  const int64_t rows = out.dims[out.dims.size() - 2], columns = out.dims.back();
  const bool given = call.has_input(1);
  const auto words = given ? index_words(call.inputs[1]) : std::optional<uint32_t>(0);
  if (!variant || !words || rows >= signed_limit || columns >= signed_limit || (given && call.inputs[1].size() != 1))
    return {};
  launch_builder b(call, "trilu");
  launch& l =
      b.add("trilu." + *variant, flat_groups(out.size(), 256, call.gpu), {b.in(0), b.in(given ? 1 : 0), b.out(0)});
  const bool upper = call.attrs.integer("upper", 1) != 0;
  l.params =
      words_of(shader::trilu{.count = out.size(), .rows = rows, .columns = columns, .upper = upper, .k_words = *words});
  return single_list(b);
}

launch_lists reverse_sequence_launches(const gpu_call& call) {
  const operand &in = call.inputs[0], &lengths = call.inputs[1];
  const size_t batch = normalize_axis(call.attrs.integer("batch_axis", 1), in.dims.size());
  const size_t time = normalize_axis(call.attrs.integer("time_axis", 0), in.dims.size());
  const auto variant = movement_variant(in.type, call.gpu);
  const auto words = index_words(lengths);
  if (batch == time || lengths.size() != in.dims[batch])
    fail(errc::invalid_input, "ReverseSequence has {} lengths for a batch of {}", lengths.size(), in.dims[batch]);
  if (!variant || !words || in.dims[time] >= signed_limit)
    return {};
  const shape strides = strides_of(in.dims);
  launch_builder b(call, "reverse_sequence");
  launch& l =
      b.add("reverse_sequence." + *variant, flat_groups(in.size(), 256, call.gpu), {b.in(0), b.in(1), b.out(0)});
  l.params = words_of(shader::reverse_sequence{.count = in.size(),
                                               .times = in.dims[time],
                                               .time_step = strides[time],
                                               .batches = in.dims[batch],
                                               .batch_step = strides[batch],
                                               .length_words = *words});
  return single_list(b);
}

} // namespace

extern constinit const launch_rows select_rules = {
    {"", "ConstantOfShape", constant_of_shape_launches},
    {"", "Dropout", dropout_launches},
    {"", "EyeLike", eye_like_launches},
    {"", "OneHot", one_hot_launches},
    {"", "Range", range_launches},
    {"", "ReverseSequence", reverse_sequence_launches},
    {"", "Trilu", trilu_launches},
    {"troupe", "Task", task_launches},
};

} // namespace troupe
