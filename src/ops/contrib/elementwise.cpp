// Element-by-element compositions of com.microsoft: Gelu, BiasGelu, FastGelu.
//
//   Gelu(x), BiasGelu(x, b) = Gelu(x + b), FastGelu(x, b?) = x' · (1 + tanh(√(2/π) · (x' + 0.044715 x'³))) / 2 with x'
//     = x + b
#include "ops/expansion.hpp"

namespace troupe {
namespace {

/// Returns operand 0 plus operand 1, a vector along the last axis, where that is there.
value_id biased(expansion& e) {
  if (e.has_input(1) && e.rank(e.input(1)) != 1)
    fail(errc::invalid_model, "the bias {} must be a vector", to_string(e.dims(e.input(1))));
  return e.plus_input(e.input(0), 1);
}

void expand_gelu(expansion& e) {
  e.set_output(0, e.add("Gelu", {biased(e)}));
}

void expand_fast_gelu(expansion& e) {
  e.set_output(0, e.add("Gelu", {biased(e)}, attributes_of({{"approximate", std::string("tanh")}})));
}

constexpr auto contrib_elementwise_rows = std::to_array<op_def>({
    composition_row("Gelu", 1, expand_gelu, {.domain = microsoft, .inputs = {1, 1}, .types = types::floats}),
    composition_row("BiasGelu", 1, expand_gelu, {.domain = microsoft, .inputs = {2, 2}, .types = types::floats}),
    composition_row("FastGelu", 1, expand_fast_gelu, {.domain = microsoft, .inputs = {1, 2}, .types = types::floats}),
});

} // namespace

extern constinit const op_table contrib_elementwise_ops = contrib_elementwise_rows;

} // namespace troupe
