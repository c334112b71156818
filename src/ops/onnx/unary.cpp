// Elementwise operators of one operand: y[i] = f(x[i]). Scalar functions whose other operands are attributes are rows
// of scalar_function.hpp; here are the others. Floats are computed in float (double in double), integers in their own
// type, with float attributes in float (double for 32 bits and more).
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/elementwise.hpp"
#include "ops/onnx/known.hpp"
#include "ops/scalar_formulas.hpp"
#include "tensor/convert.hpp"
#include "tensor/small_float.hpp"

namespace troupe {
namespace {

/// One loop of f(x, b, c).
template <class T, class F>
void map_scalar(const T* x, const scalar_call& call, T* y, int64_t count, F f) {
  using integer_work = std::conditional_t<(sizeof(T) < 4), float, double>;
  constexpr bool converts = std::is_integral_v<T> && F::operands > 1;
  using W = std::conditional_t<converts, integer_work, compute_type<T>>;
  const auto number = [&](size_t i) { return i < call.numbers.size() ? static_cast<W>(call.numbers[i]) : W(); };
  const W b = number(0), c = number(1);
  map_elements(x, y, count, [=](compute_type<T> v) {
    if constexpr (converts)
      return to_integer<T>(f(static_cast<W>(v), b, c));
    else
      return f(v, b, c);
  });
}

template <class T>
constexpr bool maps(const scalar_function& f) {
  return takes<T>(f) && f.values() == 1;
}

scalar_call checked_call(const scalar_function& row, const attributes& attrs) {
  if (auto call = scalar_call_of(row, attrs))
    return *std::move(call);
  fail(errc::invalid_model, "attribute 'approximate' is '{}', not none or tanh", attrs.text("approximate", ""));
}

void run_scalar(kernel_context& c, const scalar_function& row) {
  const scalar_call call = checked_call(row, c.attrs());
  visit_numeric(c.input(0).type, [&]<class T>(type_tag<T>) {
    with_formula<exact_math, &maps<T>>(
        call.code, [&](auto f) { map_scalar(c.input(0).as<T>(), call, c.output(0).as<T>(), c.output(0).size(), f); });
  });
}

template <size_t Row>
void scalar_kernel(kernel_context& c) {
  run_scalar(c, scalar_functions[Row]);
}

template <size_t Row>
op_cost scalar_cost(const attributes&, const call_shapes& call) {
  return cost_per_element(call, scalar_functions[Row].flops);
}

void logical_not(kernel_context& c) {
  map_elements(c.input(0).as<uint8_t>(), c.output(0).as<uint8_t>(), c.output(0).size(),
               [](uint8_t x) { return x == 0; });
}

/// Calls `f` with each element as float or double, results 0 or 1.
template <class F>
void test_floats(kernel_context& c, F f) {
  uint8_t* y = c.output(0).as<uint8_t>();
  const const_view& x = c.input(0);
  if (types::float8 & set_of(x.type))
    return map_elements(x.as<uint8_t>(), y, x.size(),
                        [&](uint8_t bits) { return f(decode_small_float(x.type, bits)); });
  visit_float(x.type, [&]<class T>(type_tag<T>) { map_elements(x.as<T>(), y, x.size(), f); });
}

void is_nan(kernel_context& c) {
  test_floats(c, [](auto x) { return x != x; });
}

void is_inf(kernel_context& c) {
  const bool positive = c.attrs().integer("detect_positive", 1) != 0;
  const bool negative = c.attrs().integer("detect_negative", 1) != 0;
  test_floats(c, [=](auto x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

/// The bound that input `i` is; if it is absent, T's lowest or largest number, not an infinity.
template <class T>
compute_type<T> bound(const kernel_context& c, size_t i) {
  if constexpr (std::is_integral_v<T>) {
    return single_element<T>(c, i, i == 1 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
  } else {
    const auto most = static_cast<compute_type<T>>(largest_number(dtype_of<T>));
    return single_element<T>(c, i, T(i == 1 ? -most : most));
  }
}

/// From opset 11 on the bounds are inputs.
void clip(kernel_context& c) {
  visit_numeric(c.input(0).type, [&]<class T>(type_tag<T>) {
    map_elements(c.input(0).as<T>(), c.output(0).as<T>(), c.output(0).size(),
                 [low = bound<T>(c, 1), high = bound<T>(c, 2)](compute_type<T> x) {
                   return scalar::formula<scalar_code::clip, exact_math>(x, low, high);
                 });
  });
}

void infer_bool(infer_context& c) {
  c.set_output(0, dtype::boolean, c.dims(0));
}

template <known_unary Rule>
void infer_known_unary(infer_context& c) {
  infer_same(c);
  set_known_unary(c, c.type(0), Rule);
}

constexpr op_def unary_row(std::string_view name, int64_t since, void (*reference)(kernel_context&),
                           dtype_set element_types, void (*infer)(infer_context&) = infer_same) {
  return op_row(name, since, infer, reference,
                {.types = element_types, .alias = aliasing::in_place, .layouts = layout_support::agnostic});
}

constexpr op_def clip_row() {
  op_def def = unary_row("Clip", 11, clip, types::numeric);
  def.inputs.max = 3;
  def.bounded_by_type = true;
  return def;
}

template <size_t Row>
void infer_scalar(infer_context& c) {
  checked_call(scalar_functions[Row], c.attrs());
  infer_same(c);
}

template <size_t Row>
constexpr op_def scalar_row() {
  constexpr const scalar_function& f = scalar_functions[Row];
  op_def def = unary_row(f.name, f.since, scalar_kernel<Row>, f.types, infer_scalar<Row>);
  def.domain = f.domain;
  if (f.code == scalar_code::abs)
    def.infer = infer_known_unary<known::absolute>;
  if (f.code == scalar_code::negate)
    def.infer = infer_known_unary<known::negative>;
  def.needs_float32 = f.code == scalar_code::exp; // its results outgrow float16
  if (f.flops > 1)
    def.cost = scalar_cost<Row>;
  return def;
}

constexpr auto other_rows = std::to_array<op_def>({
    clip_row(),
    unary_row("Not", 1, logical_not, types::boolean, infer_known_unary<known::negation>),
    unary_row("IsNaN", 9, is_nan, types::floats | types::float8, infer_bool),
    unary_row("IsInf", 10, is_inf, types::floats | types::float8, infer_bool),
});

constexpr bool is_operator(const scalar_function& f) {
  return f.since > 0 && f.values() == 1;
}

template <size_t... Row>
constexpr auto all_rows(std::index_sequence<Row...>) {
  constexpr size_t scalar_rows = (is_operator(scalar_functions[Row]) + ...);
  std::array<op_def, other_rows.size() + scalar_rows> rows{};
  auto next = std::copy(other_rows.begin(), other_rows.end(), rows.begin());
  ((is_operator(scalar_functions[Row]) ? void(*next++ = scalar_row<Row>()) : void()), ...);
  return rows;
}

constexpr auto unary_rows = all_rows(std::make_index_sequence<scalar_functions.size()>());

} // namespace

extern constinit const op_table onnx_unary_ops = unary_rows;

} // namespace troupe
