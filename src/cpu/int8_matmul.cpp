// Matrix products of bytes: MatMulInteger, QLinearMatMul and troupe.QuantizedMatMul. A constant right matrix is packed
// once, others are packed at each run, which costs little beside a product with many rows.
#include "cpu/int8_tiles.hpp"
#include "cpu/int8_weights.hpp"
#include "cpu/kernels.hpp"
#include "ops/onnx/matrix_stack.hpp"

#include <optional>

namespace troupe {
namespace {

/// A stack of products on concrete sizes.
struct byte_product {
  int64_t rows, depth, columns;
  std::vector<int64_t> a_of, b_of; // which matrices of A and B each product is of; one product if B is one matrix
};

std::optional<byte_product> product_of(const kernel_request& r, const int8::operand_positions& at) {
  const shape &a = r.inputs[at.a].dims, &b = r.inputs[at.b].dims, &y = r.outputs[0].dims;
  if (!r.all_plain() || a.size() < 2 || b.size() < 2 || a.back() != b[b.size() - 2] || volume(a) == 0 ||
      volume(b) == 0 || volume(y) == 0)
    return std::nullopt;
  byte_product p{a[a.size() - 2], a.back(), b.back(), {0}, {0}};
  const auto a_batch = std::span(a).first(a.size() - 2), b_batch = std::span(b).first(b.size() - 2);
  const shape batch(y.begin(), y.end() - 2);
  if (volume(b_batch) == 1 && volume(a_batch) == volume(batch)) {
    p.rows *= volume(batch);
  } else {
    p.a_of = matrices_of(a_batch, batch);
    p.b_of = matrices_of(b_batch, batch);
  }
  return p;
}

class int8_matmul_kernel final : public kernel {
public:
  int8_matmul_kernel(const kernel_request& r, const int8::operand_positions& at, byte_product p)
      : at_(at), p_(std::move(p)), end_(r, at, p_.columns, p_.depth), quads_(int8::quads_of(p_.depth)),
        blocks_(int8::blocks_of(p_.columns)) {
    if (!r.inputs[at.b].constant || p_.b_of.size() > 1)
      return;
    weights_ = r.resources.weights.get(int8::pack_weight(r.inputs[at.b].constant, 1, p_.depth, p_.columns));
    column_sums_ = int8::column_sums(packed_weights());
  }

  bool reads(size_t i) const override { return i != at_.b || !weights_; }

  void run(const kernel_run& r) override {
    if (weights_) {
      end_.bind(r, column_sums_.data());
      return multiply(r, 0, packed_weights(), end_);
    }
    column_sums_.assign(static_cast<size_t>(blocks_ * int8::block_columns), 0);
    end_.bind(r, column_sums_.data());
    parallel_for(std::ssize(p_.a_of), 1, [&](int64_t begin, int64_t end) {
      int8::finish own = end_;
      std::vector<int8_t> packed(static_cast<size_t>(quads_ * blocks_ * int8::block_columns * int8::quad));
      for (int64_t i = begin; i < end; ++i) {
        const auto* b = r.input<uint8_t>(at_.b) + p_.b_of[static_cast<size_t>(i)] * p_.depth * p_.columns;
        int8::pack_matrix(b, p_.columns, 1, p_.depth, p_.columns, end_.b_flip(), packed.data());
        const int8::panel panel{packed.data(), quads_, blocks_};
        own.correct_for(int8::column_sums(panel).data());
        multiply(r, i, panel, own);
      }
    });
  }

private:
  int8::panel packed_weights() const { return {static_cast<const int8_t*>(weights_->data()), quads_, blocks_}; }

  void multiply(const kernel_run& r, int64_t product, const int8::panel& b, const int8::finish& end) const {
    const int64_t depth = p_.depth, step = quads_ * int8::quad;
    const auto* a = r.input<uint8_t>(at_.a) + p_.a_of[static_cast<size_t>(product)] * p_.rows * depth;
    auto* y = r.output<std::byte>(0) + product * p_.rows * p_.columns * end.bytes_each();
    const auto gather = [&](int64_t first, int64_t count) -> int8::row_range {
      if (depth == step && end.a_flip() == 0)
        return {a + first * depth, depth};
      thread_local std::vector<uint8_t> rows;
      rows.resize(std::max(rows.size(), static_cast<size_t>(count * step)));
      const uint8_t flip = end.a_flip();
      for (int64_t i = 0; i < count; ++i)
        for (int64_t k = 0; k < depth; ++k)
          rows[static_cast<size_t>(i * step + k)] = a[(first + i) * depth + k] ^ flip;
      return {rows.data(), step};
    };
    int8::tiled_product(p_.rows, p_.columns, 0, b, end, gather, y, p_.columns * end.bytes_each()).run();
  }

  const int8::operand_positions at_;
  const byte_product p_;
  int8::finish end_;
  int64_t quads_, blocks_;
  weight_cache::handle weights_; // null if B is packed at each run
  std::vector<int32_t> column_sums_;
};

} // namespace

kernel_ptr make_int8_matmul(const kernel_request& r) {
  const int8::operand_positions at = int8::positions_of(r.call);
  auto p = product_of(r, at);
  if (!p || !int8::finish::takes(r, at, p->columns))
    return nullptr;
  return std::make_unique<int8_matmul_kernel>(r, at, *std::move(p));
}

} // namespace troupe
