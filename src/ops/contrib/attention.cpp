// Attention, MultiHeadAttention, QAttention and RotaryEmbedding of com.microsoft, as ai.onnx's operators.
//
//   Attention: Q, K, V = parts of input · weights + bias; QAttention: the same of quantised operands
//   MultiHeadAttention: Q, K, V with a bias each; K and V may be [batch, heads, keys, size] as they are kept
// Padding is a mask of 1 (takes part) and 0 (gets mask_filter_value added) by key, by query and key, or [batch, 1,
// places, places] for those and more of both, or the number of keys of each batch element: alone, before where they
// begin, [2 · batch], or before sums that kernels of GPUs want, [3 · batch + 2]. attention_bias is added too.
// unidirectional hides later keys.
#include "ops/contrib/attention.hpp"

#include <limits>

namespace troupe {

value_id split_heads(expansion& e, value_id v, int64_t heads) {
  const symbolic_shape d = e.dims(v);
  if (d.size() == 4)
    return v;
  if (d.size() != 3 || heads < 1 || (d[2].is_constant() && d[2].constant() % heads != 0))
    fail(errc::invalid_model, "an operand {} cannot be split into {} heads", to_string(d), heads);
  return e.transpose(e.reshape(v, {d[0], d[1], heads, floor_div(d[2], heads)}), {0, 2, 1, 3});
}

value_id join_heads(expansion& e, value_id v) {
  const symbolic_shape d = e.dims(v, 4);
  return e.reshape(e.transpose(v, {0, 2, 1, 3}), {d[0], d[2], d[1] * d[3]});
}

grouped_operands::grouped_operands(expansion& e)
    : heads(e.attrs().integer("num_heads")), kv_heads(e.attrs().integer("kv_num_heads")), q(e.input(0)), k(e.input(1)),
      v(e.input(2)) {
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    fail(errc::invalid_model, "{} query heads cannot share {} key heads", heads, kv_heads);
  if (e.has_input(1) != e.has_input(2))
    fail(errc::invalid_model, "key and value must both be there, or neither");
  if (e.has_input(1))
    return;
  const dim width = e.dims(q, 3)[2];
  const int64_t all = heads + 2 * kv_heads;
  if (width.is_constant() && width.constant() % all != 0)
    fail(errc::invalid_model, "{} elements are not those of {} heads", width.to_string(), all);
  const dim size = floor_div(width, all);
  const auto parts = split_last(e, q, {heads * size, kv_heads * size, kv_heads * size});
  q = parts[0];
  k = parts[1];
  v = parts[2];
}

void grouped_operands::rotate(expansion& e, size_t cosine, size_t sine, value_id ids) {
  if (!e.has_input(cosine) || !e.has_input(sine))
    fail(errc::invalid_model, "rotary embedding needs the caches of cosines and sines");
  auto attrs = attributes_of({{"interleaved", e.attrs().integer("rotary_interleaved", 0)}});
  if (const dim columns = e.dims(e.input(cosine), 2)[1]; columns.is_constant())
    attrs.set("rotary_embedding_dim", 2 * columns.constant());
  for (const auto& [turned, count] : {std::pair(&q, heads), {&k, kv_heads}}) {
    if (e.dims(*turned, 3)[1].is(0))
      continue;
    attrs.set("num_heads", count);
    *turned = e.add("RotaryEmbedding", {*turned, e.input(cosine), e.input(sine), ids}, attrs);
  }
}

void set_scale(const expansion& e, attributes& attrs) {
  if (const float scale = e.attrs().real("scale", 0); scale != 0)
    attrs.set("scale", scale);
}

int64_t heads_of(const expansion& e) {
  const int64_t heads = e.attrs().integer("num_heads");
  if (heads < 1)
    fail(errc::invalid_model, "{} heads", heads);
  return heads;
}

namespace {

/// Returns what of a padding mask's elements counts: the keys of each batch element from a first to an end, as
/// booleans.
value_id keys_within(expansion& e, value_id ends, const dim& batch, const dim& total) {
  const symbolic_shape d = e.dims(ends);
  const value_id keys = e.range(total);
  value_id wide = e.cast(ends, dtype::int64);
  const bool has_sums = d[0] == batch + batch + batch + dim(2);
  if (has_sums)
    wide = e.add("Slice", {wide, e.known({0}), e.known({batch}), e.known({0})});
  if (has_sums || d[0] == batch)
    return e.add("Less", {keys, e.reshape(wide, {batch, 1})});
  if (!(d[0] == batch + batch))
    fail(errc::unsupported, "a mask of {} for a batch of {} is not supported", to_string(d), batch.to_string());
  const auto halves =
      e.add_all("Split", {e.reshape(wide, {2, batch, 1})}, 2, attributes_of({{"num_outputs", int64_t{2}}}));
  const value_id end = e.reshape(halves[0], {batch, 1}), first = e.reshape(halves[1], {batch, 1});
  return e.add("And", {e.add("Less", {keys, end}), e.add("GreaterOrEqual", {keys, first})});
}

/// How many elements the batch, the queries and all keys have.
struct attention_sizes {
  dim batch, queries, total;
};

/// Returns the padding as a number to add to the scores, [batch, 1, 1 or queries, keys].
value_id padding(expansion& e, value_id mask, dtype type, const attention_sizes& s) {
  value_id takes_part = no_value;
  const size_t rank = e.rank(mask);
  if (rank == 1)
    takes_part = keys_within(e, mask, s.batch, s.total);
  else if (rank >= 2 && rank <= 4)
    takes_part = e.add("Greater", {mask, e.scalar(e.type(mask), 0)});
  else
    fail(errc::unsupported, "a mask of rank {} is not supported", rank);
  if (rank == 4) // of more queries and keys than there are: those of the last queries
    takes_part =
        e.add("Slice", {takes_part, e.known({s.total - s.queries, 0}), e.known({s.total, s.total}), e.known({2, 3})});
  const float filter = e.attrs().real("mask_filter_value", -10000.f);
  const value_id added = e.add("Where", {takes_part, e.scalar(type, 0), e.scalar(type, filter)});
  return rank == 4 ? added : e.add("Unsqueeze", {added, rank == 3 ? e.known({1}) : e.known({1, 2})});
}

/// Returns what hides the keys after each query, [queries, keys], for other numbers of new keys than of queries. As in
/// ONNX Runtime the last query sees all keys, so a query alone does.
value_id later_keys(expansion& e, const attention_sizes& s, const dim& past, dtype type) {
  const value_id queries = e.reshape(e.range(s.queries), {s.queries, 1});
  const value_id is_later = e.add("Greater", {e.range(s.total), e.add("Add", {queries, e.known({past})})});
  const value_id is_hidden = e.add("And", {is_later, e.add("Less", {queries, e.known({s.queries - 1})})});
  return e.add("Where", {is_hidden, e.scalar(type, -std::numeric_limits<double>::infinity()), e.scalar(type, 0)});
}

/// Returns what is added to the scores, no_value if nothing is. `hidden`: what hides later keys, or no_value.
value_id added_to_scores(expansion& e, const attention_changes& changes, value_id hidden, dtype type,
                         const attention_sizes& sizes) {
  const value_id padded = changes.mask == no_value ? no_value : padding(e, changes.mask, type, sizes);
  value_id sum = no_value;
  for (const value_id part : {changes.added, padded, hidden})
    if (part != no_value)
      sum = sum == no_value ? part : e.add("Add", {sum, part});
  return sum;
}

} // namespace

std::vector<value_id> attend(expansion& e, attention_operands o, const attention_changes& changes, size_t outputs) {
  const int64_t heads = heads_of(e);
  if ((o.past_key == no_value) != (o.past_value == no_value))
    fail(errc::invalid_model, "past key and value must both be there, or neither");
  const bool flat = e.rank(o.q) == 3 && e.rank(o.k) == 3 && e.rank(o.v) == 3;
  if (!flat)
    for (value_id* v : {&o.q, &o.k, &o.v})
      *v = split_heads(e, *v, heads);
  const dim batch = e.dims(o.q)[0], queries = e.dims(o.q)[flat ? 1 : 2];
  const dim keys = e.dims(o.k)[flat ? 1 : 2], past = o.past_key == no_value ? dim(0) : e.dims(o.past_key, 4)[2];
  const attention_sizes sizes{batch, queries, past + keys};
  const bool hides = e.attrs().integer("unidirectional", 0) != 0, is_causal = hides && keys == queries;
  auto attrs = attributes_of({{"is_causal", int64_t{is_causal}}});
  if (flat) {
    attrs.set("q_num_heads", heads);
    attrs.set("kv_num_heads", heads);
  }
  if (outputs > 3)
    attrs.set("qk_matmul_output_mode", int64_t{2});
  set_scale(e, attrs);
  const value_id hidden = hides && !is_causal ? later_keys(e, sizes, past, e.type(o.q)) : no_value;
  const value_id added = added_to_scores(e, changes, hidden, e.type(o.q), sizes);
  auto made = e.add_all("Attention", {o.q, o.k, o.v, added, o.past_key, o.past_value}, outputs, std::move(attrs));
  if (!flat)
    made[0] = join_heads(e, made[0]);
  return made;
}

std::vector<value_id> split_last(expansion& e, value_id v, const symbolic_shape& sizes) {
  return e.add_all("Split", {v, e.known(sizes)}, sizes.size(), attributes_of({{"axis", int64_t{-1}}}));
}

namespace {

int64_t constant_dim(const dim& d, const char* what) {
  if (!d.is_constant())
    fail(errc::unsupported, "{} must be known, not {}", what, d.to_string());
  return d.constant();
}

} // namespace

void add_bias(expansion& e, attention_operands& o, size_t bias) {
  std::vector<value_id*> to{&o.q};
  std::vector<int64_t> sizes{constant_dim(e.dims(o.q, 3)[2], "the hidden size")};
  const bool kept = e.rank(o.k) == 4;
  for (value_id* v : {&o.k, &o.v}) {
    const symbolic_shape d = e.dims(*v, kept ? 4 : 3);
    sizes.push_back(constant_dim(kept ? d[1] * d[3] : d[2], "the hidden size"));
    if (!kept)
      to.push_back(v);
  }
  const auto parts = split_last(e, e.input(bias), to_symbolic(sizes));
  for (size_t i = 0; i < to.size(); ++i)
    *to[i] = e.add("Add", {*to[i], parts[i]});
}

namespace {

/// Attention of a projection [batch, sequence, hidden · 3]; past and present are one value, [2, batch, heads, …].
void attend_projection(expansion& e, value_id projection, size_t mask, size_t past, size_t bias) {
  if (e.attrs().integer("do_rotary", 0) != 0 || e.attrs().integer("past_present_share_buffer", 0) != 0)
    fail(errc::unsupported, "rotary embedding and shared buffers inside of it are not supported");
  const int64_t all = constant_dim(e.dims(projection, 3)[2], "the size of the projection");
  auto sizes = e.attrs().integers("qkv_hidden_sizes", {all / 3, all / 3, all / 3});
  if (sizes.size() != 3)
    fail(errc::invalid_model, "'qkv_hidden_sizes' has {} numbers instead of 3", sizes.size());
  const auto parts = split_last(e, projection, to_symbolic(sizes));
  attention_operands o{parts[0], parts[1], parts[2]};
  if (e.has_input(past)) {
    const symbolic_shape d = e.dims(e.input(past), 5);
    const auto halves = e.add_all("Split", {e.input(past)}, 2, attributes_of({{"num_outputs", int64_t{2}}}));
    o.past_key = e.reshape(halves[0], {d[1], d[2], d[3], d[4]});
    o.past_value = e.reshape(halves[1], {d[1], d[2], d[3], d[4]});
  }
  const auto made = attend(e, o, {e.input(mask), e.input(bias)}, e.has_output(1) ? 3 : 1);
  e.set_output(0, made[0]);
  if (e.has_output(1))
    e.set_output(1, e.add("Concat",
                          {e.add("Unsqueeze", {made[1], e.known({0})}), e.add("Unsqueeze", {made[2], e.known({0})})},
                          attributes_of({{"axis", int64_t{0}}})));
}

void expand_attention(expansion& e) {
  attend_projection(e, e.plus_input(e.add("MatMul", {e.input(0), e.input(1)}), 2), 3, 4, 5);
}

void expand_qattention(expansion& e) {
  const value_id projection =
      e.add("MatMulIntegerToFloat",
            {e.input(0), e.input(1), e.input(3), e.input(4), e.input(6), e.input(7), e.input(2)}, {}, microsoft);
  attend_projection(e, projection, 5, 8, 9);
}

/// Q, K and V from one operand [batch, sequence, heads, 3, size], or K and V from one of 2.
std::vector<value_id> unpack(expansion& e, value_id v, int64_t count) {
  const symbolic_shape d = e.dims(v);
  if (d.size() != 5 || !d[3].is(count))
    fail(errc::invalid_model, "a packed operand {} is not of {} parts", to_string(d), count);
  auto parts = e.add_all("Split", {v}, static_cast<size_t>(count),
                         attributes_of({{"axis", int64_t{3}}, {"num_outputs", count}}));
  for (value_id& part : parts)
    part = e.reshape(part, {d[0], d[1], d[2] * d[4]});
  return parts;
}

attention_operands unpack_operands(expansion& e) {
  if (!e.has_input(1)) {
    const auto parts = unpack(e, e.input(0), 3);
    return {parts[0], parts[1], parts[2]};
  }
  if (e.has_input(2))
    return {e.input(0), e.input(1), e.input(2)};
  const auto parts = unpack(e, e.input(1), 2);
  return {e.input(0), parts[0], parts[1]};
}

void expand_multi_head(expansion& e) {
  if (e.has_input(8) || e.has_input(9))
    fail(errc::unsupported,
         "caches shared by several calls (past_sequence_length, cache_indirection) are not supported");
  attention_operands o = unpack_operands(e);
  if (e.has_input(3))
    add_bias(e, o, 3);
  o.past_key = e.input(6);
  o.past_value = e.input(7);
  const size_t wanted = e.has_output(3) ? 4 : e.has_output(1) || e.has_output(2) ? 3 : 1;
  const auto made = attend(e, o, {e.input(4), e.input(5)}, wanted);
  for (size_t i = 0; i < made.size(); ++i)
    e.set_output(i, made[i]);
}

/// Returns the positions [batch, sequence] of an operand: given so, or as the first one's.
value_id position_ids(expansion& e, const dim& batch, const dim& sequence) {
  const value_id given = e.input(1);
  if (e.rank(given) == 2)
    return given;
  const value_id row = e.add("Add", {e.reshape(given, {1, 1}), e.range(sequence)});
  return e.add("Expand", {row, e.known({batch, sequence})});
}

void expand_rotary(expansion& e) {
  if (e.attrs().real("scale", 1) != 1)
    fail(errc::unsupported, "a scale other than 1 is not supported");
  if (e.attrs().integer("is_packed_batching", 0) != 0)
    fail(errc::unsupported, "packed batching is not supported");
  const symbolic_shape x = e.dims(e.input(0)), cache = e.dims(e.input(2));
  if ((x.size() != 3 && x.size() != 4) || cache.size() != 2)
    fail(errc::invalid_model, "operand {} or cache {} has the wrong rank", to_string(x), to_string(cache));
  const bool flat = x.size() == 3;
  int64_t heads = e.attrs().integer("num_heads", 0);
  if (flat && heads == 0)
    heads = constant_dim(floor_div(x[2], cache[1] + cache[1]), "the number of heads");
  auto attrs = attributes_of({{"interleaved", e.attrs().integer("interleaved", 0)},
                              {"rotary_embedding_dim", e.attrs().integer("rotary_embedding_dim", 0)}});
  if (flat)
    attrs.set("num_heads", heads);
  const value_id ids = position_ids(e, x[0], x[flat ? 1 : 2]);
  e.set_output(0, e.add("RotaryEmbedding", {e.input(0), e.input(2), e.input(3), ids}, std::move(attrs)));
}

constexpr auto contrib_attention_rows = std::to_array<op_def>({
    composition_row("Attention", 1, expand_attention,
                    {.domain = microsoft, .inputs = {2, 6}, .max_outputs = 2, .types = types::floats}),
    composition_row("MultiHeadAttention", 1, expand_multi_head,
                    {.domain = microsoft, .inputs = {1, 10}, .max_outputs = 4, .types = types::floats}),
    composition_row(
        "QAttention", 1, expand_qattention,
        {.domain = microsoft, .inputs = {5, 9}, .max_outputs = 2, .types = set_of(dtype::int8, dtype::uint8)}),
    composition_row("RotaryEmbedding", 1, expand_rotary,
                    {.domain = microsoft, .inputs = {4, 4}, .types = types::floats}),
});

} // namespace

extern constinit const op_table contrib_attention_ops = contrib_attention_rows;

} // namespace troupe
