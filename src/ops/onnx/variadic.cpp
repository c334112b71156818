// Sum, Mean, Max and Min of any number of operands, with broadcasting. The operands are combined from the left into the
// output; with one or two of them the output may be the same bytes as an operand, with more it is collected apart
// first.
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/elementwise.hpp"
#include "ops/onnx/known.hpp"
#include "ops/scalar_formulas.hpp"

#include <cstring>

namespace troupe {
namespace {

template <class T, class F>
void combine(kernel_context& c, const mutable_view& y, F f) {
  if (c.input_count() == 1)
    return zip<T, T, T>(c.input(0), c.input(0), y, [](auto a, auto) { return a; });
  zip<T, T, T>(c.input(0), c.input(1), y, f);
  for (size_t i = 2; i < c.input_count(); ++i)
    zip<T, T, T>(y, c.input(i), y, f);
}

template <class T, class F>
void combine_apart(kernel_context& c, F f) {
  const mutable_view& y = c.output(0);
  bool overlaps = false;
  for (size_t i = 2; i < c.input_count(); ++i)
    overlaps = overlaps || c.input(i).data == y.data;
  if (!overlaps)
    return combine<T>(c, y, f);
  tensor apart(y.type, shape(y.dims.begin(), y.dims.end()));
  combine<T>(c, apart.mutable_ref(), f);
  std::memcpy(y.data, apart.data(), static_cast<size_t>(apart.bytes()));
}

template <scalar_code Code>
void variadic_kernel(kernel_context& c) {
  visit_numeric(c.input(0).type, [&]<class T>(type_tag<T>) { combine_apart<T>(c, scalar_formula<Code>()); });
}

void sum(kernel_context& c) {
  visit_float(c.input(0).type, [&]<class T>(type_tag<T>) { combine_apart<T>(c, scalar_formula<scalar_code::add>()); });
}

void mean(kernel_context& c) {
  sum(c);
  visit_float(c.input(0).type, [&]<class T>(type_tag<T>) {
    const auto count = static_cast<compute_type<T>>(c.input_count());
    map_elements(c.output(0).as<T>(), c.output(0).as<T>(), c.output(0).size(), [=](auto x) { return x / count; });
  });
}

template <known_binary Rule>
void infer_known_variadic(infer_context& c) {
  const symbolic_shape dims = broadcast_inputs(c);
  c.set_output(0, common_type(c), dims);
  set_known_binary(c, c.type(0), dims, Rule);
}

constexpr op_def variadic_row(std::string_view name, dtype_set element_types, void (*infer)(infer_context&),
                              void (*reference)(kernel_context&)) {
  return op_row(name, 1, infer, reference,
                {.inputs = {1, 255},
                 .types = element_types,
                 .alias = aliasing::in_place,
                 .layouts = layout_support::agnostic,
                 .repeats = repeats_only});
}

constexpr auto variadic_rows = std::to_array<op_def>({
    variadic_row("Sum", types::floats, infer_broadcast, sum),
    variadic_row("Mean", types::floats, infer_broadcast, mean),
    variadic_row("Max", types::numeric, infer_known_variadic<known::larger>, variadic_kernel<scalar_code::maximum>),
    variadic_row("Min", types::numeric, infer_known_variadic<known::smaller>, variadic_kernel<scalar_code::minimum>),
});

} // namespace

extern constinit const op_table onnx_variadic_ops = variadic_rows;

} // namespace troupe
