#include "ops/scalar_function.hpp"

namespace troupe {
namespace {

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < scalar_code_count; ++i)
    if (static_cast<size_t>(scalar_functions[i].code) != i)
      return false;
  return true;
}
static_assert(rows_are_in_order());

} // namespace

double largest_number(dtype type) {
  switch (type) {
    case dtype::float16: return 65504;
    case dtype::bfloat16: return 0x1.fep127;
    case dtype::float32: return std::numeric_limits<float>::max();
    case dtype::float64: return std::numeric_limits<double>::max();
    default: fail(errc::internal, "{} is not a float type", to_string(type));
  }
}

std::optional<scalar_call> scalar_call_of(const scalar_function& row, const attributes& attrs) {
  scalar_call call{row.code, row.values(), {}};
  if (row.code == scalar_code::gelu) {
    const std::string approximate = attrs.text("approximate", "none");
    if (approximate != "none" && approximate != "tanh")
      return std::nullopt;
    call.code = approximate == "tanh" ? scalar_code::gelu_tanh : scalar_code::gelu;
  }
  if (row.code == scalar_code::modulo && attrs.integer("fmod", 0) != 0)
    call.code = scalar_code::truncated_modulo;
  for (const real_attribute& a : row.attribute_operands)
    if (!a.name.empty())
      call.numbers.push_back(attrs.real(a.name, a.otherwise));
  return call;
}

std::optional<scalar_call> scalar_call_of(const op_def& def, const attributes& attrs) {
  for (const scalar_function& row : scalar_functions)
    if (row.since == def.since && row.name == def.name && row.domain == def.domain)
      return scalar_call_of(row, attrs);
  return std::nullopt;
}

} // namespace troupe
