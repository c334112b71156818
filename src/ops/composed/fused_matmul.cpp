// Matrix product with its epilogue, produced by fusion:
//
//   Y = act(alpha · op(A) · op(B) + bias + residual)
//
// A [batch…, M, K] and B [batch…, K, N] of rank ≥ 2, batches broadcast as in NumPy; `transA` / `transB` say that the
// last two dims of an operand are stored transposed. bias is [N], residual has Y's dims. Attributes: transA, transB,
// alpha (1), and those of ops/activation.hpp. Sums and epilogue are in float (double for double) and rounded once.
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/epilogue.hpp"
#include "ops/families.hpp"
#include "ops/gemm.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

namespace troupe {
namespace {

/// The dims of the product: broadcast batches, then M and N. `Dim` is dim or int64_t.
template <class Dim>
struct product_dims {
  std::vector<Dim> batch;
  Dim m, n, k, k_of_b;
};

template <class Dim>
product_dims<Dim> product_of(const attributes& attrs, std::span<const Dim> a, std::span<const Dim> b) {
  if (a.size() < 2 || b.size() < 2)
    fail(errc::invalid_model, "a fused matrix product takes operands of rank 2 or more");
  const bool ta = attrs.integer("transA", 0) != 0, tb = attrs.integer("transB", 0) != 0;
  const size_t ra = a.size(), rb = b.size();
  return {broadcast(a.first(ra - 2), b.first(rb - 2)), a[ra - (ta ? 1 : 2)], b[rb - (tb ? 2 : 1)], a[ra - (ta ? 2 : 1)],
          b[rb - (tb ? 1 : 2)]};
}

void infer_fused_matmul(infer_context& c) {
  const auto d = product_of<dim>(c.attrs(), c.dims(0), c.dims(1));
  if (d.k.is_constant() && d.k_of_b.is_constant() && !(d.k == d.k_of_b))
    fail(errc::invalid_model, "inner dims {} and {} differ", d.k.to_string(), d.k_of_b.to_string());
  symbolic_shape dims = d.batch;
  dims.push_back(d.m);
  dims.push_back(d.n);
  c.set_output(0, common_type(c), std::move(dims));
  parse_activation(c.attrs());
  if (c.has_input(2) && (c.rank(2) != 1 || (c.dims(2)[0].is_constant() && d.n.is_constant() && !(c.dims(2)[0] == d.n))))
    fail(errc::invalid_model, "the bias {} must be [{}]", to_string(c.dims(2)), d.n.to_string());
  if (c.has_input(3))
    check_residual(c, 3);
}

/// One operand's matrices, row-major and not transposed, by batch offset.
template <class C>
class matrices {
public:
  matrices(const const_view& v, bool transposed, int64_t rows, int64_t columns)
      : data_(v), transposed_(transposed), rows_(rows), columns_(columns) {}

  /// Returns the matrix `index` of the stack; the pointer lives until the next call.
  const C* at(int64_t index) {
    const C* matrix = data_.data() + index * rows_ * columns_;
    if (!transposed_)
      return matrix;
    if (index != held_)
      copy_ = troupe::transposed(matrix, columns_, rows_);
    held_ = index;
    return copy_.data();
  }

private:
  read_as<C> data_;
  bool transposed_;
  int64_t rows_, columns_, held_ = -1;
  std::vector<C> copy_;
};

template <class C>
void finish(const kernel_context& c, C* y, int64_t rows, int64_t n) {
  const C alpha = static_cast<C>(c.attrs().real("alpha", 1));
  const activation act = parse_activation(c.attrs());
  const read_as<C> bias(optional_input(c, 2)), residual(optional_input(c, 3));
  parallel_for(rows, std::max<int64_t>(1, elementwise_grain / std::max<int64_t>(n, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   C* line = y + row * n;
                   for (int64_t i = 0; alpha != 1 && i < n; ++i)
                     line[i] *= alpha;
                   for (int64_t i = 0; bias && i < n; ++i)
                     line[i] += bias[i];
                   for (int64_t i = 0; residual && i < n; ++i)
                     line[i] += residual[row * n + i];
                   apply(act, line, n);
                 }
               });
}

void check_sizes(const kernel_context& c, const product_dims<int64_t>& d) {
  if (d.k != d.k_of_b)
    fail(errc::invalid_input, "inner dims {} and {} of a matrix product differ", d.k, d.k_of_b);
  if (c.has_input(2) && c.input(2).size() != d.n)
    fail(errc::invalid_input, "a bias of {} elements does not fit {} columns", c.input(2).size(), d.n);
  if (c.has_input(3) && c.input(3).size() != c.output(0).size())
    fail(errc::invalid_input, "the residual {} does not fit the output {}", to_string(c.input(3).dims),
         to_string(c.output(0).dims));
}

template <class C>
void multiply(kernel_context& c) {
  const const_view &a = c.input(0), &b = c.input(1);
  auto d = product_of<int64_t>(c.attrs(), a.dims, b.dims);
  check_sizes(c, d);
  const bool ta = c.attrs().integer("transA", 0) != 0, tb = c.attrs().integer("transB", 0) != 0;
  shape batch_a(a.dims.begin(), a.dims.end() - 2), batch_b(b.dims.begin(), b.dims.end() - 2);
  const int64_t rows = volume(d.batch) * d.m;
  if (!ta && volume(batch_b) == 1 && volume(batch_a) == volume(d.batch)) {
    d.m = rows; // one tall product
    d.batch = batch_a = batch_b = {};
  }
  write_as<C> y(c.output(0));
  std::fill_n(y.data(), rows * d.n, C(0));
  matrices<C> left(a, ta, d.m, d.k), right(b, tb, d.k, d.n);
  const shape stride_a = broadcast_strides(batch_a, d.batch), stride_b = broadcast_strides(batch_b, d.batch),
              stride_y = strides_of(d.batch);
  for (int64_t i = 0, count = volume(d.batch); i < count; ++i) {
    int64_t index_a = 0, index_b = 0;
    for (size_t axis = 0; axis < d.batch.size(); ++axis) {
      const int64_t position = i / stride_y[axis] % d.batch[axis];
      index_a += position * stride_a[axis];
      index_b += position * stride_b[axis];
    }
    gemm(d.m, d.n, d.k, left.at(index_a), d.k, right.at(index_b), d.n, y.data() + i * d.m * d.n, d.n);
  }
  finish(c, y.data(), rows, d.n);
  y.commit();
}

void fused_matmul_reference(kernel_context& c) {
  visit_compute(c.input(0).type, [&]<class T>(type_tag<T>) { multiply<T>(c); });
}

/// The dims may be guesses that do not fit each other: nothing of them is checked.
op_cost fused_matmul_cost(const attributes& attrs, const call_shapes& s) {
  const shape& a = s.inputs.at(0);
  const int64_t depth = a.empty() ? 1 : attrs.integer("transA", 0) != 0 && a.size() > 1 ? a[a.size() - 2] : a.back();
  return {2 * static_cast<double>(depth) * static_cast<double>(volume(s.outputs.at(0))), operand_bytes(s)};
}

/// A bias along the last dim, and a residual of the result's dims.
void fused_matmul_axes(call_axes& a) {
  const attributes& attrs = a.call().attrs();
  axes::product(a, 1, attrs.integer("transA", 0) != 0, attrs.integer("transB", 0) != 0, false, {2, 3});
}

constexpr auto fused_matmul_rows = std::to_array<op_def>({
    op_row("MatMul", 1, infer_fused_matmul, fused_matmul_reference,
           {.domain = "troupe",
            .inputs = {2, 4},
            .types = types::floats,
            .cost = fused_matmul_cost,
            .axes = fused_matmul_axes,
            .mixes = "sums over"}),
});

} // namespace

extern constinit const op_table composed_fused_matmul_ops = fused_matmul_rows;

} // namespace troupe
