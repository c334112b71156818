// Rules of convolution, pooling, normalisation of channels, resampling and recurrent layers.
#include "strategy/row_rules.hpp"

namespace troupe {
namespace {

/// A batch of images: each row is one, under the same weights and parameters.
row_axes images(const row_call& c) {
  c.others_are_shared({0});
  c.require_rows(0, 0);
  return {0};
}

/// The same for convolutions with their end: input `Residual` has the result's dims.
template <size_t Residual>
row_axes images_with_residual(const row_call& c) {
  c.others_are_shared({0, Residual});
  c.require_rows(0, 0);
  c.require_rows(Residual, 0);
  return {0};
}

/// Each image has places, or offsets and masks, of its own.
row_axes sampled_images(const row_call& c) {
  c.others_are_shared({0, 1});
  c.require_rows(0, 0);
  c.require_rows(1, 0);
  return {0};
}

row_axes deforms(const row_call& c) {
  c.others_are_shared({0, 2, 4});
  for (const size_t i : {0, 2, 4})
    c.require_rows(i, 0);
  return {0};
}

/// Its axis is an attribute until opset 20, then operand 2.
row_axes transforms(const row_call& c) {
  c.only_first_has_rows();
  const int64_t otherwise = c.def().since < 20 ? c.attrs().integer("axis", 1) : -2;
  const int64_t axis = c.context().has_input(2) ? c.context().require_constants(2).at(0) : otherwise;
  return {c.rows_beside(normalize_axis(axis, c.rank(0)), "transforms")};
}

row_axes max_pool_rule(const row_call& c) {
  if (c.context().has_output(1))
    fail(errc::unsupported, "returns indices that count through the whole batch");
  return images(c);
}

row_axes batch_norm_rule(const row_call& c) {
  if (c.attrs().integer("training_mode", 0) != 0 || c.context().has_output(1))
    fail(errc::unsupported, "takes mean and variance from the whole batch");
  return images(c);
}

/// An axis whose size stays is resampled onto itself, except in modes that move coordinates nevertheless.
row_axes resizes(const row_call& c) {
  c.only_first_has_rows();
  if (c.attrs().text("coordinate_transformation_mode", "").starts_with("tf_"))
    fail(errc::unsupported, "may move coordinates along the rows (mode {})",
         c.attrs().text("coordinate_transformation_mode", ""));
  return {c.rows_of(0)};
}

/// LSTM, GRU and RNN: batch first if `layout` is 1. Weights are shared; lengths and initial states are each row's own.
row_axes recurrent_rule(const row_call& c) {
  if (c.attrs().integer("quantized_state", 0) != 0)
    fail(errc::unsupported, "quantises the state of all rows with one scale");
  c.others_are_shared({0, 4, 5, 6});
  const bool first = c.attrs().integer("layout", 0) != 0;
  const size_t batch = first ? 0 : 1;
  c.require_rows(0, batch);
  c.require_rows(4, 0);
  c.require_rows(5, batch);
  c.require_rows(6, batch);
  return first ? row_axes{0} : row_axes{2, 1};
}

/// AttnLSTM: each row has a memory of its own, too.
row_axes recurrent_with_memory_rule(const row_call& c) {
  constexpr size_t memory = 11, memory_lengths = 12;
  c.others_are_shared({0, 4, 5, 6, memory, memory_lengths});
  for (const size_t own : {size_t{4}, memory, memory_lengths})
    c.require_rows(own, 0);
  for (const size_t own : {size_t{0}, size_t{5}, size_t{6}})
    c.require_rows(own, 1);
  return {2, 1};
}

constexpr auto window_entries = std::to_array<row_rule_entry>({
    {"", "AveragePool", images},
    {"", "BatchNormalization", batch_norm_rule},
    {"", "Col2Im", images},
    {"", "Conv", images},
    {"", "ConvInteger", images},
    {"", "ConvTranspose", images},
    {"", "DFT", transforms},
    {"", "DeformConv", deforms},
    {"", "DepthToSpace", images},
    {"", "GRU", recurrent_rule},
    {"", "GlobalAveragePool", images},
    {"", "GlobalLpPool", images},
    {"", "GlobalMaxPool", images},
    {"", "GridSample", sampled_images},
    {"", "GroupNormalization", images},
    {"", "InstanceNormalization", images},
    {"", "LRN", images},
    {"", "LSTM", recurrent_rule},
    {"", "LpPool", images},
    {"", "MaxPool", max_pool_rule},
    {"", "QLinearConv", images},
    {"", "RNN", recurrent_rule},
    {"", "Resize", resizes},
    {"", "STFT", images},
    {"", "SpaceToDepth", images},
    {"", "Upsample", resizes},
    {"com.microsoft", "AttnLSTM", recurrent_with_memory_rule},
    {"troupe", "Conv", images_with_residual<3>},
    {"troupe", "ConvTranspose", images_with_residual<3>},
    {"troupe", "GroupNormalization", images},
    {"troupe", "InstanceNormalization", images},
    {"troupe", "QuantizedConv", images_with_residual<9>},
    {"troupe", "Reorder", images},
});

} // namespace

std::span<const row_rule_entry> window_row_rules() {
  return window_entries;
}

} // namespace troupe
