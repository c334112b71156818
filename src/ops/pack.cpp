#include "ops/pack.hpp"

#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "ops/strided_copy.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

class packing {
public:
  packing(kernel_context& c, const shape& dims, const shape& order)
      : in_(c.input(0)), out_(c.output(0)), order_(order), units_(order.size()), axes_(order.size()) {
    const shape from = strides_of(dims), to = strides_of(out_.dims);
    shape unit(dims.size(), 1);
    for (size_t i = order.size(); i-- > 0;) {
      const auto axis = static_cast<size_t>(order[i]);
      units_[i] = unit.at(axis);
      axes_[i] = {0, from[axis] * units_[i], to[i]};
      unit[axis] *= out_.dims[i];
    }
  }

  /// Copies along the axes from `axis` on, whose first elements are `from` and `to`. Of axis a of the operand,
  /// `left[a]` positions are to be walked by them.
  void copy(size_t axis, shape left, int64_t from, int64_t to) {
    if (axis == axes_.size()) {
      expects(std::all_of(left.begin(), left.end(), [](int64_t n) { return n == 1; }), "a packing leaves axes out");
      copy_strided(in_.type, element_at(in_.type, in_.data, from), element_at(in_.type, out_.data, to), axes_);
      return;
    }
    copy_axis& walk = axes_[axis];
    int64_t& positions = left[static_cast<size_t>(order_[axis])];
    const int64_t whole = positions / units_[axis], rest = positions % units_[axis];
    expects(whole + (rest > 0) <= out_.dims[axis], "a packing cannot shrink an axis");
    walk.size = whole;
    positions = units_[axis];
    copy(axis + 1, left, from, to);
    if (rest == 0)
      return;
    walk.size = 1; // the last block is not full
    positions = rest;
    copy(axis + 1, left, from + whole * walk.from, to + whole * walk.to);
  }

private:
  const const_view& in_;
  const mutable_view& out_;
  const shape& order_;
  shape units_; // by axis of the result: how many positions of the operand's axis a step passes
  std::vector<copy_axis> axes_;
};

void infer_pack(infer_context& c) {
  c.set_output(0, c.type(0), to_symbolic(c.attrs().integers("sizes")));
}

void pack_reference(kernel_context& c) {
  const shape dims = c.attrs().integers("dims"), order = c.attrs().integers("order");
  const int64_t size = c.input(0).size();
  expects(volume(dims) == size && order.size() == c.output(0).dims.size(), "a packing does not fit");
  if (c.output(0).size() != size)
    std::memset(c.output(0).data, 0, static_cast<size_t>(c.output(0).bytes()));
  packing(c, dims, order).copy(0, dims, 0, 0);
}

void infer_sum_rows(infer_context& c) {
  symbolic_shape rows = c.dims(0);
  rows.pop_back();
  c.set_output(0, dtype::int32, std::move(rows));
}

void sum_rows_reference(kernel_context& c) {
  const const_view& in = c.input(0);
  const mutable_view& out = c.output(0);
  const auto* x = in.as<int8_t>();
  const int64_t width = in.dims.back();
  for (int64_t row = 0; row < out.size(); ++row)
    out.as<int32_t>()[row] = std::accumulate(x + row * width, x + (row + 1) * width, int32_t{0});
}

constexpr op_def sum_rows_op{
    .domain = "troupe", .name = "SumRows", .since = 1, .infer = infer_sum_rows, .reference = sum_rows_reference};

constexpr op_def pack_op{
    .domain = "troupe", .name = "Pack", .since = 1, .infer = infer_pack, .reference = pack_reference};

} // namespace

weight_ptr pack(const weight_ptr& w, shape dims, shape order, shape sizes) {
  if (sizes.empty())
    for (int64_t axis : order)
      sizes.push_back(dims.at(static_cast<size_t>(axis)));
  attributes attrs;
  attrs.set("dims", std::move(dims));
  attrs.set("order", std::move(order));
  attrs.set("sizes", sizes);
  return make_step(pack_op, std::move(attrs), {w}, w->type, std::move(sizes));
}

weight_ptr repeat(const weight_ptr& w, int64_t count) {
  const op_def* expand = find_op("", "Expand", newest_opset(""));
  expects(expand != nullptr && w->dims.size() == 1, "only vectors are repeated");
  const shape dims{count, w->dims[0]};
  const weight_ptr target = weight::from_tensor(tensor::of<int64_t>({2}, std::span<const int64_t>(dims)));
  return make_step(*expand, {}, {w, target}, w->type, dims);
}

weight_ptr sum_rows(const weight_ptr& w) {
  expects(w->type == dtype::int8 && !w->dims.empty(), "only rows of int8 are summed");
  return make_step(sum_rows_op, {}, {w}, dtype::int32, shape(w->dims.begin(), w->dims.end() - 1));
}

} // namespace troupe
