// Softmax attention on floats: Y = softmax(scale · Q · Kᵀ + mask) · V, head by head (the operators:
// ops/composed/fused_attention.cpp, ops/onnx/attention.cpp).
//
// One query position (a decode step) is a row of dot products and a weighted sum of V's rows. More are two small matrix
// products a block of rows, through oneDNN's single-threaded product; heads and blocks go to the threads.
#include "base/parallel.hpp"
#include "base/round_up.hpp"
#include "cpu/attention_call.hpp"
#include "cpu/dnnl_compat.hpp"
#include "cpu/fast_functions.hpp"
#include "cpu/kernels.hpp"
#include "ops/head_layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {
namespace {

constexpr size_t mask_input = 3, limit_input = 6;
constexpr float masked = -std::numeric_limits<float>::infinity();

/// Query rows of a block.
constexpr int64_t row_block = 64;
/// Multiplications of a head-and-block below which several share a thread.
constexpr double parallel_work = 64 * 1024;

/// Keys and values of one head that are together in memory: those of a cache, or those of the call itself.
struct head_rows {
  int64_t first, count; // positions
  const float *k, *v;
  int64_t k_row, v_row;
};

/// C = alpha · A · op(B) + beta · C, all row-major with leading dimensions, on the calling thread if that is in a
/// parallel region.
void multiply(bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
              const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  dnnl::error::wrap_c_api(dnnl_sgemm('N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
                          "a oneDNN product failed");
}

/// Query rows of one head of one batch element.
struct query_block {
  int64_t batch, head, first, rows;
  int64_t keys;          // those that any of the rows sees
  int64_t causal_offset; // of this batch element
};

class attention_kernel final : public kernel {
public:
  explicit attention_kernel(attention_call call) : z_(std::move(call)) {}

  void run(const kernel_run& r) override {
    const int64_t blocks = ceil_div(z_.queries, row_block);
    const double work = static_cast<double>(std::min(row_block, z_.queries)) * static_cast<double>(z_.keys) *
                        static_cast<double>(z_.width + z_.value_width);
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(parallel_work / work));
    parallel_for(z_.batch * z_.heads * blocks, grain, [&](int64_t begin, int64_t end) {
      thread_local std::vector<float> scores;
      scores.resize(std::max(scores.size(), static_cast<size_t>(row_block * z_.keys)));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * row_block, head = i / blocks;
        attend(r, block_of(r, head, first), scores.data());
      }
    });
    if (z_.writes_keys)
      join(z_.past_k, z_.k, z_.width, z_.past > 0 ? r.input<float>(past_key_input) : nullptr, r.input<float>(1),
           r.output<float>(1));
    if (z_.writes_values)
      join(z_.past_v, z_.v, z_.value_width, z_.past > 0 ? r.input<float>(past_value_input) : nullptr, r.input<float>(2),
           r.output<float>(2));
  }

private:
  query_block block_of(const kernel_run& r, int64_t head, int64_t first) const {
    query_block b{head / z_.heads, head % z_.heads, first, std::min(row_block, z_.queries - first),
                  z_.keys,         z_.causal_offset};
    if (!z_.skips)
      return b;
    b.keys = z_.mask_keys;
    if (z_.limited) {
      const int64_t limit = r.input<int64_t>(limit_input)[b.batch];
      b.keys = std::min(b.keys, limit);
      b.causal_offset = limit - z_.queries;
    }
    if (z_.causal)
      b.keys = std::min(b.keys, first + b.rows + b.causal_offset);
    b.keys = std::max<int64_t>(b.keys, 0);
    return b;
  }

  std::array<head_rows, 2> parts_of(const kernel_run& r, const query_block& b) const {
    const int64_t group = b.head / z_.groups;
    std::array<head_rows, 2> parts{};
    if (z_.past > 0)
      parts[0] = {0,
                  std::min(z_.past, b.keys),
                  r.input<float>(past_key_input) + b.batch * z_.past_k.batch + group * z_.past_k.head,
                  r.input<float>(past_value_input) + b.batch * z_.past_v.batch + group * z_.past_v.head,
                  z_.past_k.row,
                  z_.past_v.row};
    parts[1] = {z_.past,
                std::max<int64_t>(0, b.keys - z_.past),
                r.input<float>(1) + z_.k.start + b.batch * z_.k.batch + group * z_.k.head,
                r.input<float>(2) + z_.v.start + b.batch * z_.v.batch + group * z_.v.head,
                z_.k.row,
                z_.v.row};
    return parts;
  }

  void attend(const kernel_run& r, const query_block& b, float* scores) const {
    const float* q = r.input<float>(0) + z_.q.start + b.batch * z_.q.batch + b.head * z_.q.head + b.first * z_.q.row;
    float* y = r.output<float>(0) + b.batch * z_.y.batch + b.head * z_.y.head + b.first * z_.y.row;
    const auto parts = parts_of(r, b);
    for (const head_rows& part : parts)
      multiply_keys(part, b.rows, q, scores + part.first);
    for (int64_t i = 0; i < b.rows; ++i)
      weigh(r, b, i, scores + i * z_.keys);
    multiply_values(parts, b.rows, scores, y);
    if (z_.skips)
      for (int64_t i = 0; i < b.rows; ++i)
        if (float* row = y + i * z_.y.row; !all_finite(row, z_.value_width))
          add_seen(parts, scores + i * z_.keys, row);
  }

  void multiply_keys(const head_rows& part, int64_t rows, const float* q, float* scores) const {
    if (rows == 1)
      for (int64_t t = 0; t < part.count; ++t)
        scores[t] = z_.scale * fast::dot(q, part.k + t * part.k_row, z_.width);
    else if (part.count > 0)
      multiply(true, rows, part.count, z_.width, z_.scale, q, z_.q.row, part.k, part.k_row, 0.f, scores, z_.keys);
  }

  /// Makes weights of the scores of row `i` of a block.
  void weigh(const kernel_run& r, const query_block& b, int64_t i, float* line) const {
    if (z_.softcap > 0)
      cap(line, b.keys);
    if (!z_.mask.empty())
      add_mask(r, b, i, line);
    if (z_.causal)
      for (int64_t t = std::max<int64_t>(0, b.first + i + b.causal_offset + 1); t < b.keys; ++t)
        line[t] = masked;
    if (z_.skips && std::all_of(line, line + b.keys, [](float score) { return score == masked; }))
      std::fill_n(line, b.keys, 0.f);
    else
      fast::softmax_row(line, b.keys);
  }

  void cap(float* line, int64_t count) const {
    for (int64_t t = 0; t < count; ++t)
      line[t] /= z_.softcap;
    fast::activate({.code = scalar_code::tanh}, line, line, count);
    for (int64_t t = 0; t < count; ++t)
      line[t] *= z_.softcap;
  }

  void add_mask(const kernel_run& r, const query_block& b, int64_t i, float* line) const {
    const int64_t start = b.batch * z_.mask[0] + b.head * z_.mask[1] + (b.first + i) * z_.mask[2], step = z_.mask[3];
    if (z_.flags) {
      const uint8_t* from = r.input<uint8_t>(mask_input) + start;
      for (int64_t t = 0; t < b.keys; ++t)
        line[t] = from[t * step] ? line[t] : masked;
      return;
    }
    const float* from = r.input<float>(mask_input) + start;
    if (z_.skips) // whatever the score of a masked key is
      for (int64_t t = 0; t < b.keys; ++t)
        line[t] = from[t * step] == masked ? masked : line[t] + from[t * step];
    else if (step == 1)
      for (int64_t t = 0; t < b.keys; ++t)
        line[t] += from[t];
    else
      for (int64_t t = 0; t < b.keys; ++t)
        line[t] += *from;
  }

  /// y = weights · values
  void multiply_values(const std::array<head_rows, 2>& parts, int64_t rows, const float* weights, float* y) const {
    const bool any = parts[0].count + parts[1].count > 0;
    if (rows == 1 || !any)
      for (int64_t i = 0; i < rows; ++i)
        std::fill_n(y + i * z_.y.row, z_.value_width, 0.f);
    for (const head_rows& part : parts)
      if (rows == 1)
        add_weighted(part, weights + part.first, y);
      else if (part.count > 0)
        multiply(false, rows, z_.value_width, part.count, 1.f, weights + part.first, z_.keys, part.v, part.v_row,
                 part.first > 0 ? 1.f : 0.f, y, z_.y.row);
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

  /// y = Σ_t weights[t] · v[t] over the keys that weigh anything: NaN and infinities of others stay out.
  void add_seen(const std::array<head_rows, 2>& parts, const float* weights, float* y) const {
    std::fill_n(y, z_.value_width, 0.f);
    for (const head_rows& part : parts)
      for (int64_t t = 0; t < part.count; ++t)
        if (weights[part.first + t] != 0)
          add_weighted({0, 1, nullptr, part.v + t * part.v_row, 0, 0}, weights + part.first + t, y);
  }

  static bool all_finite(const float* x, int64_t count) {
    return std::all_of(x, x + count, [](float value) { return std::isfinite(value); });
  }

  /// Writes past and present rows of keys, or of values, one after the other: [batch, heads, positions, width].
  void join(const attention_strides& of_past, const attention_strides& of_present, int64_t width, const float* past,
            const float* present, float* to) const {
    const int64_t kv_heads = z_.heads / z_.groups;
    parallel_for(z_.batch * kv_heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / kv_heads, h = i % kv_heads;
        float* row = to + i * z_.keys * width;
        if (past)
          row = std::copy_n(past + b * of_past.batch + h * of_past.head, z_.past * width, row);
        const float* from = present + b * of_present.batch + h * of_present.head;
        for (int64_t t = z_.past; t < z_.keys; ++t, from += of_present.row)
          row = std::copy_n(from, width, row);
      }
    });
  }

  const attention_call z_;
};

bool fits(const kernel_request& r) {
  if (!r.all_plain() || positions_first(r.call.attrs) || volume(r.outputs[0].dims) == 0 ||
      volume(r.inputs[1].dims) == 0)
    return false;
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}, past_key_input, past_value_input})
    if (r.has_input(i) && r.inputs[i].type != dtype::float32)
      return false;
  return true;
}

} // namespace

kernel_ptr make_attention(const kernel_request& r) {
  if (!r.all_of_type(dtype::float32) || !fits(r))
    return nullptr;
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}, past_key_input, past_value_input})
    if (r.has_input(i) && r.inputs[i].dims.size() != 4)
      return nullptr;
  return std::make_unique<attention_kernel>(parse_fused_attention(r));
}

kernel_ptr make_onnx_attention(const kernel_request& r) {
  const bool mask_fits = !r.has_input(mask_input) || r.inputs[mask_input].type == dtype::float32 ||
                         r.inputs[mask_input].type == dtype::boolean;
  if (!fits(r) || !mask_fits || r.has_output(3))
    return nullptr;
  auto call = parse_onnx_attention(r);
  return call ? std::make_unique<attention_kernel>(std::move(*call)) : nullptr;
}

} // namespace troupe
