// Reductions over a set of axes: sum, mean, maximum, minimum, product, norms and their logarithms.
//
// Axes are an attribute in the older rows and input 1 in the newer ones; none means all, unless noop_with_empty_axes
// says that nothing is reduced (a norm of single elements is then still taken: |x|, x² …). Floats accumulate in double,
// integers modulo 2^64. An empty set gives the operation's identity: 0, 1, ±infinity (for integers the type's limits).
#include "ops/onnx/reduce.hpp"

#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/movement.hpp"
#include "ops/onnx/reduction_walk.hpp"
#include "ops/operand.hpp"
#include "tensor/convert.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace troupe {
namespace {

/// Returns a result that was computed in double; what an integer cannot hold saturates.
template <class T>
T rounded(double result) {
  if constexpr (std::is_integral_v<T>)
    return to_integer<T>(result);
  else
    return static_cast<T>(result);
}

// Each reduction: its accumulator for element type T, how an element enters it, and what comes out.

struct reduce_sum {
  template <class T>
  using acc = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  template <class T>
  static acc<T> init() {
    return 0;
  }
  template <class T>
  static void step(acc<T>& a, T x) {
    a += static_cast<acc<T>>(x);
  }
  template <class T>
  static T finish(acc<T> a, int64_t) {
    return static_cast<T>(a);
  }
};

struct reduce_mean : reduce_sum {
  template <class T>
  static T finish(acc<T> a, int64_t count) {
    if constexpr (!std::is_integral_v<T>)
      return static_cast<T>(a / static_cast<double>(count));
    else if constexpr (std::is_signed_v<T>)
      return count ? static_cast<T>(static_cast<int64_t>(a) / count) : T(0);
    else
      return count ? static_cast<T>(a / static_cast<uint64_t>(count)) : T(0);
  }
};

struct reduce_product : reduce_sum {
  template <class T>
  static acc<T> init() {
    return 1;
  }
  template <class T>
  static void step(acc<T>& a, T x) {
    a *= static_cast<acc<T>>(x);
  }
};

struct reduce_l1 : reduce_sum {
  template <class T>
  static void step(acc<T>& a, T x) {
    if constexpr (std::is_unsigned_v<T>)
      a += x;
    else
      a += x < T(0) ? -static_cast<acc<T>>(x) : static_cast<acc<T>>(x);
  }
};

struct reduce_sum_square : reduce_sum {
  template <class T>
  static void step(acc<T>& a, T x) {
    a += static_cast<acc<T>>(x) * static_cast<acc<T>>(x);
  }
};

struct reduce_l2 : reduce_sum {
  template <class T>
  using acc = double;
  template <class T>
  static void step(double& a, T x) {
    a += static_cast<double>(x) * static_cast<double>(x);
  }
  template <class T>
  static T finish(double a, int64_t) {
    return rounded<T>(std::sqrt(a));
  }
};

struct reduce_log_sum : reduce_sum {
  template <class T>
  using acc = double;
  template <class T>
  static void step(double& a, T x) {
    a += static_cast<double>(x);
  }
  template <class T>
  static T finish(double a, int64_t) {
    return rounded<T>(std::log(a));
  }
};

/// log Σ eˣ, kept as largest + log Σ e^(x − largest) so that nothing overflows.
struct reduce_log_sum_exp {
  struct state {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  };
  template <class T>
  using acc = state;
  template <class T>
  static state init() {
    return {};
  }
  template <class T>
  static void step(state& a, T element) {
    const auto x = static_cast<double>(element);
    if (x > a.largest) {
      a.sum = a.sum * std::exp(a.largest - x) + 1;
      a.largest = x;
    } else {
      a.sum += x == a.largest ? 1 : std::exp(x - a.largest);
    }
  }
  template <class T>
  static T finish(const state& a, int64_t) {
    return rounded<T>(a.largest + std::log(a.sum));
  }
};

struct reduce_max {
  template <class T>
  using acc = T;
  template <class T>
  static T init() {
    using limits = std::numeric_limits<T>;
    return limits::has_infinity ? -limits::infinity() : limits::lowest();
  }
  template <class T>
  static void step(T& a, T x) {
    a = x > a || x != x ? x : a;
  } // NaN wins
  template <class T>
  static T finish(T a, int64_t) {
    return a;
  }
};

struct reduce_min : reduce_max {
  template <class T>
  static T init() {
    using limits = std::numeric_limits<T>;
    return limits::has_infinity ? limits::infinity() : limits::max();
  }
  template <class T>
  static void step(T& a, T x) {
    a = x < a || x != x ? x : a;
  }
};

/// States the result if the operand is a known vector that is reduced as a whole (shape arithmetic).
template <class R>
void propagate_known(infer_context& c, const std::vector<bool>& reduced) {
  if (reduced.size() != 1 || !reduced[0] || !(types::integers & set_of(c.type(0))))
    return;
  const auto elements = c.known(0);
  if (!elements || elements->empty())
    return;
  dim result = elements->front();
  for (size_t i = 1; i < elements->size(); ++i) {
    const dim& x = (*elements)[i];
    if constexpr (std::is_same_v<R, reduce_sum>)
      result = result + x;
    else if constexpr (std::is_same_v<R, reduce_product>)
      result = result * x;
    else if constexpr (std::is_same_v<R, reduce_max>)
      result = max(result, x);
    else if constexpr (std::is_same_v<R, reduce_min>)
      result = min(result, x);
    else
      return;
  }
  if (!std::is_same_v<R, reduce_l1> && !std::is_same_v<R, reduce_sum_square>)
    c.set_known(0, {result});
}

template <class R, bool AxesInput>
void infer_reduce(infer_context& c) {
  const symbolic_shape& x = c.dims(0);
  std::vector<int64_t> axes;
  if constexpr (AxesInput) {
    if (c.has_input(1))
      axes = c.require_constants(1);
  } else {
    axes = c.attrs().integers("axes", {});
  }
  const bool noop = AxesInput && c.attrs().integer("noop_with_empty_axes", 0) != 0;
  const std::vector<bool> reduced = reduced_axes(axes, x.size(), noop);
  const bool keep = c.attrs().integer("keepdims", 1) != 0;
  symbolic_shape dims;
  for (size_t i = 0; i < x.size(); ++i)
    if (!reduced[i])
      dims.push_back(x[i]);
    else if (keep)
      dims.emplace_back(1);
  c.set_output(0, c.type(0), std::move(dims));
  propagate_known<R>(c, reduced);
}

/// Reduces `x` to `y`. Instantiated for every reduction and type, so what depends on neither is above.
template <class R, class T>
void reduce_elements(const reduction_walk& w, const T* x, T* y) {
  using acc = typename R::template acc<T>;
  parallel_for(static_cast<int64_t>(w.kept.size()), w.grain(), [&](int64_t begin, int64_t end) {
    const int64_t size = w.row_size();
    const auto row = std::make_unique<acc[]>(static_cast<size_t>(size));
    for (int64_t o = begin; o < end; ++o) {
      std::fill_n(row.get(), size, R::template init<T>());
      for (int64_t offset : w.walked) {
        const T* from = x + w.kept[static_cast<size_t>(o)] + offset;
        for (int64_t i = 0; i < w.inner.size; ++i)
          R::template step<T>(row[w.inner.reduced ? 0 : static_cast<size_t>(i)], from[i]);
      }
      for (int64_t i = 0; i < size; ++i)
        y[o * size + i] = R::template finish<T>(row[static_cast<size_t>(i)], w.count);
    }
  });
}

/// Booleans, which only maximum ("or") and minimum ("and") have; an empty minimum is true.
template <class R>
void reduce_bytes(const reduction_walk& walk, const const_view& x, const mutable_view& y) {
  using bytes = std::conditional_t<std::is_same_v<R, reduce_min>, reduce_min, reduce_max>;
  auto* out = y.as<uint8_t>();
  reduce_elements<bytes>(walk, x.as<uint8_t>(), out);
  for (int64_t i = 0; i < y.size(); ++i)
    out[i] = out[i] != 0;
}

template <class R>
void reduce_as(const kernel_context& c, const reduction_walk& walk) {
  const const_view& x = c.input(0);
  if (x.type == dtype::boolean) {
    reduce_bytes<R>(walk, x, c.output(0));
    return;
  }
  const auto run = [&]<class T>(type_tag<T>) {
    const read_as<T> in(x);
    write_as<T> out(c.output(0));
    reduce_elements<R>(walk, in.data(), out.data());
    out.commit();
  };
  if (types::floats & set_of(x.type))
    visit_compute(x.type, run);
  else
    visit_integer(x.type, run);
}

/// Returns the axes to reduce, from input 1 or the attribute.
std::vector<bool> called_axes(const kernel_context& c, bool axes_input) {
  std::vector<int64_t> axes;
  if (!axes_input)
    axes = c.attrs().integers("axes", {});
  else if (c.has_input(1))
    axes = to_int64(c.input(1));
  const bool noop = axes_input && c.attrs().integer("noop_with_empty_axes", 0) != 0;
  return reduced_axes(axes, c.input(0).dims.size(), noop);
}

template <class R, bool AxesInput>
void reduce(kernel_context& c) {
  const reduction_walk walk(c.input(0).dims, called_axes(c, AxesInput));
  if (c.output(0).size() != 0)
    reduce_as<R>(c, walk);
}

/// How the results of parts are combined; nullopt: they cannot be.
template <class R>
constexpr std::optional<combination> combination_of() {
  if constexpr (std::is_same_v<R, reduce_sum> || std::is_same_v<R, reduce_l1> || std::is_same_v<R, reduce_sum_square>)
    return combination::sum;
  if constexpr (std::is_same_v<R, reduce_product>)
    return combination::product;
  if constexpr (std::is_same_v<R, reduce_min>)
    return combination::min;
  if constexpr (std::is_same_v<R, reduce_max>)
    return combination::max;
  return std::nullopt;
}

template <class R, bool AxesInput>
void reduce_axes(call_axes& a) {
  const infer_context& c = a.call();
  const auto listed = AxesInput ? integers_of(c, 1, "") : c.attrs().integers("axes", {});
  const bool noop = AxesInput && c.attrs().integer("noop_with_empty_axes", 0) != 0;
  const auto reduced = reduced_axes(listed.value_or(std::vector<int64_t>()), c.rank(0), noop);
  const bool keeps = c.attrs().integer("keepdims", 1) != 0;
  size_t next = 0;
  for (size_t axis = 0; axis < reduced.size(); ++axis) {
    constexpr std::optional<combination> combined = combination_of<R>();
    if (!reduced[axis])
      a.map({{0, axis}}, next);
    else if (combined)
      a.reduce({{0, axis}}, *combined);
    next += !reduced[axis] || keeps;
  }
}

/// The row of reduction R with axes as an attribute, or as input 1.
template <class R, bool AxesInput>
constexpr op_def row(std::string_view name, int64_t since, dtype_set element_types = types::numeric) {
  return op_row(name, since, infer_reduce<R, AxesInput>, reduce<R, AxesInput>,
                {.inputs = {1, AxesInput ? 2 : 1},
                 .types = element_types,
                 .host_inputs = AxesInput ? 2u : 0u,
                 .needs_float32 = std::is_same_v<R, reduce_product> || std::is_same_v<R, reduce_sum_square>,
                 .cost = cost_per_input<1>,
                 .axes = reduce_axes<R, AxesInput>,
                 .mixes = "reduces"});
}

constexpr auto reduce_rows = std::to_array<op_def>({
    row<reduce_sum, false>("ReduceSum", 1),
    row<reduce_sum, true>("ReduceSum", 13),
    row<reduce_mean, false>("ReduceMean", 1),
    row<reduce_mean, true>("ReduceMean", 18),
    row<reduce_max, false>("ReduceMax", 1),
    row<reduce_max, true>("ReduceMax", 18),
    row<reduce_max, true>("ReduceMax", 20, types::fixed_size),
    row<reduce_min, false>("ReduceMin", 1),
    row<reduce_min, true>("ReduceMin", 18),
    row<reduce_min, true>("ReduceMin", 20, types::fixed_size),
    row<reduce_product, false>("ReduceProd", 1),
    row<reduce_product, true>("ReduceProd", 18),
    row<reduce_l1, false>("ReduceL1", 1),
    row<reduce_l1, true>("ReduceL1", 18),
    row<reduce_l2, false>("ReduceL2", 1),
    row<reduce_l2, true>("ReduceL2", 18),
    row<reduce_log_sum, false>("ReduceLogSum", 1),
    row<reduce_log_sum, true>("ReduceLogSum", 18),
    row<reduce_log_sum_exp, false>("ReduceLogSumExp", 1),
    row<reduce_log_sum_exp, true>("ReduceLogSumExp", 18),
    row<reduce_sum_square, false>("ReduceSumSquare", 1),
    row<reduce_sum_square, true>("ReduceSumSquare", 18),
});

} // namespace

std::vector<bool> reduced_axes(const std::vector<int64_t>& axes, size_t rank, bool noop_if_empty) {
  std::vector<bool> reduced(rank, axes.empty() && !noop_if_empty);
  for (int64_t axis : axes)
    reduced[normalize_axis(axis, rank)] = true;
  return reduced;
}

extern constinit const op_table onnx_reduce_ops = reduce_rows;

} // namespace troupe
