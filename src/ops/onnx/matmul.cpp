// Matrix products: MatMul with NumPy's rules, and Gemm.
//
//   MatMul: the last two dims multiply, those before them broadcast; a vector on the left is a row, on the right a
//           column, and the dim of 1 that this adds is dropped from the result.
//   Gemm:   Y = alpha · op(A) · op(B) + beta · C, op transposes if transA / transB say so, C broadcasts to [M, N].
// Integers wrap modulo 2^bits.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/gemm.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Calls `f(type_tag<C>{})` with the type that a product of `type` is computed in; narrow integers widen.
template <class F>
void visit_product(dtype type, F&& f) {
  if (types::floats & set_of(type))
    visit_compute(type, f);
  else if (bits_of(type) == 64)
    f(type_tag<uint64_t>{});
  else
    f(type_tag<uint32_t>{});
}

/// Shapes of one product: `batch` broadcasts; the result's dims are batch, rows (unless A is a vector), columns
/// (likewise).
struct matmul_dims {
  symbolic_shape a_batch, b_batch, batch;
  dim rows, depth, columns;
  bool a_vector, b_vector;

  symbolic_shape result() const {
    symbolic_shape dims = batch;
    if (!a_vector)
      dims.push_back(rows);
    if (!b_vector)
      dims.push_back(columns);
    return dims;
  }
};

matmul_dims parse_matmul(std::span<const dim> a, std::span<const dim> b) {
  require_rank(a.size(), 1, "the left operand");
  require_rank(b.size(), 1, "the right operand");
  matmul_dims d;
  d.a_vector = a.size() == 1;
  d.b_vector = b.size() == 1;
  d.rows = d.a_vector ? dim(1) : a[a.size() - 2];
  d.depth = a.back();
  d.columns = d.b_vector ? dim(1) : b.back();
  require_same(d.depth, d.b_vector ? b[0] : b[b.size() - 2], "inner dims of the product");
  if (!d.a_vector)
    d.a_batch.assign(a.begin(), a.end() - 2);
  if (!d.b_vector)
    d.b_batch.assign(b.begin(), b.end() - 2);
  d.batch = broadcast(d.a_batch, d.b_batch);
  return d;
}

void infer_matmul(infer_context& c) {
  c.set_output(0, common_type(c), parse_matmul(c.dims(0), c.dims(1)).result());
}

/// Returns, for each matrix of the broadcast batch, which matrix of an operand it uses.
std::vector<int64_t> matrix_indices(const symbolic_shape& operand, const symbolic_shape& batch) {
  const shape dims = constants(batch), strides = broadcast_strides(constants(operand), dims);
  std::vector<int64_t> indices(static_cast<size_t>(volume(dims)));
  for (size_t i = 0; i < indices.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
      indices[i] += rest % dims[axis] * strides[axis];
  }
  return indices;
}

void matmul(kernel_context& c) {
  const matmul_dims d = parse_matmul(to_symbolic(c.input(0).dims), to_symbolic(c.input(1).dims));
  int64_t m = d.rows.constant();
  const int64_t k = d.depth.constant(), n = d.columns.constant();
  std::vector<int64_t> a_index = matrix_indices(d.a_batch, d.batch), b_index = matrix_indices(d.b_batch, d.batch);
  if (volume(constants(d.b_batch)) == 1 && volume(constants(d.a_batch)) == static_cast<int64_t>(a_index.size())) {
    m *= static_cast<int64_t>(a_index.size()); // one right matrix: all left rows are one matrix
    a_index = b_index = {0};
  }
  visit_product(c.input(0).type, [&]<class C>(type_tag<C>) {
    const read_as<C> a(c.input(0)), b(c.input(1));
    write_as<C> y(c.output(0));
    const auto one = [&](int64_t i) {
      C* out = y.data() + i * m * n;
      std::fill_n(out, m * n, C(0));
      gemm(m, n, k, a.data() + a_index[static_cast<size_t>(i)] * m * k, k,
           b.data() + b_index[static_cast<size_t>(i)] * k * n, n, out, n);
    };
    if (a_index.size() == 1) {
      one(0); // outside parallel_for, so that the product itself may use all threads
    } else {
      const int64_t grain = std::max<int64_t>(1, elementwise_grain / std::max<int64_t>(1, m * n));
      parallel_for(static_cast<int64_t>(a_index.size()), grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          one(i);
      });
    }
    y.commit();
  });
}

struct gemm_dims {
  bool trans_a, trans_b;
  dim m, n, k;
};

gemm_dims parse_gemm(const attributes& attrs, std::span<const dim> a, std::span<const dim> b) {
  if (a.size() != 2 || b.size() != 2)
    fail(errc::invalid_model, "the operands have ranks {} and {}, but must be matrices", a.size(), b.size());
  gemm_dims d{attrs.integer("transA", 0) != 0, attrs.integer("transB", 0) != 0, {}, {}, {}};
  d.m = a[d.trans_a ? 1 : 0];
  d.k = a[d.trans_a ? 0 : 1];
  d.n = b[d.trans_b ? 0 : 1];
  require_same(d.k, b[d.trans_b ? 1 : 0], "inner dims of the product");
  return d;
}

/// Throws unless `bias` broadcasts to [m, n] without enlarging it.
void check_bias(std::span<const dim> bias, const gemm_dims& d) {
  const dim target[] = {d.m, d.n};
  bool fits = bias.size() <= 2;
  for (size_t i = 0; fits && i < bias.size(); ++i) {
    const dim &have = bias[bias.size() - 1 - i], &want = target[1 - i];
    fits = have.is(1) || !have.is_constant() || !want.is_constant() || have == want;
  }
  if (!fits)
    fail(errc::invalid_model, "C of shape {} does not broadcast to [{}, {}]", to_string(bias), d.m.to_string(),
         d.n.to_string());
}

void infer_gemm(infer_context& c) {
  const gemm_dims d = parse_gemm(c.attrs(), c.dims(0), c.dims(1));
  if (c.has_input(2))
    check_bias(c.dims(2), d);
  c.set_output(0, common_type(c), {d.m, d.n});
}

/// Returns factor · x in C's arithmetic; integers multiply as floats and truncate, as the standard's own evaluator
/// does.
template <class C>
C scaled(float factor, C x, bool floating) {
  if (factor == 1.f)
    return x;
  if (floating)
    return static_cast<C>(factor) * x;
  using signed_type = std::make_signed_t<std::conditional_t<std::is_floating_point_v<C>, int64_t, C>>;
  return static_cast<C>(
      static_cast<signed_type>(static_cast<double>(factor) * static_cast<double>(static_cast<signed_type>(x))));
}

void general_gemm(kernel_context& c) {
  const gemm_dims d = parse_gemm(c.attrs(), to_symbolic(c.input(0).dims), to_symbolic(c.input(1).dims));
  const int64_t m = d.m.constant(), n = d.n.constant(), k = d.k.constant();
  const float alpha = c.attrs().real("alpha", 1.f), beta = c.attrs().real("beta", 1.f);
  const bool floating = types::floats & set_of(c.input(0).type);
  shape bias_strides{0, 0};
  if (c.has_input(2)) {
    check_bias(to_symbolic(c.input(2).dims), d);
    bias_strides = broadcast_strides(c.input(2).dims, shape{m, n});
  }
  visit_product(c.input(0).type, [&]<class C>(type_tag<C>) {
    const read_as<C> a(c.input(0)), b(c.input(1)), bias(optional_input(c, 2));
    write_as<C> y(c.output(0));
    const std::vector<C> at = d.trans_a ? transposed(a.data(), k, m) : std::vector<C>{};
    const std::vector<C> bt = d.trans_b ? transposed(b.data(), n, k) : std::vector<C>{};
    std::fill_n(y.data(), m * n, C(0));
    gemm(m, n, k, d.trans_a ? at.data() : a.data(), k, d.trans_b ? bt.data() : b.data(), n, y.data(), n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        C value = scaled(alpha, y[i * n + j], floating);
        if (bias)
          value += scaled(beta, bias[i * bias_strides[0] + j * bias_strides[1]], floating);
        y[i * n + j] = value;
      }
    y.commit();
  });
}

/// Two operations for each pair of elements that meet.
op_cost product_cost(const attributes& attrs, const call_shapes& call) {
  const shape& a = call.inputs[0];
  const int64_t depth = a.empty() ? 1 : attrs.integer("transA", 0) != 0 ? a[0] : a.back();
  return {2 * static_cast<double>(depth) * static_cast<double>(volume(call.outputs[0])), operand_bytes(call)};
}

void matmul_axes(call_axes& a) {
  axes::product(a, 1, false, false);
}

void gemm_axes(call_axes& a) {
  const infer_context& c = a.call();
  const bool left = c.attrs().integer("transA", 0) != 0, right = c.attrs().integer("transB", 0) != 0;
  if (c.has_input(2))
    axes::product(a, 1, left, right, true, {2});
  else
    axes::product(a, 1, left, right);
}

constexpr auto matmul_rows = std::to_array<op_def>({
    op_row(
        "MatMul", 1, infer_matmul, matmul,
        {.inputs = {2, 2}, .types = types::numeric, .cost = product_cost, .axes = matmul_axes, .mixes = "sums over"}),
    op_row("Gemm", 1, infer_gemm, general_gemm,
           {.inputs = {2, 3}, .types = types::numeric, .cost = product_cost, .axes = gemm_axes, .mixes = "sums over"}),
});

} // namespace

extern constinit const op_table onnx_matmul_ops = matmul_rows;

} // namespace troupe
