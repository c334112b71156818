// Softmax attention on floats: Y = softmax(scale · Q · Kᵀ + mask) · V, head by head (the operator: ops/fused_attention.cpp).
//
// One query position (a decode step) is a row of dot products and a weighted sum of V's rows. More are two small matrix
// products a block of rows, through oneDNN's single-threaded product; heads and blocks go to the threads.
#include "base/parallel.hpp"
#include "cpu/dnnl_compat.hpp"
#include "cpu/fast_functions.hpp"
#include "cpu/kernels.hpp"
#include "ops/head_layout.hpp"

#include <limits>

namespace troupe {
namespace {

/// Query rows of a block.
constexpr int64_t row_block = 64;
/// Multiplications of a head-and-block below which several share a thread.
constexpr double parallel_work = 64 * 1024;

/// Elements from one batch, head or position to the next, and before the first head.
struct strides {
  int64_t batch, head, row, start;
};

struct sizes {
  int64_t batch, heads, groups, queries, past, keys, width, value_width; // keys: those that are past too
  strides q, k, v, past_k, past_v, y;
  shape mask; // of the scores [batch, heads, queries, keys]; empty without a mask
  float scale;
  bool causal;
};

strides strides_of_operand(const shape& dims, bool behind, int64_t first = 0) {
  const int64_t head = behind ? dims[3] : dims[2] * dims[3];
  return {dims[1] * dims[2] * dims[3], head, behind ? dims[2] * dims[3] : dims[3], first * head};
}

sizes parse(const kernel_request& r) {
  const attributes& attrs = r.call.attrs;
  const bool q_behind = heads_behind(attrs, "q_layout"), kv_behind = heads_behind(attrs, "kv_layout");
  const shape &q = r.inputs[0].dims, &k = r.inputs[1].dims, &v = r.inputs[2].dims;
  sizes z{};
  const head_range q_heads = heads_read(attrs, 0, q[q_behind ? 2 : 1]),
                   k_heads = heads_read(attrs, 1, k[kv_behind ? 2 : 1]),
                   v_heads = heads_read(attrs, 2, v[kv_behind ? 2 : 1]);
  z.batch = q[0];
  z.heads = q_heads.count;
  z.queries = q[q_behind ? 1 : 2];
  z.width = q[3];
  const bool has_past = r.has_input(past_key_input);
  z.past = has_past ? r.inputs[past_key_input].dims[2] : 0;
  z.keys = z.past + k[kv_behind ? 1 : 2];
  z.groups = z.heads / k_heads.count;
  z.value_width = v[3];
  z.q = strides_of_operand(q, q_behind, q_heads.first);
  z.k = strides_of_operand(k, kv_behind, k_heads.first);
  z.v = strides_of_operand(v, kv_behind, v_heads.first);
  if (has_past) {
    z.past_k = strides_of_operand(r.inputs[past_key_input].dims, false);
    z.past_v = strides_of_operand(r.inputs[past_value_input].dims, false);
  }
  z.y = strides_of_operand(r.outputs[0].dims, heads_behind(attrs, "out_layout"));
  if (r.has_input(3))
    z.mask = broadcast_strides(r.inputs[3].dims, shape{z.batch, z.heads, z.queries, z.keys});
  z.scale = attrs.real("scale", 1);
  z.causal = attrs.integer("is_causal", 0) != 0;
  return z;
}

/// Keys and values of one head that lie together: those of a cache, or those of the call itself.
struct head_rows {
  int64_t first, count; // positions
  const float *k, *v;
  int64_t k_row, v_row;
};

/// C = alpha · A · op(B) + beta · C, all row-major with leading dimensions, on the calling thread if that is in a parallel region.
void multiply(bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
              const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  dnnl::error::wrap_c_api(dnnl_sgemm('N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
                          "a oneDNN product failed");
}

class attention_kernel final : public kernel {
public:
  explicit attention_kernel(const kernel_request& r) : z_(parse(r)) {}

  void run(const kernel_run& r) override {
    const int64_t blocks = (z_.queries + row_block - 1) / row_block;
    const double work = static_cast<double>(std::min(row_block, z_.queries)) * static_cast<double>(z_.keys) *
                        static_cast<double>(z_.width + z_.value_width);
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(parallel_work / work));
    parallel_for(z_.batch * z_.heads * blocks, grain, [&](int64_t begin, int64_t end) {
      thread_local std::vector<float> scores;
      scores.resize(std::max(scores.size(), static_cast<size_t>(row_block * z_.keys)));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t s0 = i % blocks * row_block, head = i / blocks;
        attend(r, head / z_.heads, head % z_.heads, s0, std::min(row_block, z_.queries - s0), scores.data());
      }
    });
  }

private:
  std::array<head_rows, 2> parts_of(const kernel_run& r, int64_t b, int64_t group) const {
    std::array<head_rows, 2> parts{};
    if (z_.past > 0)
      parts[0] = {0,
                  z_.past,
                  r.input<float>(past_key_input) + b * z_.past_k.batch + group * z_.past_k.head,
                  r.input<float>(past_value_input) + b * z_.past_v.batch + group * z_.past_v.head,
                  z_.past_k.row,
                  z_.past_v.row};
    parts[1] = {z_.past,
                z_.keys - z_.past,
                r.input<float>(1) + z_.k.start + b * z_.k.batch + group * z_.k.head,
                r.input<float>(2) + z_.v.start + b * z_.v.batch + group * z_.v.head,
                z_.k.row,
                z_.v.row};
    return parts;
  }

  void attend(const kernel_run& r, int64_t b, int64_t h, int64_t s0, int64_t rows, float* scores) const {
    const float* q = r.input<float>(0) + z_.q.start + b * z_.q.batch + h * z_.q.head + s0 * z_.q.row;
    float* y = r.output<float>(0) + b * z_.y.batch + h * z_.y.head + s0 * z_.y.row;
    const auto parts = parts_of(r, b, h / z_.groups);
    for (const head_rows& part : parts)
      multiply_keys(part, rows, q, scores + part.first);
    for (int64_t i = 0; i < rows; ++i) {
      float* line = scores + i * z_.keys;
      if (!z_.mask.empty())
        add_mask(r.input<float>(3), b, h, s0 + i, line);
      if (z_.causal)
        for (int64_t t = std::max<int64_t>(0, s0 + i + z_.keys - z_.queries + 1); t < z_.keys; ++t)
          line[t] = -std::numeric_limits<float>::infinity();
      fast::softmax_row(line, z_.keys);
    }
    if (rows == 1)
      std::fill_n(y, z_.value_width, 0.f);
    for (const head_rows& part : parts)
      if (rows == 1)
        add_weighted(part, scores + part.first, y);
      else if (part.count > 0)
        multiply(false, rows, z_.value_width, part.count, 1.f, scores + part.first, z_.keys, part.v, part.v_row,
                 part.first > 0 ? 1.f : 0.f, y, z_.y.row);
  }

  void multiply_keys(const head_rows& part, int64_t rows, const float* q, float* scores) const {
    if (rows == 1)
      for (int64_t t = 0; t < part.count; ++t)
        scores[t] = z_.scale * fast::dot(q, part.k + t * part.k_row, z_.width);
    else if (part.count > 0)
      multiply(true, rows, part.count, z_.width, z_.scale, q, z_.q.row, part.k, part.k_row, 0.f, scores, z_.keys);
  }

  void add_mask(const float* mask, int64_t b, int64_t h, int64_t s, float* line) const {
    const float* from = mask + b * z_.mask[0] + h * z_.mask[1] + s * z_.mask[2];
    if (z_.mask[3] == 1)
      for (int64_t t = 0; t < z_.keys; ++t)
        line[t] += from[t];
    else
      for (int64_t t = 0; t < z_.keys; ++t)
        line[t] += *from;
  }

  /// y += Σ_t weights[t] · v[t]
  void add_weighted(const head_rows& part, const float* weights, float* y) const {
    for (int64_t t = 0; t < part.count; ++t) {
      const float w = weights[t];
      const float* line = part.v + t * part.v_row;
#pragma omp simd
      for (int64_t d = 0; d < z_.value_width; ++d)
        y[d] += w * line[d];
    }
  }

  const sizes z_;
};

} // namespace

kernel_ptr make_attention(const kernel_request& r) {
  if (!r.all_of_type(dtype::float32) || !r.all_plain() || positions_first(r.call.attrs) ||
      volume(r.outputs[0].dims) == 0 || volume(r.inputs[1].dims) == 0)
    return nullptr;
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}, past_key_input, past_value_input})
    if (r.has_input(i) && r.inputs[i].dims.size() != 4)
      return nullptr;
  return std::make_unique<attention_kernel>(r);
}

} // namespace troupe
