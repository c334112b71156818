#include "ops/epilogue.hpp"

#include "base/parallel.hpp"

namespace troupe {
namespace {

constexpr int64_t epilogue_grain = 16 * 1024;
/// Elements converted at a time.
constexpr int64_t epilogue_block = 512;

} // namespace

void check_residual_dims(const infer_context& c, size_t i) {
  const symbolic_shape &residual = c.dims(i), &out = c.output_dims(0);
  bool fits = residual.size() == out.size();
  for (size_t d = 0; fits && d < out.size(); ++d)
    fits = residual[d] == out[d] || !residual[d].is_constant() || !out[d].is_constant();
  if (!fits)
    fail(errc::invalid_model, "the residual {} does not fit the output {}", to_string(residual), to_string(out));
}

void check_residual(const infer_context& c, size_t i) {
  if (c.type(i) != c.type(0))
    fail(errc::invalid_model, "the residual is {}, the operand {}", to_string(c.type(i)), to_string(c.type(0)));
  check_residual_dims(c, i);
}

void apply_epilogue(const mutable_view& y, const const_view& residual, const activation& act) {
  const bool adds = residual.type != dtype::undefined;
  if (!adds && act.code == scalar_code::same)
    return;
  if (adds && residual.size() != y.size())
    fail(errc::invalid_input, "the residual {} does not fit the output {}", to_string(residual.dims),
         to_string(y.dims));
  visit_float(y.type, [&]<class T>(type_tag<T>) {
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    T* out = y.as<T>();
    const T* more = residual.as<T>();
    parallel_for(y.size(), epilogue_grain, [&](int64_t begin, int64_t end) {
      C buffer[epilogue_block];
      for (int64_t i = begin; i < end; i += epilogue_block) {
        const int64_t n = std::min(epilogue_block, end - i);
        std::copy_n(out + i, n, buffer);
        for (int64_t j = 0; adds && j < n; ++j)
          buffer[j] += static_cast<C>(more[i + j]);
        apply(act, buffer, n);
        for (int64_t j = 0; j < n; ++j)
          out[i + j] = static_cast<T>(buffer[j]);
      }
    });
  });
}

} // namespace troupe
