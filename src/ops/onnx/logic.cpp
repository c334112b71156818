// Comparisons and boolean operators with broadcasting (see binary.cpp for the broadcast of opsets 1 to 6), and Where.
// Booleans are bytes, 0 or 1; any other byte in a file counts as true.
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/elementwise.hpp"
#include "ops/onnx/known.hpp"
#include "ops/onnx/limited_broadcast.hpp"

namespace troupe {
namespace {

constexpr auto equal_of = [](const auto& a, const auto& b) { return a == b; };
constexpr auto greater_of = [](auto a, auto b) { return a > b; };
constexpr auto less_of = [](auto a, auto b) { return a < b; };
constexpr auto greater_or_equal_of = [](auto a, auto b) { return a >= b; };
constexpr auto less_or_equal_of = [](auto a, auto b) { return a <= b; };
constexpr auto both_of = [](auto a, auto b) { return a && b; };
constexpr auto either_of = [](auto a, auto b) { return a || b; };
constexpr auto differ_of = [](auto a, auto b) { return (a != 0) != (b != 0); };
constexpr auto agree_of = [](auto a, auto b) { return (a != 0) == (b != 0); };

void equal_strings(kernel_context& c, const const_view& b) {
  const auto walk = collapse<2>(c.output(0).dims, {c.input(0).dims, b.dims});
  const auto step = walk.step.back();
  for_each_row(walk, [&](int64_t at, const std::array<int64_t, 2>& from, int64_t length) {
    for (int64_t i = 0; i < length; ++i)
      c.output(0).as<uint8_t>()[at + i] =
          c.input(0).as<std::string>()[from[0] + i * step[0]] == b.as<std::string>()[from[1] + i * step[1]];
  });
}

template <class F>
void compare_numbers(kernel_context& c, const const_view& b, F f) {
  visit_numeric(c.input(0).type, [&]<class T>(type_tag<T>) { zip<T, T, uint8_t>(c.input(0), b, c.output(0), f); });
}

template <class F>
void combine_booleans(kernel_context& c, const const_view& b, F f) {
  zip<uint8_t, uint8_t, uint8_t>(c.input(0), b, c.output(0), f);
}

void equal_operands(kernel_context& c, const const_view& b) {
  if (b.type == dtype::string)
    equal_strings(c, b);
  else if (b.type == dtype::boolean)
    combine_booleans(c, b, agree_of);
  else
    compare_numbers(c, b, equal_of);
}

void equal(kernel_context& c) {
  equal_operands(c, c.input(1));
}

void equal_1(kernel_context& c) {
  equal_operands(c, limited_operand(c).view());
}

template <auto F>
void compare(kernel_context& c) {
  compare_numbers(c, c.input(1), F);
}

template <auto F>
void compare_1(kernel_context& c) {
  compare_numbers(c, limited_operand(c).view(), F);
}

template <auto F>
void combine(kernel_context& c) {
  combine_booleans(c, c.input(1), F);
}

template <auto F>
void combine_1(kernel_context& c) {
  combine_booleans(c, limited_operand(c).view(), F);
}

/// One row of y = condition ? a : b.
template <class T>
void select_row(const uint8_t* condition, const T* a, const T* b, const std::array<int64_t, 3>& step, T* y,
                int64_t length) {
  if (step == std::array<int64_t, 3>{1, 1, 1}) {
#pragma omp simd
    for (int64_t i = 0; i < length; ++i)
      y[i] = condition[i] ? a[i] : b[i];
  } else if (step[0] == 0) {
    const T* from = condition[0] ? a : b;
    const int64_t stride = condition[0] ? step[1] : step[2];
    for (int64_t i = 0; i < length; ++i)
      y[i] = from[i * stride];
  } else if (step == std::array<int64_t, 3>{1, 1, 0}) {
    const T other = b[0];
#pragma omp simd
    for (int64_t i = 0; i < length; ++i)
      y[i] = condition[i] ? a[i] : other;
  } else if (step == std::array<int64_t, 3>{1, 0, 1}) {
    const T chosen = a[0];
#pragma omp simd
    for (int64_t i = 0; i < length; ++i)
      y[i] = condition[i] ? chosen : b[i];
  } else {
    for (int64_t i = 0; i < length; ++i)
      y[i] = condition[i * step[0]] ? a[i * step[1]] : b[i * step[2]];
  }
}

template <class T>
void select(kernel_context& c) {
  const auto walk = collapse<3>(c.output(0).dims, {c.input(0).dims, c.input(1).dims, c.input(2).dims});
  for_each_row(walk, [&](int64_t at, const std::array<int64_t, 3>& from, int64_t length) {
    select_row(c.input(0).as<uint8_t>() + from[0], c.input(1).as<T>() + from[1], c.input(2).as<T>() + from[2],
               walk.step.back(), c.output(0).as<T>() + at, length);
  });
}

void where(kernel_context& c) {
  if (c.input(1).type == dtype::string)
    return select<std::string>(c);
  visit_width(c.input(1).type, [&]<class T>(type_tag<T>) { select<T>(c); });
}

void infer_where(infer_context& c) {
  if (c.type(1) != c.type(2))
    fail(errc::invalid_model, "inputs have different element types: {} and {}", to_string(c.type(1)),
         to_string(c.type(2)));
  if (types::packed & set_of(c.type(1)))
    fail(errc::unsupported, "element type {} is not supported", to_string(c.type(1)));
  const symbolic_shape dims = broadcast_inputs(c);
  c.set_output(0, c.type(1), dims);
  set_known_where(c, c.type(1), dims);
}

template <known_binary Rule>
void infer_comparison(infer_context& c) {
  common_type(c);
  const symbolic_shape dims = broadcast_inputs(c);
  c.set_output(0, dtype::boolean, dims);
  set_known_binary(c, dtype::boolean, dims, Rule);
}

void infer_xor(infer_context& c) {
  common_type(c);
  c.set_output(0, dtype::boolean, broadcast_inputs(c));
}

constexpr dtype_set comparable = types::numeric | types::boolean | types::string;

constexpr op_def logic_row(std::string_view name, int64_t since, dtype_set element_types, void (*infer)(infer_context&),
                           void (*reference)(kernel_context&), decltype(op_def::repeats) repeats = nullptr) {
  return op_row(name, since, infer, reference,
                {.inputs = {2, 2},
                 .types = element_types,
                 .alias = aliasing::in_place,
                 .layouts = layout_support::agnostic,
                 .repeats = repeats});
}

/// Rows of opsets 1 to 6 take plain layouts only: a limited operand is neither of the output's dims nor one element.
constexpr op_def row_1(std::string_view name, dtype_set element_types, void (*reference)(kernel_context&)) {
  op_def def = logic_row(name, 1, element_types, infer_limited_comparison, reference);
  def.layouts = layout_support::plain;
  def.limited_broadcast = true;
  return def;
}

constexpr op_def where_row() {
  op_def def = logic_row("Where", 9, types::boolean, infer_where, where);
  def.inputs = {3, 3};
  return def;
}

constexpr auto logic_rows = std::to_array<op_def>({
    row_1("Equal", comparable, equal_1),
    row_1("Greater", types::numeric, compare_1<greater_of>),
    row_1("Less", types::numeric, compare_1<less_of>),
    row_1("And", types::boolean, combine_1<both_of>),
    row_1("Or", types::boolean, combine_1<either_of>),
    row_1("Xor", types::boolean, combine_1<differ_of>),
    logic_row("Equal", 7, comparable, infer_comparison<known::equal>, equal),
    logic_row("Greater", 7, types::numeric, infer_comparison<known::greater>, compare<greater_of>),
    logic_row("Less", 7, types::numeric, infer_comparison<known::less>, compare<less_of>),
    logic_row("GreaterOrEqual", 12, types::numeric, infer_comparison<known::greater_or_equal>,
              compare<greater_or_equal_of>),
    logic_row("LessOrEqual", 12, types::numeric, infer_comparison<known::less_or_equal>, compare<less_or_equal_of>),
    logic_row("And", 7, types::boolean, infer_comparison<known::both>, combine<both_of>, repeats_beside<1, true>),
    logic_row("Or", 7, types::boolean, infer_comparison<known::either>, combine<either_of>),
    logic_row("Xor", 7, types::boolean, infer_xor, combine<differ_of>),
    where_row(),
});

} // namespace

extern constinit const op_table onnx_logic_ops = logic_rows;

} // namespace troupe
