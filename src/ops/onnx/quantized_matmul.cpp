// MatMulInteger and QLinearMatMul: products of 8-bit matrices with 32-bit sums that wrap.
//
//   C = Σ (a - a_zero) (b - b_zero)      y = saturate(⌊C · (a_scale · b_scale / y_scale)⌉ + y_zero)
//
// Shapes follow MatMul: batch dims broadcast; a vector on the left is a row, on the right a column. A's zero point and
// scale are for the whole matrix or for each row, B's for the whole matrix or for each column.
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/matrix_stack.hpp"
#include "ops/quantization.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Dims of one product.
struct integer_product {
  symbolic_shape batch;
  dim rows, depth, columns;
  symbolic_shape out;
};

integer_product parse_product(std::span<const dim> a, std::span<const dim> b) {
  if (a.empty() || b.empty())
    fail(errc::invalid_model, "a scalar cannot be multiplied as a matrix");
  const bool row = a.size() == 1, column = b.size() == 1;
  integer_product p;
  p.rows = row ? dim(1) : a[a.size() - 2];
  p.depth = a.back();
  p.columns = column ? dim(1) : b.back();
  const dim& other = column ? b[0] : b[b.size() - 2];
  if (p.depth.is_constant() && other.is_constant() && !(p.depth == other))
    fail(errc::invalid_model, "{} and {} cannot be multiplied", to_string(a), to_string(b));
  p.batch = broadcast(row ? std::span<const dim>() : a.first(a.size() - 2),
                      column ? std::span<const dim>() : b.first(b.size() - 2));
  p.out = p.batch;
  if (!row)
    p.out.push_back(p.rows);
  if (!column)
    p.out.push_back(p.columns);
  return p;
}

/// A parameter that all rows (columns) share or that each has; one for each matrix of a batch too.
struct parameter {
  tensor values;
  int64_t step = 0, batch_step = 0;

  template <class T>
  T at(int64_t matrix, int64_t i) const {
    return values.defined() ? values.data<T>()[matrix * batch_step + i * step] : T(0);
  }
};

/// Reads input `i` (absent: zeros) for `count` rows or columns of each of `matrices`.
template <class T>
parameter read_parameter(const kernel_context& c, size_t i, int64_t count, int64_t matrices) {
  if (!c.has_input(i))
    return {};
  parameter p{converted<T>(c.input(i))};
  const int64_t size = p.values.size();
  if (size == 1)
    return p;
  if (size != count && size != count * matrices)
    fail(errc::invalid_input, "input {} of shape {} does not fit {} rows or columns", i, to_string(c.input(i).dims),
         count);
  p.step = 1;
  p.batch_step = size == count ? 0 : count;
  return p;
}

template <class Dim>
std::span<const Dim> batch_of(std::span<const Dim> dims) {
  return dims.size() > 2 ? dims.first(dims.size() - 2) : std::span<const Dim>();
}

template <class Dim>
Dim matrix_count(std::span<const Dim> dims) {
  return volume(batch_of(dims));
}

/// Where the operands stand among a kernel's inputs.
struct operand_positions {
  size_t b, a_zero, b_zero;
};

/// Computes every row of sums and hands it to `finish(sums, row of the output, A's matrix and row, B's matrix)`.
template <class F>
void multiply(const kernel_context& c, const operand_positions& at, F finish) {
  const auto &a_view = c.input(0), &b_view = c.input(at.b);
  const integer_product p = parse_product(to_symbolic(a_view.dims), to_symbolic(b_view.dims));
  const int64_t m = p.rows.constant(), k = p.depth.constant(), n = p.columns.constant();
  const shape batch = constants(p.batch);
  const auto a_of = matrices_of(batch_of(a_view.dims), batch), b_of = matrices_of(batch_of(b_view.dims), batch);
  const tensor a = converted<int32_t>(a_view);
  tensor b = converted<int32_t>(b_view);
  const parameter a_zero = read_parameter<int32_t>(c, at.a_zero, m, matrix_count(a_view.dims));
  const parameter b_zero = read_parameter<int32_t>(c, at.b_zero, n, matrix_count(b_view.dims));
  int32_t* centred = b.mutable_data<int32_t>();
  for (int64_t matrix = 0, i = 0; matrix < matrix_count(b_view.dims); ++matrix)
    for (int64_t row = 0; row < k; ++row)
      for (int64_t j = 0; j < n; ++j, ++i)
        centred[i] -= b_zero.at<int32_t>(matrix, j);
  const int64_t grain = std::max<int64_t>(1, 64 * 1024 / std::max<int64_t>(1, k * n));
  parallel_for(m * static_cast<int64_t>(a_of.size()), grain, [&](int64_t begin, int64_t end) {
    std::vector<uint32_t> sums(static_cast<size_t>(n)); // unsigned: sums wrap
    for (int64_t row = begin; row < end; ++row) {
      const auto matrix = static_cast<size_t>(row / m);
      const int64_t i = row % m;
      const int32_t* left = a.data<int32_t>() + (a_of[matrix] * m + i) * k;
      const int32_t* right = centred + b_of[matrix] * k * n;
      std::fill(sums.begin(), sums.end(), 0);
      for (int64_t d = 0; d < k; ++d) {
        const auto factor = static_cast<uint32_t>(left[d] - a_zero.at<int32_t>(a_of[matrix], i));
        for (int64_t j = 0; j < n; ++j)
          sums[static_cast<size_t>(j)] += factor * static_cast<uint32_t>(right[d * n + j]);
      }
      finish(sums, row * n, a_of[matrix], i, b_of[matrix]);
    }
  });
}

void matmul_integer(kernel_context& c) {
  int32_t* y = c.output(0).as<int32_t>();
  multiply(c, {1, 2, 3}, [&](const std::vector<uint32_t>& sums, int64_t to, int64_t, int64_t, int64_t) {
    std::transform(sums.begin(), sums.end(), y + to, [](uint32_t sum) { return static_cast<int32_t>(sum); });
  });
}

void qlinear_matmul(kernel_context& c) {
  const integer_product p = parse_product(to_symbolic(c.input(0).dims), to_symbolic(c.input(3).dims));
  const auto a_scale = read_parameter<float>(c, 1, p.rows.constant(), matrix_count(c.input(0).dims));
  const auto b_scale = read_parameter<float>(c, 4, p.columns.constant(), matrix_count(c.input(3).dims));
  if (c.input(6).size() != 1 || c.input(7).size() != 1)
    fail(errc::unsupported, "the result's scale and zero point must be single elements");
  const float y_scale = *converted<float>(c.input(6)).data<float>();
  const float y_zero = *converted<float>(c.input(7)).data<float>();
  const quantized_range range = range_of(c.output(0).type);
  visit_integer(c.output(0).type, [&]<class T>(type_tag<T>) {
    T* y = c.output(0).as<T>();
    multiply(c, {3, 2, 5},
             [&](const std::vector<uint32_t>& sums, int64_t to, int64_t a_matrix, int64_t row, int64_t b_matrix) {
               const float left = a_scale.at<float>(a_matrix, row);
               for (size_t j = 0; j < sums.size(); ++j) {
                 const float scale = left * b_scale.at<float>(b_matrix, static_cast<int64_t>(j)) / y_scale;
                 const auto sum = static_cast<float>(static_cast<int32_t>(sums[j]));
                 y[to + static_cast<int64_t>(j)] = static_cast<T>(saturated(sum * scale, y_zero, range));
               }
             });
  });
}

/// Checks zero points or scales of A (input 0) and B (input `b`): one, or one for each row or column, of each matrix
/// too.
void require_parameters(const infer_context& c, size_t b, const integer_product& p, size_t of_a, size_t of_b) {
  const std::span<const dim> left = c.dims(0), right = c.dims(b);
  require_parameter(c, of_a, {p.rows, p.rows * matrix_count(left)});
  require_parameter(c, of_b, {p.columns, p.columns * matrix_count(right)});
}

void infer_matmul_integer(infer_context& c) {
  require_bytes(c.type(1));
  require_zero_point(c, 2, 0);
  require_zero_point(c, 3, 1);
  const integer_product p = parse_product(c.dims(0), c.dims(1));
  require_parameters(c, 1, p, 2, 3);
  c.set_output(0, dtype::int32, p.out);
}

void infer_qlinear_matmul(infer_context& c) {
  require_bytes(c.type(3));
  require_bytes(c.type(7));
  require_zero_point(c, 2, 0);
  require_zero_point(c, 5, 3);
  const integer_product p = parse_product(c.dims(0), c.dims(3));
  require_parameters(c, 3, p, 1, 4);
  require_parameters(c, 3, p, 2, 5);
  c.set_output(0, c.type(7), p.out);
}

op_cost quantized_matmul_cost(const call_shapes& call, size_t right) {
  op_cost cost;
  const shape &a = call.inputs[0], &b = call.inputs[right], &y = call.outputs[0];
  cost.flops = 2.0 * static_cast<double>(volume(y)) * static_cast<double>(a.empty() ? 1 : a.back());
  cost.bytes = static_cast<double>(volume(a) + volume(b) + bytes_of(call.output_types[0], volume(y)));
  return cost;
}

op_cost matmul_integer_cost(const attributes&, const call_shapes& call) {
  return quantized_matmul_cost(call, 1);
}

op_cost qlinear_matmul_cost(const attributes&, const call_shapes& call) {
  return quantized_matmul_cost(call, 3);
}

void matmul_integer_axes(call_axes& a) {
  axes::product(a, 1, false, false);
  axes::parameters(a, 0, a.call().rank(0) - 2, {2});
  axes::parameters(a, 1, a.call().rank(1) - 1, {3});
}

void qlinear_matmul_axes(call_axes& a) {
  axes::product(a, 3, false, false, false);
  axes::parameters(a, 0, a.call().rank(0) - 2, {1, 2});
  axes::parameters(a, 3, a.call().rank(3) - 1, {4, 5});
  for (const size_t of_result : {6, 7})
    if (!volume(a.call().dims(of_result)).is(1))
      a.refuse("has scales for rows of its result");
}

constexpr auto quantized_matmul_rows = std::to_array<op_def>({
    op_row("MatMulInteger", 10, infer_matmul_integer, matmul_integer,
           {.inputs = {2, 4},
            .types = byte_types,
            .cost = matmul_integer_cost,
            .axes = matmul_integer_axes,
            .mixes = "sums over"}),
    op_row("QLinearMatMul", 10, infer_qlinear_matmul, qlinear_matmul,
           {.inputs = {8, 8},
            .types = byte_types,
            .needs_float32 = true,
            .cost = qlinear_matmul_cost,
            .axes = qlinear_matmul_axes,
            .mixes = "sums over"}),
});

} // namespace

extern constinit const op_table onnx_quantized_matmul_ops = quantized_matmul_rows;

} // namespace troupe
