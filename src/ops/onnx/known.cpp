#include "ops/onnx/known.hpp"

namespace troupe {
namespace {

using elements = std::vector<dim>;

/// Whether a constant fits an element type; symbolic values are taken to fit the index types only.
bool fits(const dim& value, dtype type) {
  if (!value.is_constant())
    return type == dtype::int32 || type == dtype::int64;
  const int64_t v = value.constant();
  if (type == dtype::boolean)
    return v == 0 || v == 1;
  if (type == dtype::int64)
    return true;
  const int bits = bits_of(type);
  if (types::signed_ints & set_of(type))
    return v >= -(int64_t{1} << (bits - 1)) && v < int64_t{1} << (bits - 1);
  // Constants of 2^63 and more look negative here, so uint64 values are known below that only.
  return (types::unsigned_ints & set_of(type)) && v >= 0 && (bits == 64 || v < int64_t{1} << bits);
}

/// The known elements of input `i`, none if one does not fit its type's rules.
std::optional<elements> known_operand(const infer_context& c, size_t i) {
  if (!c.has_input(i))
    return std::nullopt;
  auto found = c.known(i);
  if (found)
    for (const dim& value : *found)
      if (value.is_constant() && !fits(value, c.type(i)))
        return std::nullopt;
  return found;
}

void state(infer_context& c, dtype type, elements values) {
  for (const dim& value : values)
    if (!fits(value, type))
      return;
  c.set_known(0, std::move(values));
}

/// Index into an operand of `dims` for each element of `out`; empty if the operand does not fit or `out` is too large.
std::optional<std::vector<size_t>> indices(const symbolic_shape& dims, const shape& out, size_t count) {
  if (!is_constant(dims) || dims.size() > out.size() || volume(out) > static_cast<int64_t>(max_known_elements))
    return std::nullopt;
  const shape own = constants(dims);
  if (volume(own) != static_cast<int64_t>(count) || broadcast(own, out) != out)
    return std::nullopt;
  const shape strides = broadcast_strides(own, out);
  std::vector<size_t> at(static_cast<size_t>(volume(out)), 0);
  for (size_t i = 0; i < at.size(); ++i)
    for (size_t axis = out.size(), rest = i; axis-- > 0; rest /= static_cast<size_t>(out[axis]))
      at[i] += rest % static_cast<size_t>(out[axis]) * static_cast<size_t>(strides[axis]);
  return at;
}

/// Input `i`'s known elements, repeated to fill `out`.
std::optional<elements> broadcast_operand(const infer_context& c, size_t i, const shape& out) {
  const auto values = known_operand(c, i);
  if (!values)
    return std::nullopt;
  const auto at = indices(c.dims(i), out, values->size());
  if (!at)
    return std::nullopt;
  elements repeated;
  for (size_t index : *at)
    repeated.push_back((*values)[index]);
  return repeated;
}

/// Runs `compute`; dims whose arithmetic overflows are just not known.
template <class F>
void attempt(F compute) {
  try {
    compute();
  } catch (const error&) {
  }
}

std::optional<dim> decided(bool yes, bool no) {
  if (yes || no)
    return dim(yes ? 1 : 0);
  return std::nullopt;
}

bool is_positive(const dim& a) {
  return is_nonnegative(a - dim(1));
}

} // namespace

void set_known_unary(infer_context& c, dtype type, known_unary rule) {
  attempt([&] {
    auto values = known_operand(c, 0);
    if (!values)
      return;
    for (dim& value : *values) {
      const auto result = rule(value);
      if (!result)
        return;
      value = *result;
    }
    state(c, type, *std::move(values));
  });
}

void set_known_binary(infer_context& c, dtype type, const symbolic_shape& dims, known_binary rule) {
  attempt([&] {
    if (!is_constant(dims))
      return;
    const shape out = constants(dims);
    auto left = broadcast_operand(c, 0, out);
    for (size_t i = 1; left && i < c.input_count(); ++i) {
      const auto right = broadcast_operand(c, i, out);
      if (!right)
        return;
      for (size_t e = 0; e < left->size(); ++e) {
        const auto result = rule((*left)[e], (*right)[e]);
        if (!result)
          return;
        (*left)[e] = *result;
      }
    }
    if (left)
      state(c, type, *std::move(left));
  });
}

void set_known_where(infer_context& c, dtype type, const symbolic_shape& dims) {
  attempt([&] {
    if (!is_constant(dims))
      return;
    const shape out = constants(dims);
    const auto condition = broadcast_operand(c, 0, out);
    const auto chosen = broadcast_operand(c, 1, out), other = broadcast_operand(c, 2, out);
    if (!condition || !chosen || !other || !is_constant(*condition))
      return;
    elements values;
    for (size_t e = 0; e < condition->size(); ++e)
      values.push_back((*condition)[e].is(0) ? (*other)[e] : (*chosen)[e]);
    state(c, type, std::move(values));
  });
}

namespace known {

std::optional<dim> same(const dim& a) {
  return a;
}

std::optional<dim> negative(const dim& a) {
  return dim(0) - a;
}

std::optional<dim> absolute(const dim& a) {
  return is_nonnegative(a) ? a : max(a, dim(0) - a);
}

std::optional<dim> truth(const dim& a) {
  return equal(a, 0) ? negation(*equal(a, 0)) : std::nullopt;
}

std::optional<dim> negation(const dim& a) {
  return a.is_constant() ? std::optional<dim>(a.is(0) ? 1 : 0) : std::nullopt;
}

std::optional<dim> add(const dim& a, const dim& b) {
  return a + b;
}

std::optional<dim> subtract(const dim& a, const dim& b) {
  return a - b;
}

std::optional<dim> multiply(const dim& a, const dim& b) {
  return a * b;
}

std::optional<dim> divide(const dim& a, const dim& b) {
  if (b.is(0) || !is_nonnegative(b))
    return std::nullopt;
  if (is_nonnegative(a))
    return floor_div(a, b);
  // Truncation: one of the two terms is zero.
  return floor_div(max(a, 0), b) - floor_div(max(dim(0) - a, 0), b);
}

std::optional<dim> modulo(const dim& a, const dim& b) {
  if (b.is(0) || !is_nonnegative(b))
    return std::nullopt;
  return a - b * floor_div(a, b);
}

std::optional<dim> smaller(const dim& a, const dim& b) {
  return min(a, b);
}

std::optional<dim> larger(const dim& a, const dim& b) {
  return max(a, b);
}

std::optional<dim> equal(const dim& a, const dim& b) {
  return decided(a == b, is_positive(a - b) || is_positive(b - a));
}

std::optional<dim> greater(const dim& a, const dim& b) {
  return decided(is_positive(a - b), is_nonnegative(b - a));
}

std::optional<dim> greater_or_equal(const dim& a, const dim& b) {
  return decided(is_nonnegative(a - b), is_positive(b - a));
}

std::optional<dim> less(const dim& a, const dim& b) {
  return greater(b, a);
}

std::optional<dim> less_or_equal(const dim& a, const dim& b) {
  return greater_or_equal(b, a);
}

std::optional<dim> both(const dim& a, const dim& b) {
  return decided(!a.is(0) && !b.is(0) && a.is_constant() && b.is_constant(), a.is(0) || b.is(0));
}

std::optional<dim> either(const dim& a, const dim& b) {
  const bool yes = (a.is_constant() && !a.is(0)) || (b.is_constant() && !b.is(0));
  return decided(yes, a.is(0) && b.is(0));
}

} // namespace known
} // namespace troupe
