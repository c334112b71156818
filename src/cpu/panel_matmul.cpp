// Products by one constant matrix from panels of its columns (panel_product.hpp): MatMul, Gemm and troupe.MatMul, and
// 1 × 1 convolutions of channels-last values, whose pixels are the rows.
#include "base/parallel.hpp"
#include "base/round_up.hpp"
#include "cpu/conv_call.hpp"
#include "cpu/kernels.hpp"
#include "cpu/panel_product.hpp"
#include "cpu/product.hpp"
#include "ops/window.hpp"

#include <algorithm>

namespace troupe {
namespace {

class panel_matmul_kernel final : public kernel {
public:
  panel_matmul_kernel(const kernel_request& r, const product_call& p)
      : p_(p),
        product_(r.resources.weights.get(pack_panels(r.inputs[1].constant, p.k, p.n, p.trans_b)), p.n, {0}, p.k, p.act),
        tiles_(ceil_div(p.m, panel_rows)),
        grid_(
            product_.grid_of({.units = tiles_, .unit_rows = ceil_div(p.m, tiles_), .unit_floats = panel_rows * p.k})) {}

  bool reads(size_t i) const override { return i != 1; }

  void run(const kernel_run& r) override {
    const float* const bias = p_.bias == SIZE_MAX ? nullptr : r.input<float>(p_.bias);
    const float* const residual = p_.residual == SIZE_MAX ? nullptr : r.input<float>(p_.residual);
    // Neighbouring tasks read the same panels.
    parallel_for(grid_.tasks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t block = task % grid_.row_blocks, group = task / grid_.row_blocks;
        const int64_t row = first_row(block), rows = first_row(block + 1) - row;
        product_.run({.x = r.input<float>(0) + row * p_.k,
                      .step = p_.k,
                      .rows = rows,
                      .residual = residual ? residual + row * p_.n : nullptr,
                      .y = r.output<float>(0) + row * p_.n},
                     product_.panels() * group / grid_.panel_groups,
                     product_.panels() * (group + 1) / grid_.panel_groups, bias);
      }
    });
  }

private:
  int64_t first_row(int64_t block) const { return p_.m * (tiles_ * block / grid_.row_blocks) / tiles_; }

  const product_call p_;
  const panel_product product_;
  const int64_t tiles_; // of rows
  const product_grid grid_;
};

} // namespace

kernel_ptr make_panel_matmul(const kernel_request& r) {
  const auto p = parse_product(r);
  if (!p || !r.inputs[1].constant || !p->batch.empty() || p->trans_a || p->alpha != 1)
    return nullptr;
  return std::make_unique<panel_matmul_kernel>(r, *p);
}

kernel_ptr make_pointwise_conv(const kernel_request& r) {
  const operand &x = r.inputs[0], &w = r.inputs[1], &y = r.outputs[0];
  if (!is_channels_last_conv(r) || volume(w.dims) != x.dims[1] * y.dims[1])
    return nullptr;
  // Every output pixel is made of the input pixel at its place: without strides, equal sizes leave no room for pads.
  const window_spec window = parse_window(r.call.attrs, shape(w.dims.begin() + 2, w.dims.end()));
  if (std::ranges::any_of(window.strides, [](int64_t s) { return s != 1; }) ||
      !std::equal(x.dims.begin() + 2, x.dims.end(), y.dims.begin() + 2, y.dims.end()))
    return nullptr;
  product_call p;
  p.m = volume(y.dims) / y.dims[1];
  p.n = y.dims[1];
  p.k = x.dims[1];
  p.trans_b = true;
  p.act = parse_activation(r.call.attrs);
  p.bias = r.has_input(2) ? 2 : SIZE_MAX;
  p.residual = r.has_input(3) ? 3 : SIZE_MAX;
  return std::make_unique<panel_matmul_kernel>(r, p);
}

} // namespace troupe
