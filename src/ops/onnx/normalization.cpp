// Normalisations by statistics of a part of the operand: y = (x − mean) / √(variance + epsilon) · scale + bias.
//
// They differ in the part (BatchNormalization: given or batch statistics of a channel; InstanceNormalization: a channel
// of one image; GroupNormalization: a group of channels of one image; LayerNormalization and RMSNormalization: the axes
// from `axis` on) and in where scale and bias are. Sums are in double; the variance is that of the population.
//
// InstanceNormalization and GroupNormalization of domain troupe, produced by fusion, are those of ONNX, the latter of
// either opset, followed by an activation (ops/activation.hpp).
#include "ops/axes.hpp"
#include "ops/epilogue.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <cmath>

namespace troupe {
namespace {

struct moments {
  double mean = 0, variance = 0;
};

/// Returns mean and variance of `count` consecutive elements, in two passes.
template <class C>
moments moments_of(const C* x, int64_t count) {
  moments m;
  for (int64_t i = 0; i < count; ++i)
    m.mean += x[i];
  m.mean /= static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i)
    m.variance += (x[i] - m.mean) * (x[i] - m.mean);
  m.variance /= static_cast<double>(count);
  return m;
}

int64_t grain_for(int64_t elements) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, elements));
}

// -- BatchNormalization

/// Returns how many statistics there are: one a channel, in old opsets with spatial = 0 one a feature.
dim statistics(const attributes& attrs, std::span<const dim> x) {
  require_rank(x.size(), 1, "the input");
  const dim channels = x.size() > 1 ? x[1] : dim(1);
  return attrs.integer("spatial", 1) != 0 ? channels : volume(x.subspan(1));
}

void check_statistics(const attributes& attrs, std::span<const dim> x, std::span<const dim> vector, size_t input) {
  require_same(volume(vector), statistics(attrs, x),
               fmt::format("elements of input {} and channels of input 0", input));
}

void infer_batch_norm(infer_context& c) {
  for (size_t i = 1; i < 5; ++i)
    check_statistics(c.attrs(), c.dims(0), c.dims(i), i);
  infer_same(c);
  for (size_t i = 1; i < c.output_count(); ++i) // running (and, before opset 9, saved) mean and variance
    c.set_output(i, c.type(3), c.dims(3));
}

/// y = x · factor + shift for channel-shaped factors; [outer, channels, inner].
template <class C>
void scale_channels(const C* x, C* y, int64_t outer, int64_t inner, const std::vector<double>& factor,
                    const std::vector<double>& shift) {
  const auto channels = static_cast<int64_t>(factor.size());
  parallel_for(outer * channels, grain_for(inner), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto channel = static_cast<size_t>(i % channels);
      const auto a = static_cast<C>(factor[channel]), b = static_cast<C>(shift[channel]);
      for (int64_t j = i * inner; j < (i + 1) * inner; ++j)
        y[j] = x[j] * a + b;
    }
  });
}

/// Returns mean and variance of every channel over batch and space.
template <class C>
std::vector<moments> batch_moments(const C* x, int64_t outer, int64_t channels, int64_t inner) {
  std::vector<moments> result(static_cast<size_t>(channels));
  const auto count = static_cast<double>(outer * inner);
  parallel_for(channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      moments& m = result[static_cast<size_t>(c)];
      for (int pass = 0; pass < 2; ++pass) {
        double sum = 0;
        for (int64_t n = 0; n < outer; ++n)
          for (int64_t i = 0; i < inner; ++i) {
            const double v = x[(n * channels + c) * inner + i];
            sum += pass == 0 ? v : (v - m.mean) * (v - m.mean);
          }
        (pass == 0 ? m.mean : m.variance) = sum / count;
      }
    }
  });
  return result;
}

/// `Training`: rows whose attribute training_mode asks for the statistics of this batch.
template <bool Training>
void batch_norm(kernel_context& c) {
  const const_view& x = c.input(0);
  const symbolic_shape dims = to_symbolic(x.dims);
  for (size_t i = 1; i < 5; ++i)
    check_statistics(c.attrs(), dims, to_symbolic(c.input(i).dims), i);
  const int64_t channels = statistics(c.attrs(), dims).constant();
  const int64_t outer = x.dims[0], inner = outer > 0 && channels > 0 ? x.size() / (outer * channels) : 0;
  const bool training = Training && c.attrs().integer("training_mode", 0) != 0;
  const double epsilon = c.attrs().real("epsilon", 1e-5f), momentum = c.attrs().real("momentum", 0.9f);
  visit_compute(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x);
    const read_as<double> scale(c.input(1)), bias(c.input(2)), mean(c.input(3)), variance(c.input(4));
    std::vector<moments> used(static_cast<size_t>(channels));
    if (training)
      used = batch_moments(in.data(), outer, channels, inner);
    else
      for (int64_t i = 0; i < channels; ++i)
        used[static_cast<size_t>(i)] = {mean[i], variance[i]};
    std::vector<double> factor(used.size()), shift(used.size());
    for (size_t i = 0; i < used.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      factor[i] = scale[at] / std::sqrt(used[i].variance + epsilon);
      shift[i] = bias[at] - used[i].mean * factor[i];
    }
    // Every further output is a running statistic, means at odd places; without training they stay what they were.
    for (size_t o = 1; o < c.output_count(); ++o) {
      write_as<double> running(optional_output(c, o));
      for (int64_t i = 0; running && i < channels; ++i) {
        const moments& m = used[static_cast<size_t>(i)];
        const double old = o % 2 ? mean[i] : variance[i], now = o % 2 ? m.mean : m.variance;
        running[i] = training ? old * momentum + now * (1 - momentum) : old;
      }
      running.commit();
    }
    write_as<C> out(c.output(0));
    scale_channels(in.data(), out.data(), outer, inner, factor, shift);
    out.commit();
  });
}

// -- InstanceNormalization and GroupNormalization

/// Returns the number of groups of channels.
int64_t group_count(const attributes& attrs, const dim& channels) {
  const int64_t groups = attrs.integer("num_groups");
  if (groups < 1 || (channels.is_constant() && channels.constant() % groups != 0))
    fail(errc::invalid_model, "{} channels cannot be split into {} groups", channels.to_string(), groups);
  return groups;
}

void infer_instance_norm(infer_context& c) {
  require_rank(c.rank(0), 3, "the input");
  for (size_t i = 1; i < 3; ++i)
    require_same_dims(c.dims(i), std::span(&c.dims(0)[1], 1), "scale or bias and channels");
  infer_same(c);
}

/// PerGroup: scale and bias have an element a group (opset 18), else a channel.
template <bool PerGroup>
void infer_group_norm(infer_context& c) {
  require_rank(c.rank(0), 2, "the input");
  const dim groups = group_count(c.attrs(), c.dims(0)[1]);
  const dim& vectors = PerGroup ? groups : c.dims(0)[1];
  for (size_t i = 1; i < 3; ++i)
    require_same_dims(c.dims(i), std::span(&vectors, 1), "scale or bias and channels or groups");
  infer_same(c);
}

/// Normalises each of `groups` groups of channels of each image; `vectors` is the number of scales.
void group_norm(kernel_context& c, int64_t groups, int64_t vectors) {
  const const_view& x = c.input(0);
  const int64_t channels = x.dims[1];
  require_same(c.input(1).size(), vectors, "elements of scale and channels or groups");
  require_same(c.input(2).size(), vectors, "elements of bias and channels or groups");
  if (x.size() == 0)
    return;
  const double epsilon = c.attrs().real("epsilon", 1e-5f);
  const int64_t in_group = channels / groups, inner = x.size() / (x.dims[0] * channels);
  visit_compute(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x);
    const read_as<double> scale(c.input(1)), bias(c.input(2));
    write_as<C> out(c.output(0));
    parallel_for(x.dims[0] * groups, grain_for(in_group * inner), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const moments m = moments_of(in.data() + g * in_group * inner, in_group * inner);
        const double factor = 1 / std::sqrt(m.variance + epsilon);
        for (int64_t k = g * in_group; k < (g + 1) * in_group; ++k) {
          const int64_t vector = k % channels / (channels / vectors);
          for (int64_t i = k * inner; i < (k + 1) * inner; ++i)
            out[i] = static_cast<C>((in[i] - m.mean) * factor * scale[vector] + bias[vector]);
        }
      }
    });
    out.commit();
  });
}

void instance_norm(kernel_context& c) {
  group_norm(c, c.input(0).dims[1], c.input(0).dims[1]);
}

template <bool PerGroup>
void group_normalization(kernel_context& c) {
  const int64_t groups = group_count(c.attrs(), c.input(0).dims[1]);
  group_norm(c, groups, PerGroup ? groups : c.input(0).dims[1]);
}

// -- the same and an activation

void infer_fused_instance_norm(infer_context& c) {
  infer_instance_norm(c);
  parse_activation(c.attrs());
}

/// Scale and bias have an element a group, or else a channel.
void infer_fused_group_norm(infer_context& c) {
  const bool per_group = c.rank(1) == 1 && c.dims(1)[0] == dim(group_count(c.attrs(), c.dims(0)[1]));
  (per_group ? infer_group_norm<true> : infer_group_norm<false>)(c);
  parse_activation(c.attrs());
}

void fused_instance_norm(kernel_context& c) {
  instance_norm(c);
  apply_epilogue(c.output(0), {}, parse_activation(c.attrs()));
}

void fused_group_norm(kernel_context& c) {
  const int64_t channels = c.input(0).dims[1], groups = group_count(c.attrs(), channels);
  group_norm(c, groups, c.input(1).size() == groups ? groups : channels);
  apply_epilogue(c.output(0), {}, parse_activation(c.attrs()));
}

// -- rows

/// About eight operations an element: two passes for the moments, one for the result.
constexpr auto norm_cost = cost_per_input<8>;

void batch_norm_axes(call_axes& a) {
  if (a.call().attrs().integer("training_mode", 0) != 0 || a.call().has_output(1))
    a.refuse("takes mean and variance from the whole batch");
  for (size_t axis = 0; axis < a.call().rank(0); ++axis) {
    call_axis& made = a.map({{0, axis}}, axis);
    for (const size_t by_channel : {1, 2, 3, 4})
      if (axis == 1)
        a.join(made, {by_channel, 0});
  }
}

void instance_norm_axes(call_axes& a) {
  a.batches();
  a.map({{0, 1}, {1, 0}, {2, 0}}, 1);
}

constexpr op_def batch_norm_row(int64_t since, uint8_t outputs, void (*reference)(kernel_context&)) {
  return op_row("BatchNormalization", since, infer_batch_norm, reference,
                {.inputs = {5, 5},
                 .max_outputs = outputs,
                 .types = types::floats,
                 .layouts = layout_support::spatial,
                 .cost = norm_cost,
                 .axes = batch_norm_axes});
}

/// Channels-last operands neither cost nor gain it anything.
constexpr op_def channel_norm_row(std::string_view name, int64_t since, void (*infer)(infer_context&),
                                  void (*reference)(kernel_context&), void (*axes)(call_axes&),
                                  std::string_view domain = "") {
  return op_row(name, since, infer, reference,
                {.domain = domain,
                 .inputs = {3, 3},
                 .types = types::floats,
                 .layouts = layout_support::normalizing,
                 .cost = norm_cost,
                 .axes = axes,
                 .mixes = "normalises over"});
}

constexpr auto normalization_rows = std::to_array<op_def>({
    batch_norm_row(1, 5, batch_norm<false>),
    batch_norm_row(14, 3, batch_norm<true>),
    channel_norm_row("InstanceNormalization", 1, infer_instance_norm, instance_norm, instance_norm_axes),
    channel_norm_row("GroupNormalization", 18, infer_group_norm<true>, group_normalization<true>, axes::batch<>),
    channel_norm_row("GroupNormalization", 21, infer_group_norm<false>, group_normalization<false>, axes::batch<>),
    channel_norm_row("InstanceNormalization", 1, infer_fused_instance_norm, fused_instance_norm, instance_norm_axes,
                     "troupe"),
    channel_norm_row("GroupNormalization", 1, infer_fused_group_norm, fused_group_norm, axes::batch<>, "troupe"),
});

} // namespace

extern constinit const op_table onnx_normalization_ops = normalization_rows;

} // namespace troupe
