// Softmax attention, produced by fusion:
//
//   Y[b, h, s] = Σ_t softmax_t(scale · Q[b, h, s] · K[b, g, t] + mask[b, h, s, t]) · V[b, g, t],   g = ⌊h · Hkv / H⌋
//
// Q [B, H, S, D], K [B, Hkv, T, D], V [B, Hkv, T, Dv], mask? broadcast to [B, H, S, T]; H is a multiple of Hkv. Inputs
// 4 and 5, past keys and values of a cache, [B, Hkv, P, D] and [B, Hkv, P, Dv], stand before K and V: T is then P and
// what inputs 1 and 2 have. Attributes: scale (1), is_causal (0: query s sees keys t ≤ s + T − S when 1), and q_layout,
// kv_layout, out_layout: "bhsd" (the order above, the default) or "bshd" (heads after positions, as a projection writes
// them); past_layout, of inputs 4 and 5: "bhsd" (the default) or "sbhd" (positions first, as a GPU keeps caches that
// grow where they are). q_heads, k_heads and v_heads, [first, count], take Q, K and V from part of the heads of their
// inputs, which may be one value: a projection to all three. Inputs 4 and 5 may be float32 beside float16. Scores,
// softmax and sums are in float (double for double). As in ONNX's Softmax, a row of −inf alone gives NaN.
//
// troupe.AttentionProjection multiplies the heads of a position, one after the other, by a matrix:
//
//   Z[b, s] = Y[b, :, s, :] · W + bias + residual[b, s]
//
// Its first inputs and attributes are those of troupe.Attention, with out_layout "bshd". Then W, [H · Dv, N], or [N, H
// · Dv] if attribute transB.product is not 0, bias? [N] and residual? of Z's dims, [B, S, N]. It is by definition these
// two operators one after the other; kernels may keep more digits of Y.
#include "ops/composed/fused_attention.hpp"
#include "base/parallel.hpp"
#include "ops/epilogue.hpp"
#include "ops/families.hpp"
#include "ops/gemm.hpp"
#include "ops/head_layout.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/require_broadcast.hpp"
#include "ops/operand.hpp"

#include <cmath>
#include <limits>

namespace troupe {
namespace {

/// Query rows that share one pass over the keys.
constexpr int64_t row_block = 64;

bool operand_is_bshd(const attributes& attrs, size_t i) {
  return is_bshd(attrs, i == 0 ? "q_layout" : "kv_layout");
}

/// Dims of all that input `i` holds, in the order batch, heads, positions, width, whatever its layout.
template <class Dim>
std::array<Dim, 4> logical(const attributes& attrs, size_t i, std::span<const Dim> dims) {
  if (dims.size() != 4)
    fail(errc::invalid_model, "attention takes operands of rank 4, not {}", dims.size());
  const bool bshd = operand_is_bshd(attrs, i);
  return {dims[0], dims[bshd ? 2 : 1], dims[bshd ? 1 : 2], dims[3]};
}

/// The same of the heads that take part.
std::array<dim, 4> inferred_dims(const infer_context& c, size_t i) {
  auto d = logical<dim>(c.attrs(), i, c.dims(i));
  if (d[1].is_constant())
    d[1] = dim(heads_read(c.attrs(), i, d[1].constant()).count);
  return d;
}

void require_equal(const dim& a, const dim& b, const char* what) {
  if (a.is_constant() && b.is_constant() && !(a == b))
    fail(errc::invalid_model, "attention: {} {} and {} differ", what, a.to_string(), b.to_string());
}

/// Returns the type of all operands; caches may be float32 beside float16.
dtype type_of_operands(const infer_context& c) {
  for (size_t i = 1; i < c.input_count(); ++i) {
    const bool wide = is_cache_input("troupe", "Attention", i) && c.type(0) == dtype::float16 && c.has_input(i) &&
                      c.type(i) == dtype::float32;
    if (c.has_input(i) && c.type(i) != c.type(0) && !wide)
      fail(errc::invalid_model, "attention of {} and {}", to_string(c.type(0)), to_string(c.type(i)));
  }
  return c.type(0);
}

void infer_fused_attention(infer_context& c) {
  const attributes& attrs = c.attrs();
  const auto q = inferred_dims(c, 0), k = inferred_dims(c, 1), v = inferred_dims(c, 2);
  require_equal(q[3], k[3], "widths of Q and K");
  require_equal(q[0], k[0], "batches of Q and K");
  require_equal(q[0], v[0], "batches of Q and V");
  require_equal(k[1], v[1], "heads of K and V");
  require_equal(k[2], v[2], "positions of K and V");
  if (!q[1].is_constant() || !k[1].is_constant() || k[1].constant() < 1 || q[1].constant() % k[1].constant() != 0)
    fail(errc::invalid_model, "attention: {} heads of Q do not share {} heads of K", q[1].to_string(),
         k[1].to_string());
  dim keys = k[2];
  if (c.has_input(past_key_input) != c.has_input(past_value_input))
    fail(errc::invalid_model, "attention: past keys and values must both be there, or neither");
  if (c.has_input(past_key_input)) {
    const auto past_k = cache_dims<dim>(attrs, c.dims(past_key_input)),
               past_v = cache_dims<dim>(attrs, c.dims(past_value_input));
    require_equal(past_k[2], past_v[2], "positions of past keys and values");
    keys = keys + past_k[2];
    for (size_t i : {0, 1, 3}) {
      require_equal(past_k[i], k[i], "dims of past keys and keys");
      require_equal(past_v[i], v[i], "dims of past values and values");
    }
  }
  if (c.has_input(3))
    require_broadcast(c.dims(3), symbolic_shape{q[0], q[1], q[2], keys}, "the mask of attention");
  const bool bshd = is_bshd(attrs, "out_layout");
  c.set_output(0, type_of_operands(c), {q[0], q[bshd ? 2 : 1], q[bshd ? 1 : 2], v[3]});
}

/// Where one operand's rows are.
struct operand_strides {
  int64_t batch, head, row;

  operand_strides(const std::array<int64_t, 4>& d, bool bshd)
      : batch(d[1] * d[2] * d[3]), head(bshd ? d[3] : d[2] * d[3]), row(bshd ? d[1] * d[3] : d[3]) {}
};

/// The heads of an operand that take part: their dims, and where their rows are from the element `start` on.
struct operand_heads {
  std::array<int64_t, 4> dims;
  operand_strides strides;
  int64_t start = 0;
};

operand_heads heads_of(const kernel_context& c, size_t i) {
  auto d = logical<int64_t>(c.attrs(), i, c.input(i).dims);
  const operand_strides strides(d, operand_is_bshd(c.attrs(), i));
  const head_range read = heads_read(c.attrs(), i, d[1]);
  d[1] = read.count;
  return {d, strides, read.first * strides.head};
}

/// K or V together with the past, input `past`: then heads are before positions.
operand_heads joined_heads(const kernel_context& c, size_t i, size_t past) {
  const operand_heads present = heads_of(c, i);
  if (!c.has_input(past))
    return present;
  auto d = present.dims;
  const auto before = cache_dims<int64_t>(c.attrs(), c.input(past).dims);
  if (before[0] != d[0] || before[1] != d[1] || before[3] != d[3])
    fail(errc::invalid_input, "attention: what is past, {}, does not fit {}", to_string(c.input(past).dims),
         to_string(c.input(i).dims));
  d[2] += before[2];
  return {d, operand_strides(d, false)};
}

struct attention_sizes {
  std::array<int64_t, 4> q, k, v;
  operand_strides sq, sk, sv, sy;
  std::array<int64_t, 4> mask_strides{};
  int64_t groups;
  bool causal;

  /// Of Q, and of K and V once what is past is in front.
  attention_sizes(const kernel_context& c, const operand_heads& queries, const operand_heads& keys,
                  const operand_heads& values)
      : q(queries.dims), k(keys.dims), v(values.dims), sq(queries.strides), sk(keys.strides), sv(values.strides),
        sy({q[0], q[1], q[2], v[3]}, is_bshd(c.attrs(), "out_layout")), groups(k[1] ? q[1] / k[1] : 0),
        causal(c.attrs().integer("is_causal", 0) != 0) {
    if (k[1] < 1 || q[1] % k[1] || q[3] != k[3] || q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || k[2] != v[2])
      fail(errc::invalid_input, "attention: Q {}, K {} and V {} do not fit together", to_string(c.input(0).dims),
           to_string(c.input(1).dims), to_string(c.input(2).dims));
    if (c.has_input(3)) {
      const shape full{q[0], q[1], q[2], k[2]};
      if (broadcast(c.input(3).dims, full) != full)
        fail(errc::invalid_input, "attention: the mask {} does not fit {}", to_string(c.input(3).dims),
             to_string(full));
      const shape strides = broadcast_strides(c.input(3).dims, full);
      std::copy(strides.begin(), strides.end(), mask_strides.begin());
    }
  }
};

template <class C>
void add_mask(const attention_sizes& z, const C* mask, int64_t b, int64_t h, int64_t s, C* scores) {
  const C* from = mask + b * z.mask_strides[0] + h * z.mask_strides[1] + s * z.mask_strides[2];
  const int64_t step = z.mask_strides[3];
  for (int64_t t = 0; t < z.k[2]; ++t)
    scores[t] += from[t * step];
}

template <class C>
void softmax_row(C* x, int64_t count) {
  C top = -std::numeric_limits<C>::infinity();
  for (int64_t t = 0; t < count; ++t)
    top = x[t] > top ? x[t] : top;
  double sum = 0;
  for (int64_t t = 0; t < count; ++t) {
    x[t] = std::exp(x[t] - top);
    sum += x[t];
  }
  for (int64_t t = 0; t < count; ++t)
    x[t] /= static_cast<C>(sum);
}

/// Buffers of one thread.
template <class C>
struct scratch {
  std::vector<C> keys, scores, out;
};

/// Computes query rows [s0, s0 + rows) of head `h` of batch `b`.
template <class C>
void attend(const attention_sizes& z, const C* q, const C* k, const C* v, const C* mask, C scale, int64_t b, int64_t h,
            int64_t s0, int64_t rows, scratch<C>& w, C* y) {
  const int64_t T = z.k[2], D = z.k[3], Dv = z.v[3], g = h / z.groups;
  const C* keys = k + b * z.sk.batch + g * z.sk.head;
  w.keys.resize(static_cast<size_t>(T * D));
  for (int64_t t = 0; t < T; ++t)
    for (int64_t d = 0; d < D; ++d)
      w.keys[static_cast<size_t>(d * T + t)] = keys[t * z.sk.row + d];
  w.scores.assign(static_cast<size_t>(rows * T), C(0));
  gemm(rows, T, D, q + b * z.sq.batch + h * z.sq.head + s0 * z.sq.row, z.sq.row, w.keys.data(), T, w.scores.data(), T);
  for (int64_t r = 0; r < rows; ++r) {
    C* line = w.scores.data() + r * T;
    for (int64_t t = 0; t < T; ++t)
      line[t] *= scale;
    if (mask)
      add_mask(z, mask, b, h, s0 + r, line);
    for (int64_t t = std::max<int64_t>(0, s0 + r + T - z.q[2] + 1); z.causal && t < T; ++t)
      line[t] = -std::numeric_limits<C>::infinity();
    softmax_row(line, T);
  }
  C* to = y + b * z.sy.batch + h * z.sy.head + s0 * z.sy.row;
  for (int64_t r = 0; r < rows; ++r)
    std::fill_n(to + r * z.sy.row, Dv, C(0));
  gemm(rows, Dv, T, w.scores.data(), T, v + b * z.sv.batch + g * z.sv.head, z.sv.row, to, z.sy.row);
}

/// K or V with what is past in front, heads before positions.
template <class C>
class joined_rows {
public:
  joined_rows(const kernel_context& c, size_t i, size_t past) : present_(c.input(i)), past_(optional_input(c, past)) {
    if (!c.has_input(past))
      return;
    joined_ = true;
    const auto& [now, from, start] = heads_of(c, i);
    const auto before = cache_dims<int64_t>(c.attrs(), c.input(past).dims);
    const int64_t rows = now[0] * now[1], width = before[3];
    const bool first = positions_first(c.attrs());
    for (int64_t b = 0; b < now[0]; ++b)
      for (int64_t h = 0; h < now[1]; ++h) {
        const int64_t at = b * now[1] + h;
        for (int64_t t = 0; t < before[2]; ++t) {
          const C* row = past_.data() + (first ? t * rows + at : at * before[2] + t) * width;
          all_.insert(all_.end(), row, row + width);
        }
        for (int64_t t = 0; t < now[2]; ++t) {
          const C* row = present_.data() + start + b * from.batch + h * from.head + t * from.row;
          all_.insert(all_.end(), row, row + now[3]);
        }
      }
  }

  const C* data() const { return joined_ ? all_.data() : present_.data(); }

private:
  bool joined_ = false;
  read_as<C> present_, past_;
  std::vector<C> all_;
};

template <class C>
void run_attention(kernel_context& c) {
  const operand_heads queries = heads_of(c, 0), keys = joined_heads(c, 1, past_key_input),
                      values = joined_heads(c, 2, past_value_input);
  const attention_sizes z(c, queries, keys, values);
  const read_as<C> all_queries(c.input(0)), mask(optional_input(c, 3));
  const joined_rows<C> all_keys(c, 1, past_key_input), all_values(c, 2, past_value_input);
  const C *q = all_queries.data() + queries.start, *k = all_keys.data() + keys.start,
          *v = all_values.data() + values.start;
  write_as<C> y(c.output(0));
  const C scale = static_cast<C>(c.attrs().real("scale", 1));
  const int64_t blocks = (z.q[2] + row_block - 1) / row_block;
  parallel_for(z.q[0] * z.q[1] * blocks, 1, [&](int64_t begin, int64_t end) {
    scratch<C> buffers;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t s0 = i % blocks * row_block, head = i / blocks;
      attend(z, q, k, v, mask.data(), scale, head / z.q[1], head % z.q[1], s0, std::min(row_block, z.q[2] - s0),
             buffers, y.data());
    }
  });
  y.commit();
}

void fused_attention_reference(kernel_context& c) {
  visit_compute(c.input(0).type, [&]<class T>(type_tag<T>) { run_attention<T>(c); });
}

/// Elements of input `i` that a call reads.
int64_t elements_read(const attributes& attrs, size_t i, const shape& dims) {
  if (i > 2 || volume(dims) == 0)
    return volume(dims);
  const int64_t heads = logical<int64_t>(attrs, i, dims)[1];
  return volume(dims) / heads * heads_read(attrs, i, heads).count;
}

/// Two products of S × T × width a head.
op_cost fused_attention_cost(const attributes& attrs, const call_shapes& s) {
  const auto q = logical<int64_t>(attrs, 0, s.inputs.at(0)), v = logical<int64_t>(attrs, 2, s.inputs.at(2));
  const int64_t heads = heads_read(attrs, 0, q[1]).count;
  double keys = static_cast<double>(v[2]),
         bytes = static_cast<double>(bytes_of(s.output_types.at(0), volume(s.outputs.at(0))));
  for (size_t i = 0; i < s.inputs.size(); ++i)
    if (s.input_types[i] != dtype::undefined)
      bytes += static_cast<double>(bytes_of(s.input_types[i], elements_read(attrs, i, s.inputs[i])));
  if (s.inputs.size() > past_value_input && s.input_types[past_value_input] != dtype::undefined)
    keys += static_cast<double>(cache_dims<int64_t>(attrs, s.inputs[past_value_input])[2]);
  const double pairs = static_cast<double>(q[0]) * static_cast<double>(heads) * static_cast<double>(q[2]) * keys;
  return {2 * pairs * static_cast<double>(q[3] + v[3]), bytes};
}

using attention_projection::bias, attention_projection::residual, attention_projection::weights;

bool is_transposed(const attributes& attrs) {
  return attributes_of_part(attrs, attention_projection::product).integer("transB", 0) != 0;
}

void infer_attention_projection(infer_context& c) {
  infer_fused_attention(c);
  if (!is_bshd(c.attrs(), "out_layout"))
    fail(errc::invalid_model, "attention that is projected must have its heads after positions");
  const symbolic_shape heads = c.output_dims(0);
  if (!c.has_input(weights) || c.rank(weights) != 2)
    fail(errc::invalid_model, "the projection of attention takes a matrix of two dims");
  const bool transposed = is_transposed(c.attrs());
  const dim &depth = c.dims(weights)[transposed ? 1 : 0], &columns = c.dims(weights)[transposed ? 0 : 1];
  require_equal(heads[2] * heads[3], depth, "elements of a position and rows of the matrix");
  const attributes own = attributes_of_part(c.attrs(), attention_projection::product);
  if (own.integer("transA", 0) != 0)
    fail(errc::invalid_model, "the heads of projected attention are not transposed");
  parse_activation(own);
  if (c.has_input(bias) && c.rank(bias) != 1)
    fail(errc::invalid_model, "the bias {} of projected attention must be a row", to_string(c.dims(bias)));
  if (c.has_input(bias))
    require_equal(c.dims(bias)[0], columns, "elements of the bias and columns of the matrix");
  c.set_output(0, c.type(0), {heads[0], heads[1], columns});
  if (c.has_input(residual))
    check_residual(c, residual);
}

void attention_projection_reference(kernel_context& c) {
  run_parts(c, parts_of_attention_projection);
}

op_cost attention_projection_cost(const attributes& attrs, const call_shapes& s) {
  op_cost cost = fused_attention_cost(attrs, s);
  const shape &w = s.inputs.at(weights), &z = s.outputs.at(0);
  const int64_t depth = w.size() == 2 ? w[is_transposed(attrs) ? 1 : 0] : 1;
  cost.flops += 2 * static_cast<double>(depth) * static_cast<double>(volume(z));
  return cost;
}

constexpr auto fused_attention_rows = std::to_array<op_def>({
    op_row("Attention", 1, infer_fused_attention, fused_attention_reference,
           {.domain = "troupe",
            .inputs = {3, 6},
            .types = types::floats,
            .cost = fused_attention_cost,
            .axes = fused_attention_axes,
            .mixes = "attends to what is along"}),
    op_row("AttentionProjection", 1, infer_attention_projection, attention_projection_reference,
           {.domain = "troupe",
            .inputs = {3, residual + 1},
            .types = types::floats,
            .cost = attention_projection_cost,
            .axes = attention_projection_axes,
            .mixes = "attends to what is along"}),
});

} // namespace

call_parts parts_of_attention_projection(const attributes& attrs, std::span<const operand> inputs,
                                         std::span<const operand>) {
  using source = part_operand::source;
  const auto input = [&](size_t i) {
    return i < inputs.size() && inputs[i].present() ? part_operand{source::input, i} : part_operand{};
  };
  const auto q = logical<int64_t>(attrs, 0, inputs[0].dims), v = logical<int64_t>(attrs, 2, inputs[2].dims);
  const int64_t heads = heads_read(attrs, 0, q[1]).count;
  call_parts calls;
  calls.between.push_back({.type = inputs[0].type, .dims = {q[0], q[2], heads, v[3]}});
  std::vector<part_operand> operands;
  for (size_t i = 0; i < weights; ++i)
    operands.push_back(input(i));
  add_call(calls, "troupe", "Attention", attrs, std::move(operands), {source::between, 0}, 0);
  calls.parts.back().has_alternatives = true;
  add_call(calls, "troupe", "MatMul", attributes_of_part(attrs, attention_projection::product),
           {{source::between, 0, shape{q[0], q[2], heads * v[3]}}, input(weights), input(bias), input(residual)},
           {source::output, 0}, 1);
  return calls;
}

extern constinit const op_table composed_fused_attention_ops = fused_attention_rows;

} // namespace troupe
