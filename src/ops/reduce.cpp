// Reductions over a set of axes: sum, mean, maximum, minimum, product, norms and their logarithms.
//
// Axes are an attribute in the older rows and input 1 in the newer ones; none means all, unless noop_with_empty_axes says
// that nothing is reduced (a norm of single elements is then still taken: |x|, x² …). Floats accumulate in double, integers
// modulo 2^64. An empty set gives the operation's identity: 0, 1, ±infinity (for integers the type's limits).
#include "ops/reduce.hpp"
#include "ops/families.hpp"
#include "ops/operand.hpp"
#include "tensor/convert.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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
  static constexpr auto kind = reduce_kind::sum;
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
  static constexpr auto kind = reduce_kind::mean;
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
  static constexpr auto kind = reduce_kind::product;
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
  static constexpr auto kind = reduce_kind::l1;
  template <class T>
  static void step(acc<T>& a, T x) {
    if constexpr (std::is_unsigned_v<T>)
      a += x;
    else
      a += x < T(0) ? -static_cast<acc<T>>(x) : static_cast<acc<T>>(x);
  }
};

struct reduce_sum_square : reduce_sum {
  static constexpr auto kind = reduce_kind::sum_square;
  template <class T>
  static void step(acc<T>& a, T x) {
    a += static_cast<acc<T>>(x) * static_cast<acc<T>>(x);
  }
};

struct reduce_l2 : reduce_sum {
  static constexpr auto kind = reduce_kind::l2;
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
  static constexpr auto kind = reduce_kind::log_sum;
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
  static constexpr auto kind = reduce_kind::log_sum_exp;
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
  static constexpr auto kind = reduce_kind::maximum;
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
  static constexpr auto kind = reduce_kind::minimum;
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

/// States the result where the operand is a known vector that is reduced as a whole (shape arithmetic).
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

/// A run of neighbouring axes that are all reduced or all kept.
struct axis_group {
  int64_t size, stride;
  bool reduced;
};

/// Returns the groups of `dims`, outermost first; axes of size 1 join any group.
std::vector<axis_group> merge_axes(std::span<const int64_t> dims, const std::vector<bool>& reduced) {
  std::vector<axis_group> groups;
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i]) {
    if (dims[i] == 1)
      continue;
    if (!groups.empty() && groups.back().reduced == reduced[i])
      groups.back().size *= dims[i];
    else
      groups.push_back({dims[i], stride, reduced[i]});
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

/// Returns the offsets of all index combinations of the groups that are (or are not) reduced, row-major.
std::vector<int64_t> offsets_of(std::span<const axis_group> groups, bool reduced) {
  std::vector<int64_t> offsets{0};
  for (const axis_group& g : groups) {
    if (g.reduced != reduced)
      continue;
    std::vector<int64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(g.size));
    for (int64_t base : offsets)
      for (int64_t i = 0; i < g.size; ++i)
        next.push_back(base + i * g.stride);
    offsets = std::move(next);
  }
  return offsets;
}

/// Reduces `x` to `y`. The innermost group is walked as consecutive memory: as one accumulator where it is reduced, as a row
/// of accumulators where it is kept.
template <class R, class T>
void reduce_groups(std::vector<axis_group> groups, const T* x, T* y) {
  int64_t count = 1;
  for (const axis_group& g : groups)
    count *= g.reduced ? g.size : 1;
  if (groups.empty())
    groups.push_back({1, 1, true});
  const axis_group inner = groups.back();
  groups.pop_back();
  const std::vector<int64_t> kept = offsets_of(groups, false), walked = offsets_of(groups, true);
  const int64_t work = inner.size * static_cast<int64_t>(walked.size());
  const int64_t grain = std::max<int64_t>(1, elementwise_grain / std::max<int64_t>(1, work));
  using acc = typename R::template acc<T>;
  parallel_for(static_cast<int64_t>(kept.size()), grain, [&](int64_t begin, int64_t end) {
    std::vector<acc> row(static_cast<size_t>(inner.reduced ? 1 : inner.size));
    for (int64_t o = begin; o < end; ++o) {
      std::fill(row.begin(), row.end(), R::template init<T>());
      for (int64_t offset : walked) {
        const T* from = x + kept[static_cast<size_t>(o)] + offset;
        for (int64_t i = 0; i < inner.size; ++i)
          R::template step<T>(row[inner.reduced ? 0 : static_cast<size_t>(i)], from[i]);
      }
      for (size_t i = 0; i < row.size(); ++i)
        y[o * static_cast<int64_t>(row.size()) + static_cast<int64_t>(i)] = R::template finish<T>(row[i], count);
    }
  });
}

/// Booleans, which only maximum ("or") and minimum ("and") have; an empty minimum is true.
template <class R>
void reduce_bytes(const std::vector<axis_group>& groups, const const_view& x, const mutable_view& y) {
  using bytes = std::conditional_t<std::is_same_v<R, reduce_min>, reduce_min, reduce_max>;
  auto* out = y.as<uint8_t>();
  reduce_groups<bytes>(groups, x.as<uint8_t>(), out);
  for (int64_t i = 0; i < y.size(); ++i)
    out[i] = out[i] != 0;
}

template <class R, bool AxesInput>
void reduce(kernel_context& c) {
  const const_view& x = c.input(0);
  std::vector<int64_t> axes;
  if constexpr (AxesInput) {
    if (c.has_input(1))
      axes = to_int64(c.input(1));
  } else {
    axes = c.attrs().integers("axes", {});
  }
  const bool noop = AxesInput && c.attrs().integer("noop_with_empty_axes", 0) != 0;
  const std::vector<axis_group> groups = merge_axes(x.dims, reduced_axes(axes, x.dims.size(), noop));
  if (c.output(0).size() == 0)
    return;
  if (x.type == dtype::boolean) {
    reduce_bytes<R>(groups, x, c.output(0));
    return;
  }
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const read_as<T> in(x);
    write_as<T> out(c.output(0));
    reduce_groups<R>(groups, in.data(), out.data());
    out.commit();
  };
  if (types::floats & set_of(x.type))
    visit_compute(x.type, run);
  else
    visit_integer(x.type, run);
}

/// One operation an element.
op_cost reduce_cost(const attributes&, const call_shapes& call) {
  return {static_cast<double>(volume(call.inputs[0])), operand_bytes(call)};
}

template <reduce_kind Kind, bool AxesInput>
launch_lists reduce_launches(const gpu_call& call) {
  return reduce_launches(call, Kind, AxesInput);
}

/// The row of reduction R with axes as an attribute, or as input 1.
template <class R, bool AxesInput>
constexpr op_def row(std::string_view name, int64_t since, dtype_set element_types = types::numeric) {
  return {.domain = "",
          .name = name,
          .since = since,
          .max_inputs = AxesInput ? 2 : 1,
          .types = element_types,
          .host_inputs = AxesInput ? 2u : 0u,
          .infer = infer_reduce<R, AxesInput>,
          .reference = reduce<R, AxesInput>,
          .cost = reduce_cost,
          .launches = reduce_launches<R::kind, AxesInput>};
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

std::span<const op_def> reduce_ops() {
  return reduce_rows;
}

} // namespace troupe
