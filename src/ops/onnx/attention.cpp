// Attention: Y = softmax(softcap(Q·Kᵀ·scale) + masks) · V, for each batch element and head.
//
// Q, K, V are [batch, heads, sequence, size], or [batch, sequence, heads · size] with the attributes q_num_heads and
// kv_num_heads; query heads share key heads in runs (grouped-query attention). Past keys and values are put in front.
// Masks: attn_mask (booleans: true takes part; floats are added; a last dim shorter than the keys masks the rest),
// is_causal (query i sees keys ≤ i + past, or with nonpad_kv_seqlen ≤ i + that length − queries), and nonpad_kv_seqlen
// (keys from there on are padding). A query that sees no key gives zeros. Masked keys and values are never multiplied:
// they may hold NaN. qk_matmul_output: mode 0 the scaled product, 1 after softcap, 2 after the masks, 3 after softmax.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/head_layout.hpp"
#include "ops/onnx/require_broadcast.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {
namespace {

constexpr size_t mask_input = 3, nonpad_input = 6;

/// Dims of a call, symbolic or known.
struct attention_dims {
  dim batch, q_heads, kv_heads, queries, keys, past, head, value_head;
  bool flat; // operands are 3-D

  dim total() const { return past + keys; }
};

/// Returns heads and head size of a 3-D or 4-D operand.
std::pair<dim, dim> heads_of(const attributes& attrs, std::span<const dim> x, const char* attribute_name) {
  if (x.size() == 4)
    return {x[1], x[3]};
  if (x.size() != 3)
    fail(errc::invalid_model, "an operand has rank {}, but must have 3 or 4", x.size());
  const int64_t heads = attrs.integer(attribute_name);
  if (heads < 1 || (x[2].is_constant() && x[2].constant() % heads != 0))
    fail(errc::invalid_model, "{} elements cannot be split into {} heads", x[2].to_string(), heads);
  return {heads, floor_div(x[2], heads)};
}

template <class DimsOf, class Has>
attention_dims parse_attention(const attributes& attrs, const DimsOf& dims_of, const Has& has) {
  const symbolic_shape q = dims_of(0), k = dims_of(1), v = dims_of(2);
  if (q.size() != k.size() || q.size() != v.size())
    fail(errc::invalid_model, "Q, K and V have ranks {}, {} and {}", q.size(), k.size(), v.size());
  attention_dims d;
  d.flat = q.size() == 3;
  const auto [q_heads, head] = heads_of(attrs, q, "q_num_heads");
  const auto [kv_heads, key_head] = heads_of(attrs, k, "kv_num_heads");
  const auto [v_heads, value_head] = heads_of(attrs, v, "kv_num_heads");
  const size_t sequence = d.flat ? 1 : 2;
  d.batch = q[0];
  d.q_heads = q_heads;
  d.kv_heads = kv_heads;
  d.queries = q[sequence];
  d.keys = k[sequence];
  d.head = head;
  d.value_head = value_head;
  require_same_dims(std::array<dim, 4>{k[0], key_head, v[0], v_heads}, std::array<dim, 4>{q[0], head, q[0], kv_heads},
                    "batch, head size, batch and heads of K and V");
  require_same(v[sequence], d.keys, "sequence lengths of K and V");
  if (kv_heads.is_constant() && q_heads.is_constant() &&
      (kv_heads.constant() < 1 || q_heads.constant() % kv_heads.constant() != 0))
    fail(errc::invalid_model, "{} query heads cannot share {} key heads", q_heads.constant(), kv_heads.constant());
  if (has(past_key_input) != has(past_value_input))
    fail(errc::invalid_model, "past_key and past_value must both be there, or neither");
  if (has(past_key_input)) {
    const symbolic_shape past = dims_of(past_key_input);
    require_rank(past.size(), 4, "past_key");
    d.past = past[2];
    require_same_dims(past, symbolic_shape{d.batch, kv_heads, d.past, head}, "past_key and K");
    require_same_dims(dims_of(past_value_input), symbolic_shape{d.batch, kv_heads, d.past, value_head},
                      "past_value and V");
  }
  if (has(nonpad_input))
    require_same_dims(dims_of(nonpad_input), std::span(&d.batch, 1), "nonpad_kv_seqlen and batch");
  return d;
}

/// Throws `errc::invalid_model` if a mask does not spread over the scores, as far as numbers tell. A single column is
/// broadcast, as any other dim; a shorter row masks the rest.
void require_mask(std::span<const dim> mask, const attention_dims& d) {
  const dim columns = mask.empty() ? dim(1) : mask.back(), keys = d.total();
  if (columns.is_constant() && !columns.is(1) && keys.is_constant() && columns.constant() > keys.constant())
    fail(errc::invalid_model, "attn_mask has {} columns, but there are {} keys", columns.constant(), keys.constant());
  require_broadcast(mask, symbolic_shape{d.batch, d.q_heads, d.queries, columns}, "attn_mask");
}

void infer_attention(infer_context& c) {
  const attention_dims d = parse_attention(
      c.attrs(), [&](size_t i) { return c.dims(i); }, [&](size_t i) { return c.has_input(i); });
  if (c.has_input(mask_input) && c.has_rank(mask_input))
    require_mask(c.dims(mask_input), d);
  for (const size_t i : {1, 2})
    if (!(types::floats & set_of(c.type(i))))
      fail(errc::invalid_model, "keys and values are floats, not {}", to_string(c.type(i)));
  for (const size_t i : {past_key_input, past_value_input}) {
    // As rewriting to float16 leaves caches that the caller takes back.
    const bool wide = c.has_input(i) && c.type(0) == dtype::float16 && c.type(i) == dtype::float32 &&
                      c.type(past_key_input) == c.type(past_value_input);
    if (c.has_input(i) && c.type(i) != c.type(i - 3) && !wide)
      fail(errc::invalid_model, "past keys and values of {} do not go with those of {}", to_string(c.type(i)),
           to_string(c.type(i - 3)));
  }
  c.set_output(0, c.type(0),
               d.flat ? symbolic_shape{d.batch, d.queries, d.q_heads * d.value_head}
                      : symbolic_shape{d.batch, d.q_heads, d.queries, d.value_head});
  c.set_output(1, c.type(1), {d.batch, d.kv_heads, d.total(), d.head});
  c.set_output(2, c.type(2), {d.batch, d.kv_heads, d.total(), d.value_head});
  c.set_output(3, c.type(0), {d.batch, d.q_heads, d.queries, d.total()});
}

/// Concrete sizes.
struct sizes {
  int64_t batch, q_heads, kv_heads, queries, keys, past, head, value_head;
  bool flat;
  int64_t total() const { return past + keys; }
};

/// Returns where row (batch, head, position) of an operand of `heads` heads of `size` starts.
int64_t row_of(bool flat, int64_t heads, int64_t sequence, int64_t size, int64_t b, int64_t h, int64_t s) {
  return (flat ? (b * sequence + s) * heads + h : (b * heads + h) * sequence + s) * size;
}

/// Returns past and present rows joined: [batch, kv_heads, total, size].
template <class C>
std::vector<C> join(const sizes& s, const read_as<C>& past, const read_as<C>& present, int64_t size) {
  std::vector<C> joined(static_cast<size_t>(s.batch * s.kv_heads * s.total() * size));
  C* to = joined.data();
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.kv_heads; ++h)
      for (int64_t t = 0; t < s.total(); ++t, to += size) {
        const C* from = t < s.past ? past.data() + ((b * s.kv_heads + h) * s.past + t) * size
                                   : present.data() + row_of(s.flat, s.kv_heads, s.keys, size, b, h, t - s.past);
        std::copy_n(from, size, to);
      }
  return joined;
}

/// What is added to the score of (batch, head, query, key): −infinity if it takes no part.
class attention_bias {
public:
  attention_bias(const kernel_context& c, const sizes& s)
      : causal_(c.attrs().integer("is_causal", 0) != 0), limits_(static_cast<size_t>(s.batch), s.total()),
        offset_(static_cast<size_t>(s.batch), s.past) {
    if (c.has_input(nonpad_input)) {
      limits_ = to_int64(c.input(nonpad_input));
      for (size_t b = 0; b < limits_.size(); ++b)
        offset_[b] = limits_[b] - s.queries;
    }
    if (!c.has_input(mask_input))
      return;
    const const_view& mask = c.input(mask_input);
    mask_keys_ = mask.dims.empty() || mask.dims.back() == 1 ? s.total() : mask.dims.back();
    strides_ = broadcast_strides(mask.dims, shape{s.batch, s.q_heads, s.queries, mask_keys_});
    if (mask.type == dtype::boolean)
      flags_ = mask.as<uint8_t>();
    else
      values_.emplace(mask);
  }

  double operator()(int64_t b, int64_t h, int64_t q, int64_t k) const {
    constexpr double masked = -std::numeric_limits<double>::infinity();
    const auto at = static_cast<size_t>(b);
    if (k >= limits_[at] || (causal_ && k > q + offset_[at]))
      return masked;
    if (!flags_ && !values_)
      return 0;
    if (k >= mask_keys_)
      return masked;
    const int64_t element = b * strides_[0] + h * strides_[1] + q * strides_[2] + k * strides_[3];
    return flags_ ? (flags_[element] ? 0 : masked) : (*values_)[element];
  }

private:
  bool causal_;
  std::vector<int64_t> limits_, offset_;
  int64_t mask_keys_ = 0;
  shape strides_;
  const uint8_t* flags_ = nullptr;
  std::optional<read_as<double>> values_;
};

struct score_options {
  double scale, softcap;
  int64_t mode;
};

/// Computes the probabilities of one query into `p` [total]; `qk` (or null) receives what the mode asks for.
template <class C>
void scores(const sizes& s, const score_options& o, const C* query, const C* keys, std::span<const double> bias,
            std::vector<double>& p, C* qk) {
  const double masked = -std::numeric_limits<double>::infinity();
  double top = masked, sum = 0;
  for (int64_t k = 0; k < s.total(); ++k) {
    const double add = bias[static_cast<size_t>(k)];
    double& score = p[static_cast<size_t>(k)];
    score = add;
    if (add == masked && !qk)
      continue;
    C dot = 0;
    for (int64_t i = 0; i < s.head; ++i)
      dot += query[i] * keys[k * s.head + i];
    const double raw = dot * o.scale, capped = o.softcap > 0 ? o.softcap * std::tanh(raw / o.softcap) : raw;
    score = add == masked ? masked : capped + add;
    if (qk && o.mode < 3)
      qk[k] = static_cast<C>(o.mode == 0 ? raw : o.mode == 1 ? capped : score);
    top = std::max(top, score);
  }
  for (double& score : p) {
    score = score == masked ? 0 : std::exp(score - top);
    sum += score;
  }
  for (size_t k = 0; k < p.size(); ++k) {
    p[k] = sum == 0 ? 0 : p[k] / sum;
    if (qk && o.mode == 3)
      qk[k] = static_cast<C>(p[k]);
  }
}

template <class C>
void attend(kernel_context& c, const sizes& s, const score_options& o) {
  const read_as<C> q(c.input(0)), k(c.input(1)), v(c.input(2));
  const read_as<C> past_k(optional_input(c, past_key_input)), past_v(optional_input(c, past_value_input));
  const attention_bias bias(c, s);
  const std::vector<C> keys = join(s, past_k, k, s.head), values = join(s, past_v, v, s.value_head);
  write_as<C> y(c.output(0)), present_k(optional_output(c, 1)), present_v(optional_output(c, 2)),
      qk(optional_output(c, 3));
  parallel_for(s.batch * s.q_heads * s.queries, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> p(static_cast<size_t>(s.total())), added(p);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = i % s.queries, h = i / s.queries % s.q_heads, b = i / s.queries / s.q_heads;
      const int64_t kv = (b * s.kv_heads + h / (s.q_heads / s.kv_heads)) * s.total();
      for (int64_t j = 0; j < s.total(); ++j)
        added[static_cast<size_t>(j)] = bias(b, h, t, j);
      scores(s, o, q.data() + row_of(s.flat, s.q_heads, s.queries, s.head, b, h, t), keys.data() + kv * s.head,
             std::span<const double>(added), p, qk ? qk.data() + i * s.total() : nullptr);
      C* out = y.data() + row_of(s.flat, s.q_heads, s.queries, s.value_head, b, h, t);
      std::fill_n(out, s.value_head, C(0));
      for (int64_t j = 0; j < s.total(); ++j)
        if (const auto weight = static_cast<C>(p[static_cast<size_t>(j)]); weight != 0)
          for (int64_t e = 0; e < s.value_head; ++e)
            out[e] += weight * values[static_cast<size_t>((kv + j) * s.value_head + e)];
    }
  });
  if (present_k)
    std::copy(keys.begin(), keys.end(), present_k.data());
  if (present_v)
    std::copy(values.begin(), values.end(), present_v.data());
  y.commit();
  present_k.commit();
  present_v.commit();
  qk.commit();
}

void attention(kernel_context& c) {
  const attention_dims d = parse_attention(
      c.attrs(), [&](size_t i) { return to_symbolic(c.input(i).dims); }, [&](size_t i) { return c.has_input(i); });
  if (c.has_input(mask_input))
    require_mask(to_symbolic(c.input(mask_input).dims), d);
  const sizes s{d.batch.constant(),   d.q_heads.constant(),    d.kv_heads.constant(),
                d.queries.constant(), d.keys.constant(),       d.past.constant(),
                d.head.constant(),    d.value_head.constant(), d.flat};
  const double usual = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, s.head)));
  const score_options o{c.attrs().has("scale") ? c.attrs().real("scale") : usual, c.attrs().real("softcap", 0.f),
                        c.attrs().integer("qk_matmul_output_mode", 0)};
  if (o.mode < 0 || o.mode > 3)
    fail(errc::invalid_model, "qk_matmul_output_mode is {}, not 0 to 3", o.mode);
  visit_compute(c.input(0).type, [&]<class T>(type_tag<T>) { attend<T>(c, s, o); });
}

/// Two operations for each query, key and element of a head, twice.
op_cost attention_cost(const attributes&, const call_shapes& call) {
  const shape& k = call.inputs[1];
  const bool flat = k.size() == 3;
  double keys = static_cast<double>(k[flat ? 1 : 2]);
  if (call.inputs.size() > past_key_input && call.inputs[past_key_input].size() == 4)
    keys += static_cast<double>(call.inputs[past_key_input][2]);
  return {2 * keys * static_cast<double>(volume(call.inputs[0]) + volume(call.outputs[0])), operand_bytes(call)};
}

/// Batches; queries, unless which keys they see depends on their position; and heads of 4-D operands: query heads in
/// groups that share those of keys and values.
void attention_axes(call_axes& a) {
  const infer_context& c = a.call();
  const size_t queries = c.rank(0) == 4 ? 2 : 1;
  if (c.attrs().integer("is_causal", 0) == 0)
    a.map({{0, queries}, a.fit(mask_input, 2, 4)}, {{0, queries}, {3, 2}});
  a.map(
      {{0, 0}, {1, 0}, {2, 0}, a.fit(mask_input, 0, 4), {past_key_input, 0}, {past_value_input, 0}, {nonpad_input, 0}},
      0);
  if (c.rank(0) != 4)
    return;
  const dim group = floor_div(c.dims(0)[1], c.dims(1)[1]);
  if (!(group * c.dims(1)[1] == c.dims(0)[1]))
    return;
  auto mask = a.fit(mask_input, 1, 4);
  mask.unit = group;
  a.map({{0, 1, group}, {1, 1}, {2, 1}, mask, {past_key_input, 1}, {past_value_input, 1}},
        {{0, 1, group}, {1, 1}, {2, 1}, {3, 1, group}});
}

constexpr op_def attention_row(int64_t since, uint8_t most_inputs) {
  return op_row("Attention", since, infer_attention, attention,
                {.inputs = {3, most_inputs},
                 .max_outputs = 4,
                 .types = types::floats,
                 .cost = attention_cost,
                 .axes = attention_axes,
                 .mixes = "attends to what is along"});
}

constexpr auto attention_rows = std::to_array<op_def>({attention_row(23, 6), attention_row(24, 7)});

} // namespace

extern constinit const op_table onnx_attention_ops = attention_rows;

} // namespace troupe
