// Normalisations without learnt parameters: LRN, LpNormalization, MeanVarianceNormalization.
//
//   LRN:  y = x / (bias + alpha / size · Σ x² over the `size` channels around x's)^beta
//   LpNormalization: y = x / p-norm along `axis`; 0 if the norm is 0
//   MeanVarianceNormalization: y = (x − mean) / (√variance + 1e-9) over `axes`
#include "ops/onnx/local_norm.hpp"

#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <cmath>

namespace troupe {
namespace {

void infer_lrn(infer_context& c) {
  require_rank(c.rank(0), 2, "the input");
  if (c.attrs().integer("size") < 1)
    fail(errc::invalid_model, "attribute 'size' is {}, but must be positive", c.attrs().integer("size"));
  infer_same(c);
}

void lrn(kernel_context& c) {
  const const_view& x = c.input(0);
  const int64_t channels = x.dims[1], inner = volume(x.dims.subspan(2)), size = c.attrs().integer("size");
  const double alpha = c.attrs().real("alpha", 1e-4f), beta = c.attrs().real("beta", 0.75f);
  const double bias = c.attrs().real("bias", 1.f);
  const int64_t before = std::min(channels, (size - 1) / 2), behind = std::min(channels, size / 2);
  visit_compute(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x);
    write_as<C> out(c.output(0));
    parallel_for(x.dims[0] * channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t channel = i % channels, image = i - channel;
        const int64_t first = std::max<int64_t>(0, channel - before), last = std::min(channels - 1, channel + behind);
        for (int64_t j = 0; j < inner; ++j) {
          double sum = 0;
          for (int64_t k = image + first; k <= image + last; ++k)
            sum += static_cast<double>(in[k * inner + j]) * in[k * inner + j];
          out[i * inner + j] =
              static_cast<C>(in[i * inner + j] / std::pow(bias + alpha / static_cast<double>(size) * sum, beta));
        }
      }
    });
    out.commit();
  });
}

void infer_lp_norm(infer_context& c) {
  c.axis("axis", -1, c.rank(0));
  if (const int64_t p = c.attrs().integer("p", 2); p != 1 && p != 2)
    fail(errc::invalid_model, "attribute 'p' is {}, not 1 or 2", p);
  infer_same(c);
}

void lp_norm(kernel_context& c) {
  const const_view& x = c.input(0);
  const size_t axis = normalize_axis(c.attrs().integer("axis", -1), x.dims.size());
  const bool squares = c.attrs().integer("p", 2) == 2;
  const int64_t size = x.dims[axis], inner = volume(x.dims.subspan(axis + 1));
  visit_compute(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x);
    write_as<C> out(c.output(0));
    parallel_for(size ? x.size() / size : 0, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, size)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i / inner * size * inner + i % inner;
                     double norm = 0;
                     for (int64_t k = 0; k < size; ++k) {
                       const double value = in[first + k * inner];
                       norm += squares ? value * value : std::abs(value);
                     }
                     norm = squares ? std::sqrt(norm) : norm;
                     for (int64_t k = first; k < first + size * inner; k += inner)
                       out[k] = norm == 0 ? C(0) : static_cast<C>(in[k] / norm);
                   }
                 });
    out.commit();
  });
}

void infer_mvn(infer_context& c) {
  averaged_axes(c.attrs(), c.rank(0));
  infer_same(c);
}

void mvn(kernel_context& c) {
  const const_view& x = c.input(0);
  const std::vector<bool> averaged = averaged_axes(c.attrs(), x.dims.size());
  shape kept(x.dims.begin(), x.dims.end());
  for (size_t i = 0; i < kept.size(); ++i)
    kept[i] = averaged[i] ? 1 : kept[i];
  const shape strides = broadcast_strides(kept, x.dims);
  std::vector<int64_t> cell(static_cast<size_t>(x.size())); // which statistics an element belongs to
  for (size_t i = 0; i < cell.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t a = x.dims.size(); a-- > 0; rest /= x.dims[a])
      cell[i] += rest % x.dims[a] * strides[a];
  }
  visit_compute(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x);
    write_as<C> out(c.output(0));
    std::vector<double> mean(static_cast<size_t>(volume(kept)), 0.0), variance(mean);
    const double count = mean.empty() ? 1 : static_cast<double>(cell.size()) / static_cast<double>(mean.size());
    for (size_t i = 0; i < cell.size(); ++i)
      mean[static_cast<size_t>(cell[i])] += in[static_cast<int64_t>(i)] / count;
    for (size_t i = 0; i < cell.size(); ++i) {
      const double off = in[static_cast<int64_t>(i)] - mean[static_cast<size_t>(cell[i])];
      variance[static_cast<size_t>(cell[i])] += off * off / count;
    }
    for (size_t i = 0; i < cell.size(); ++i) {
      const auto at = static_cast<size_t>(cell[i]);
      out[static_cast<int64_t>(i)] =
          static_cast<C>((in[static_cast<int64_t>(i)] - mean[at]) / (std::sqrt(variance[at]) + 1e-9));
    }
    out.commit();
  });
}

void mean_variance_axes(call_axes& a) {
  const std::vector<bool> averaged = averaged_axes(a.call().attrs(), a.call().rank(0));
  for (size_t axis = 0; axis < averaged.size(); ++axis)
    if (!averaged[axis])
      a.map({{0, axis}}, axis);
}

constexpr op_def local_norm_row(std::string_view name, int64_t since, void (*infer)(infer_context&),
                                void (*reference)(kernel_context&), void (*axes)(call_axes&)) {
  return op_row(name, since, infer, reference,
                {.types = types::floats, .cost = cost_per_input<8>, .axes = axes, .mixes = "normalises over"});
}

constexpr auto local_norm_rows = std::to_array<op_def>({
    local_norm_row("LRN", 1, infer_lrn, lrn, axes::other_than<1>),
    local_norm_row("LpNormalization", 1, infer_lp_norm, lp_norm, axes::beside_axis<-1>),
    local_norm_row("MeanVarianceNormalization", 9, infer_mvn, mvn, mean_variance_axes),
});

} // namespace

std::vector<bool> averaged_axes(const attributes& attrs, size_t rank) {
  std::vector<bool> averaged(rank, false);
  for (int64_t axis : attrs.integers("axes", {0, 2, 3}))
    averaged[normalize_axis(axis, rank)] = true;
  return averaged;
}

extern constinit const op_table onnx_local_norm_ops = local_norm_rows;

} // namespace troupe
