// GroupQueryAttention of com.microsoft: rotary embedding, a cache of keys and values, and causal attention whose query
// heads share key heads.
//
// length = seqlens_k + 1 keys of each batch element count; its new keys come after what was there before, `start` =
// max(0, length − S) keys. The cache has max(past, total_sequence_length) places, 0 after the new keys; query i of S
// sees the keys k ≤ start + i that count, of these the last local_window_size. Where nothing is past, or a batch has
// one element whose cache is full (its length is then total_sequence_length), every start is the same: attention joins
// past and new keys itself. Otherwise TensorScatter writes the new keys where they belong, and a mask says who sees
// whom. A cache of a window's size (sliding_window_cache) has C places for the last keys. After n keys it holds the
// last kept(n): all of them up to C; then it was cut to a window of W each time that it was full, W + (n − C − 1) mod
// (C − W + 1). Keys and values of no rows mean that the cache has all keys already, those of the queries too (layers
// that share a cache). A cache of codes (grouped_cache.hpp) holds new rows as codes too, and attention sees what the
// codes stand for. A head's sink (head_sink, or 0 with smooth_softmax) is the score of one more key, whose value is 0.
// Output 3 has the scores of each query and key with qk_output 1, their softmax with 2; 0 where the query does not see
// the key. With norms (inputs 14 and 15) queries and keys are RMS-normalised head by head before anything else.
#include "ops/contrib/attention.hpp"
#include "ops/contrib/grouped_cache.hpp"

#include <limits>

namespace troupe {
namespace {

constexpr size_t gqa_past_key = 3, gqa_past_value = 4, gqa_lengths = 5, gqa_total = 6, gqa_cosine = 7, gqa_sine = 8,
                 gqa_positions = 9, gqa_bias = 10, gqa_sink = 11, gqa_key_scale = 12, gqa_value_scale = 13,
                 gqa_query_norm = 14, gqa_key_norm = 15;

/// Throws unless the attributes fit each other and the operands that are there.
void check_form(const expansion& e) {
  const attributes& attrs = e.attrs();
  const int64_t scores = attrs.integer("qk_output", 0), window = attrs.integer("local_window_size", -1);
  if (scores < 0 || scores > 2 || (scores != 0) != e.has_output(3))
    fail(errc::invalid_model, "attribute 'qk_output' is {}, output 3 {}", scores,
         e.has_output(3) ? "there" : "left out");
  if (e.has_input(gqa_query_norm) != e.has_input(gqa_key_norm))
    fail(errc::invalid_model, "the norms of queries and keys must both be there, or neither");
  if (e.has_input(gqa_past_key) != e.has_input(gqa_past_value))
    fail(errc::invalid_model, "past key and value must both be there, or neither");
  if (window >= 0 && attrs.integer("causal", 1) == 0)
    fail(errc::invalid_model, "attribute 'local_window_size' is {}, but must be -1 if 'causal' is 0", window);
  const bool shares = e.has_input(1) && e.dims(e.input(1), 3)[1].is(0);
  if (shares && !e.has_input(gqa_past_key))
    fail(errc::invalid_model, "keys {} need past keys", to_string(e.dims(e.input(1))));
  if (attrs.integer("sliding_window_cache", 0) == 0)
    return;
  if (shares)
    fail(errc::unsupported, "keys of no rows are not supported with 'sliding_window_cache'");
  if (window < 1 || !e.has_input(gqa_past_key))
    fail(errc::invalid_model, "'sliding_window_cache' needs a positive 'local_window_size', and past key and value");
  if (scores != 0 || e.has_input(gqa_bias))
    fail(errc::unsupported, "scores and attention_bias are not supported with 'sliding_window_cache'");
}

/// How many keys of each batch element count, and where its new ones are: among all keys so far, and in the cache.
class key_places {
public:
  /// `queries`: [batch, sequence, heads · size].
  key_places(expansion& e, const symbolic_shape& queries)
      : batch(queries[0]), queries(queries[1]),
        past(e.has_input(gqa_past_key) ? e.dims(e.input(gqa_past_key), 4)[2] : dim(0)), e_(e) {}

  int64_t window() const { return e_.attrs().integer("local_window_size", -1); }
  bool slides() const { return e_.attrs().integer("sliding_window_cache", 0) != 0; }

  /// Returns how many keys of each batch element count, [batch].
  value_id lengths() {
    if (lengths_ == no_value)
      lengths_ = e_.add("Add", {e_.reshape(e_.cast(e_.input(gqa_lengths), dtype::int64), {batch}), number(1)});
    return lengths_;
  }

  /// Returns numbers [batch] so that they broadcast to what a batch has.
  value_id by_batch(value_id numbers) { return e_.reshape(numbers, {batch, 1, 1, 1}); }

  value_id number(int64_t x) { return e_.scalar(dtype::int64, static_cast<double>(x)); }

  /// Returns where the new keys of each batch element begin, [batch].
  value_id starts() {
    if (starts_ == no_value)
      starts_ = e_.add("Max", {e_.add("Sub", {lengths(), e_.known_scalar(queries)}), number(0)});
    return starts_;
  }

  /// Returns how many of `count` keys a cache of a window's size keeps, [batch].
  value_id kept(value_id count) {
    const value_id beyond = e_.add("Sub", {count, e_.known_scalar(past + dim(1))});
    const value_id turn =
        e_.add("Mod", {e_.add("Max", {beyond, number(0)}), e_.known_scalar(past - dim(window() - 1))});
    return e_.add("Where",
                  {e_.add("GreaterOrEqual", {beyond, number(0)}), e_.add("Add", {turn, number(window())}), count});
  }

  /// Returns where the new keys are in the cache, [batch].
  value_id first_rows_at() { return slides() ? kept(starts()) : starts(); }

  /// Returns the place of each query among all keys so far, [batch, queries].
  value_id places() { return places_after(starts()); }
  value_id places_after(value_id first) { return e_.add("Add", {e_.reshape(first, {batch, 1}), e_.range(queries)}); }

  const dim batch, queries, past;

private:
  expansion& e_;
  value_id lengths_ = no_value, starts_ = no_value;
};

/// One call taken apart, step by step.
class grouped_attention {
public:
  explicit grouped_attention(expansion& e)
      : e_(e), o_(e), key_codes_(e, "k_quant_type", gqa_key_scale, gqa_past_key, o_.kv_heads, head_size()),
        value_codes_(e, "v_quant_type", gqa_value_scale, gqa_past_value, o_.kv_heads, head_size()),
        at_(e, e.dims(o_.q, 3)) {
    const std::vector<dim> total = e.call().require_known(gqa_total);
    if (total.size() != 1)
      fail(errc::invalid_model, "total_sequence_length has {} elements instead of one", total.size());
    total_ = total[0];
    if (at_.slides() && at_.past.is_constant() && at_.past.constant() < at_.window())
      fail(errc::invalid_model, "a cache of {} places is less than a window of {}", at_.past.to_string(), at_.window());
  }

  void expand() {
    const bool has_past = e_.has_input(gqa_past_key), real = key_codes_.real() && value_codes_.real();
    same_starts_ = !has_past || (!at_.slides() && !shares() && at_.batch.is(1) && total_ == at_.past + at_.queries);
    if (e_.has_input(gqa_query_norm)) {
      o_.q = normalised(o_.q, o_.heads, gqa_query_norm);
      o_.k = normalised(o_.k, o_.kv_heads, gqa_key_norm);
    }
    if (e_.attrs().integer("do_rotary", 0) != 0)
      o_.rotate(e_, gqa_cosine, gqa_sine, e_.has_input(gqa_positions) ? e_.input(gqa_positions) : at_.places());
    const bool plain = same_starts_ && real && causal() && !has_sink() && at_.window() < 0;
    plain ? attend_plainly() : attend_with_mask();
  }

private:
  bool has_sink() const { return e_.has_input(gqa_sink) || e_.attrs().integer("smooth_softmax", 0) == 1; }
  bool causal() const { return e_.attrs().integer("causal", 1) != 0; }
  bool shares() const { return e_.dims(o_.k)[1].is(0); }
  dim head_size() const { return floor_div(e_.dims(o_.q, 3)[2], o_.heads); }

  /// Returns an operand [batch, sequence, heads · size] after the RMS norm of each head.
  value_id normalised(value_id v, int64_t heads, size_t scale) {
    const symbolic_shape d = e_.dims(v, 3);
    const value_id split = e_.reshape(v, {d[0], d[1], heads, floor_div(d[2], heads)});
    const float epsilon = e_.attrs().real("qk_norm_epsilon", 1e-6f);
    const auto attrs = attributes_of({{"axis", int64_t{-1}}, {"epsilon", epsilon}});
    return e_.reshape(e_.add("RMSNormalization", {split, e_.input(scale)}, attrs), d);
  }

  bool wants_scores() const { return e_.has_output(3); }

  /// Makes scores [batch, heads, queries, keys], or their softmax, output 3.
  void set_scores(value_id scores, const dim& keys) {
    const value_id shown = e_.add("Where", {visible(keys), scores, e_.scalar(e_.type(scores), 0)});
    e_.set_output(3,
                  keys == total_ ? shown : e_.add("Slice", {shown, e_.known({0}), e_.known({total_}), e_.known({3})}));
  }

  attributes attention_attributes() {
    auto attrs = attributes_of({{"softcap", e_.attrs().real("softcap", 0)}});
    if (wants_scores()) // after the masks, or after softmax
      attrs.set("qk_matmul_output_mode", e_.attrs().integer("qk_output") + 1);
    set_scale(e_, attrs);
    return attrs;
  }

  /// Returns what is added to the scores, or which keys take part: of a prompt those that count.
  value_id plain_mask() {
    if (e_.has_input(gqa_past_key) || at_.queries.is(1))
      return e_.input(gqa_bias);
    const value_id counted = e_.add("Less", {e_.range(at_.queries), at_.by_batch(at_.lengths())});
    return e_.has_input(gqa_bias) ? added(counted) : counted;
  }

  /// Returns what is added to the scores where `mask` is the keys that take part.
  value_id added(value_id mask) {
    const dtype type = e_.type(o_.q);
    const value_id none = e_.scalar(type, -std::numeric_limits<double>::infinity());
    return e_.add("Where", {mask, e_.has_input(gqa_bias) ? e_.input(gqa_bias) : e_.scalar(type, 0), none});
  }

  void attend_plainly() {
    attributes attrs = attention_attributes();
    attrs.set("is_causal", int64_t{1});
    attrs.set("q_num_heads", o_.heads);
    attrs.set("kv_num_heads", o_.kv_heads);
    const auto made =
        e_.add_all("Attention", {o_.q, o_.k, o_.v, plain_mask(), e_.input(gqa_past_key), e_.input(gqa_past_value)},
                   wants_scores() ? 4 : 3, std::move(attrs));
    for (size_t i = 0; i < 3; ++i)
      e_.set_output(i, made[i]);
    if (wants_scores())
      set_scores(made[3], total_);
  }

  /// Returns the cache after the new rows, [batch, heads, sequence, size], were written.
  value_id cached(value_id past, value_id rows) {
    if (past == no_value)
      return rows;
    if (same_starts_)
      return e_.add("Concat", {past, rows}, attributes_of({{"axis", int64_t{2}}}));
    if (shares()) {
      const value_id counted =
          e_.add("Less", {e_.reshape(e_.range(at_.past), {1, 1, at_.past, 1}), at_.by_batch(at_.lengths())});
      return e_.add("Where", {counted, past, e_.scalar(e_.type(past), 0)});
    }
    // One place more than a sliding cache needs, for what it has not.
    const dim places = at_.slides() ? at_.past + at_.queries + dim(1) : max(at_.past, total_);
    if (!(places == at_.past)) {
      const symbolic_shape d = e_.dims(past, 4);
      const value_id more =
          e_.add("Expand", {e_.scalar(e_.type(past), 0), e_.known({d[0], d[1], places - at_.past, d[3]})});
      past = e_.add("Concat", {past, more}, attributes_of({{"axis", int64_t{2}}}));
    }
    return e_.add("TensorScatter", {past, rows, at_.first_rows_at()}, attributes_of({{"clear_after", int64_t{1}}}));
  }

  /// Returns what a sliding cache keeps for the next step of all rows, in its first places.
  value_id slid(value_id rows) {
    const symbolic_shape d = e_.dims(rows, 4);
    const value_id ends = e_.add("Add", {at_.first_rows_at(), e_.known_scalar(at_.queries)});
    const value_id first = e_.add("Sub", {ends, at_.kept(at_.lengths())});
    const value_id moved = e_.add("Add", {e_.range(at_.past), e_.reshape(first, {at_.batch, 1})});
    const value_id from =
        e_.reshape(e_.add("Min", {moved, e_.known_scalar(d[2] - dim(1))}), {at_.batch, 1, at_.past, 1});
    return e_.add("GatherElements", {rows, e_.add("Expand", {from, e_.known({d[0], d[1], at_.past, d[3]})})},
                  attributes_of({{"axis", int64_t{2}}}));
  }

  /// Returns who sees whom, [batch, 1, queries, keys].
  value_id visible(const dim& keys) {
    const value_id key = e_.range(keys);
    if (!causal())
      return e_.add("Less", {key, at_.by_batch(at_.lengths())});
    const value_id query = e_.reshape(at_.places_after(at_.first_rows_at()), {at_.batch, 1, at_.queries, 1});
    const value_id last = last_keys(query), past = e_.add("LessOrEqual", {key, last});
    if (at_.window() < 0)
      return past;
    const value_id first = e_.add("Sub", {windows_end_at_queries() ? query : last, at_.number(at_.window())});
    return e_.add("And", {past, e_.add("Greater", {key, first})});
  }

  /// Whether the window of a padded query ends at its place, not at the last key that counts: ONNX Runtime has a kernel
  /// of its own for such calls.
  bool windows_end_at_queries() const {
    return e_.type(o_.q) == dtype::float32 && e_.attrs().real("softcap", 0) == 0 && !has_sink() && !wants_scores();
  }

  /// Returns the last key that each query sees; keys that only pad a prompt do not count.
  value_id last_keys(value_id query) {
    if (at_.queries.is(1) || at_.slides())
      return query;
    const value_id last = e_.add("Sub", {at_.lengths(), at_.number(1)});
    return e_.add("Min", {query, at_.by_batch(last)});
  }

  /// Returns the first `keys` rows of a cache of more.
  value_id first_rows(value_id cache, const dim& keys) {
    return e_.add("Slice", {cache, e_.known({0}), e_.known({keys}), e_.known({2})});
  }

  /// Puts a key in front of all others whose score is the head's sink.
  void add_sink(value_id& keys, value_id& values, value_id& mask, const dim& count) {
    const dtype type = e_.type(o_.q);
    const auto in_front = [&](value_id first, value_id rest, int64_t axis) {
      return e_.add("Concat", {first, rest}, attributes_of({{"axis", axis}}));
    };
    for (value_id* v : {&keys, &values}) {
      const symbolic_shape d = e_.dims(*v, 4);
      *v = in_front(e_.add("Expand", {e_.scalar(type, 0), e_.known({d[0], d[1], 1, d[3]})}), *v, 2);
    }
    const value_id score =
        e_.has_input(gqa_sink) ? e_.reshape(e_.input(gqa_sink), {1, o_.heads, 1, 1}) : e_.scalar(type, 0);
    const value_id all = e_.add("Expand", {mask, e_.known({at_.batch, o_.heads, at_.queries, count})});
    mask = in_front(e_.add("Expand", {score, e_.known({at_.batch, o_.heads, at_.queries, 1})}), all, 3);
  }

  void attend_with_mask() {
    const dtype type = e_.type(o_.q);
    value_id keys = cached(e_.input(gqa_past_key), key_codes_.coded(split_heads(e_, o_.k, o_.kv_heads)));
    value_id values = cached(e_.input(gqa_past_value), value_codes_.coded(split_heads(e_, o_.v, o_.kv_heads)));
    e_.set_output(1, at_.slides() ? slid(keys) : keys);
    e_.set_output(2, at_.slides() ? slid(values) : values);
    dim count = e_.dims(keys, 4)[2];
    if (e_.has_input(gqa_bias) && !(count == total_)) {
      keys = first_rows(keys, total_);
      values = first_rows(values, total_);
      count = total_;
    }
    keys = key_codes_.decoded(keys, type);
    values = value_codes_.decoded(values, type);
    value_id mask = visible(count);
    if (e_.has_input(gqa_bias) || has_sink())
      mask = added(mask);
    if (has_sink())
      add_sink(keys, values, mask, count);
    const auto made = e_.add_all("Attention", {split_heads(e_, o_.q, o_.heads), keys, values, mask},
                                 wants_scores() ? 4 : 1, attention_attributes());
    e_.set_output(0, join_heads(e_, made[0]));
    if (!wants_scores())
      return;
    const dim all = e_.dims(made[3], 4)[3]; // the sink is the first one
    set_scores(has_sink() ? e_.add("Slice", {made[3], e_.known({1}), e_.known({all}), e_.known({3})}) : made[3], count);
  }

  expansion& e_;
  grouped_operands o_;
  cache_codes key_codes_, value_codes_;
  key_places at_;
  dim total_;
  bool same_starts_ = false;
};

void expand_group_query(expansion& e) {
  check_form(e);
  grouped_attention(e).expand();
}

constexpr auto group_query_attention_rows = std::to_array<op_def>({
    composition_row("GroupQueryAttention", 1, expand_group_query,
                    {.domain = microsoft,
                     .inputs = {1, 16},
                     .max_outputs = 4,
                     .types = types::floats,
                     .host_inputs = 1U << gqa_total}),
});

} // namespace

extern constinit const op_table contrib_group_query_attention_ops = group_query_attention_rows;

} // namespace troupe
