// Shapes as data, and tensors made from shapes: Shape, Size, Constant, ConstantOfShape, Range, EyeLike, Expand.
// Their elements are host-known wherever the dims are, so exporters' shape arithmetic never runs on a device.
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/movement.hpp"
#include "ops/operand_copy.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr int64_t shape_ops_grain = 32 * 1024;

/// The dims [start, end) that Shape returns; out-of-range bounds are clamped (opset 15).
std::pair<size_t, size_t> shape_range(const attributes& attrs, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  const auto clamp = [r](int64_t i) { return std::clamp<int64_t>(i < 0 ? std::max(i, -r) + r : i, 0, r); };
  const int64_t start = clamp(attrs.integer("start", 0)), end = clamp(attrs.integer("end", r));
  return {static_cast<size_t>(start), static_cast<size_t>(std::max(start, end))};
}

void infer_shape(infer_context& c) {
  const symbolic_shape& in = c.dims(0);
  const auto [start, end] = shape_range(c.attrs(), in.size());
  c.set_output(0, dtype::int64, {static_cast<int64_t>(end - start)});
  c.set_known(0, {in.begin() + static_cast<int64_t>(start), in.begin() + static_cast<int64_t>(end)});
}

void shape_kernel(kernel_context& c) {
  const auto dims = c.input(0).dims;
  const auto [start, end] = shape_range(c.attrs(), dims.size());
  std::copy(dims.begin() + static_cast<int64_t>(start), dims.begin() + static_cast<int64_t>(end),
            c.output(0).as<int64_t>());
}

void infer_size(infer_context& c) {
  c.set_output(0, dtype::int64, {});
  c.set_known(0, {volume(c.dims(0))});
}

void size_kernel(kernel_context& c) {
  *c.output(0).as<int64_t>() = c.input(0).size();
}

/// The tensor that a Constant's one attribute states.
tensor constant_value(const attributes& attrs) {
  if (attrs.has("value"))
    return attrs.tensor_value("value");
  if (attrs.has("value_float"))
    return tensor::scalar(attrs.real("value_float"));
  if (attrs.has("value_int"))
    return tensor::scalar(attrs.integer("value_int"));
  if (attrs.has("value_string"))
    return tensor::scalar(attrs.text("value_string", ""));
  const auto list = [](const auto& values) {
    using T = typename std::decay_t<decltype(values)>::value_type;
    return tensor::of<T>({static_cast<int64_t>(values.size())}, values);
  };
  if (attrs.has("value_floats"))
    return list(attrs.reals("value_floats", {}));
  if (attrs.has("value_ints"))
    return list(attrs.integers("value_ints"));
  if (attrs.has("value_strings"))
    return list(attrs.texts("value_strings", {}));
  fail(errc::unsupported, "a Constant needs value, value_float(s), value_int(s) or value_string(s)");
}

/// States the elements of an integer tensor that is the same in every run.
void set_known_elements(infer_context& c, const tensor& value) {
  if (!((types::integers | types::boolean) & set_of(value.type())))
    return;
  if (value.size() > static_cast<int64_t>(max_known_elements))
    return;
  const auto elements = to_int64(value.view());
  c.set_known(0, {elements.begin(), elements.end()});
}

void infer_constant(infer_context& c) {
  const tensor value = constant_value(c.attrs());
  c.set_output(0, value.type(), to_symbolic(value.dims()));
  set_known_elements(c, value);
}

void constant_kernel(kernel_context& c) {
  copy_all(constant_value(c.attrs()).view(), c.output(0));
}

/// The one element that ConstantOfShape repeats: 0.0f unless stated.
tensor fill_value(const attributes& attrs) {
  tensor value = attrs.has("value") ? attrs.tensor_value("value") : tensor::scalar(0.f);
  if (value.size() != 1)
    fail(errc::invalid_model, "the value of ConstantOfShape has {} elements instead of one", value.size());
  return value;
}

void infer_constant_of_shape(infer_context& c) {
  const std::vector<dim> dims = c.require_known(0);
  for (const dim& d : dims)
    if (d.is_constant() && d.constant() < 0)
      fail(errc::invalid_model, "shape {} has a negative dim", to_string(dims));
  const tensor value = fill_value(c.attrs());
  c.set_output(0, value.type(), dims);
  const bool integral = (types::integers | types::boolean) & set_of(value.type());
  if (!integral || !is_constant(dims))
    return;
  if (const int64_t size = volume(constants(dims)); size <= static_cast<int64_t>(max_known_elements))
    c.set_known(0, std::vector<dim>(static_cast<size_t>(size), to_int64(value.view()).at(0)));
}

void constant_of_shape_kernel(kernel_context& c) {
  copy_strided(c.output(0).type, fill_value(c.attrs()).data(), c.output(0).data, {{c.output(0).size(), 0, 1}});
}

/// ⌈(limit - start) / delta⌉, at least 0, in double for floats and in 128 bits for integers: no overflow.
template <class T>
int64_t range_length(T start, T limit, T delta) {
  if (delta == T(0))
    fail(errc::invalid_input, "Range has a delta of 0");
  if constexpr (std::is_integral_v<T>) {
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): the sign counts
    const __int128 gap = static_cast<__int128>(limit) - start, step = delta;
    const __int128 count = (gap + (step > 0 ? step - 1 : step + 1)) / step;
    if ((gap > 0) != (step > 0) || gap == 0)
      return 0;
    if (count > INT64_MAX)
      fail(errc::invalid_input, "Range has too many elements");
    return static_cast<int64_t>(count);
  } else {
    const double count =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
    if (!(count < 9e18))
      fail(errc::invalid_input, "Range has too many elements");
    return count > 0 ? static_cast<int64_t>(count) : 0;
  }
}

template <class T>
int64_t range_length(const const_view& start, const const_view& limit, const const_view& delta) {
  return range_length<T>(*start.as<T>(), *limit.as<T>(), *delta.as<T>());
}

void check_scalar(int64_t size) {
  if (size != 1)
    fail(errc::invalid_input, "an operand of Range has {} elements instead of one", size);
}

/// The number of elements, symbolic if a limit is; nullopt if the limits are data.
std::optional<dim> inferred_range_length(infer_context& c) {
  if (types::floats & set_of(c.type(0))) {
    const tensor start = c.constant(0), limit = c.constant(1), delta = c.constant(2);
    if (!start.defined() || !limit.defined() || !delta.defined())
      return std::nullopt;
    for (const tensor& t : {start, limit, delta})
      check_scalar(t.size());
    return visit_float(c.type(0), [&]<class T>(type_tag<T>) -> std::optional<dim> {
      return dim(range_length<T>(start.view(), limit.view(), delta.view()));
    });
  }
  const auto start = c.known(0), limit = c.known(1), delta = c.known(2);
  if (!start || !limit || !delta)
    return std::nullopt;
  for (const auto& t : {start, limit, delta})
    check_scalar(static_cast<int64_t>(t->size()));
  if (!delta->at(0).is_constant())
    return std::nullopt;
  const dim &from = start->at(0), &to = limit->at(0), &step = delta->at(0);
  if (from.is_constant() && to.is_constant()) {
    const int64_t length = range_length<int64_t>(from.constant(), to.constant(), step.constant());
    return dim(length);
  }
  if (step.is(0))
    fail(errc::invalid_model, "Range has a delta of 0");
  return max(ceil_div(to - from, step), 0);
}

void infer_range(infer_context& c) {
  for (size_t i = 1; i < 3; ++i)
    if (c.type(i) != c.type(0))
      fail(errc::invalid_model, "the operands of Range have different types");
  const auto length = inferred_range_length(c);
  c.set_output(0, c.type(0), {length ? *length : c.data_dependent(0, 0)});
  if (!length || !length->is_constant() || length->constant() > static_cast<int64_t>(max_known_elements))
    return;
  const auto start = c.known(0), delta = c.known(2);
  if (!start || !start->at(0).is_constant() || !delta)
    return;
  std::vector<dim> elements;
  for (int64_t i = 0; i < length->constant(); ++i)
    elements.push_back(start->at(0).constant() + i * delta->at(0).constant());
  c.set_known(0, std::move(elements));
}

void range_kernel(kernel_context& c) {
  for (size_t i = 0; i < 3; ++i)
    check_scalar(c.input(i).size());
  visit_numeric(c.input(0).type, [&]<class T>(type_tag<T>) {
    using compute =
        std::conditional_t<std::is_integral_v<T>, uint64_t, std::conditional_t<sizeof(T) == 8, double, float>>;
    const int64_t length = range_length<T>(c.input(0), c.input(1), c.input(2));
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): the sign counts
    const auto start = static_cast<compute>(*c.input(0).as<T>()), delta = static_cast<compute>(*c.input(2).as<T>());
    T* y = output_of(c, 0, {length}).template as<T>();
    parallel_for(length, shape_ops_grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        y[i] = static_cast<T>(start + static_cast<compute>(i) * delta);
    });
  });
}

void infer_eye_like(infer_context& c) {
  if (c.rank(0) != 2)
    fail(errc::invalid_model, "EyeLike takes a matrix, not rank {}", c.rank(0));
  c.set_output(0, stated_type(c.attrs(), "dtype", c.type(0)), c.dims(0));
}

void eye_like_kernel(kernel_context& c) {
  const mutable_view& out = c.output(0);
  const int64_t rows = out.dims[0], columns = out.dims[1], k = c.attrs().integer("k", 0);
  const auto fill = [&](auto* y, auto one) {
    std::fill_n(y, rows * columns, decltype(one)());
    for (int64_t r = std::max<int64_t>(0, k < -rows ? rows : -k); r < rows && k < columns - r; ++r)
      y[r * columns + r + k] = one;
  };
  if (out.type == dtype::boolean)
    fill(out.as<uint8_t>(), uint8_t{1});
  else
    visit_numeric(out.type, [&]<class T>(type_tag<T>) { fill(out.as<T>(), static_cast<T>(1)); });
}

void infer_expand(infer_context& c) {
  const std::vector<dim> target = c.require_known(1);
  for (const dim& d : target)
    if (d.is_constant() && d.constant() < 0)
      fail(errc::invalid_model, "shape {} has a negative dim", to_string(target));
  set_moved(c, {broadcast(c.dims(0), target)});
}

} // namespace

std::vector<operand_copy> expand_copies(kernel_context& c) {
  const const_view& in = c.input(0);
  const mutable_view& out = c.output(0);
  const shape from = broadcast_strides(in.dims, out.dims), to = strides_of(out.dims);
  operand_copy copy;
  for (size_t i = 0; i < out.dims.size(); ++i)
    copy.axes.push_back({out.dims[i], from[i], to[i]});
  return {std::move(copy)};
}

namespace {

void expand_kernel(kernel_context& c) {
  run_copies(c, expand_copies(c));
}

void constant_of_shape_axes(call_axes& a) {
  for (size_t axis = 0; axis < a.result_dims().size(); ++axis)
    a.map({}, axis).sizes = {{0, axis}};
}

void expand_axes(call_axes& a) {
  const size_t rank = a.result_dims().size(), stated = a.call().require_known(1).size();
  for (size_t axis = 0; axis < rank; ++axis)
    if (call_axis& made = a.map({a.fit(0, axis, rank)}, axis); axis + stated >= rank)
      made.sizes = {{1, axis + stated - rank}};
}

constexpr auto shape_rows = std::to_array<op_def>({
    op_row("Shape", 1, infer_shape, shape_kernel,
           {.types = types::any, .hides_elements = true, .mixes = "returns dims"}),
    op_row("Size", 1, infer_size, size_kernel,
           {.types = types::any, .hides_elements = true, .mixes = "counts elements"}),
    op_row("Constant", 1, infer_constant, constant_kernel,
           {.inputs = {0, 0}, .types = types::any, .mixes = "has no operand"}),
    op_row("ConstantOfShape", 9, infer_constant_of_shape, constant_of_shape_kernel,
           {.types = set_of(dtype::int64), .host_inputs = 0b1, .axes = constant_of_shape_axes}),
    op_row("Range", 11, infer_range, range_kernel,
           {.inputs = {3, 3}, .types = types::numeric, .host_inputs = 0b111, .mixes = "counts the elements"}),
    op_row("EyeLike", 9, infer_eye_like, eye_like_kernel,
           {.types = types::fixed_size, .mixes = "fills a diagonal by position"}),
    op_row(
        "Expand", 8, infer_expand, expand_kernel,
        {.inputs = {2, 2}, .types = movable_types, .host_inputs = 0b10, .repeats = repeats_first, .axes = expand_axes}),
});

} // namespace

extern constinit const op_table onnx_shape_ops_ops = shape_rows;

} // namespace troupe
