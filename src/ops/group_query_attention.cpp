// GroupQueryAttention of com.microsoft: rotary embedding, a cache of keys and values, and causal attention whose query heads share key heads.
//
// seqlens_k + 1 keys of each batch element count; its new keys come after what was there before, `start` = max(0, seqlens_k + 1 − S) keys.
// The cache has max(past, total_sequence_length) places; query i of S sees the keys k ≤ start + i, of these the last local_window_size.
// Where a batch has one element or nothing is past, every start is the same: attention joins past and new keys itself. Otherwise
// TensorScatter writes the new keys where they belong, and a mask says who sees whom.
// A head's sink (head_sink, or 0 with smooth_softmax) is the score of one more key, whose value is 0.
// Output 3 has the scores of each query and key with qk_output 1, their softmax with 2; 0 where the query does not see the key.
// With norms (inputs 14 and 15) queries and keys are RMS-normalised head by head before anything else.
#include "ops/contrib_attention.hpp"

#include <limits>

namespace troupe {
namespace {

constexpr size_t gqa_past_key = 3, gqa_past_value = 4, gqa_lengths = 5, gqa_total = 6, gqa_cosine = 7, gqa_sine = 8,
                 gqa_positions = 9, gqa_bias = 10, gqa_sink = 11, gqa_query_norm = 14, gqa_key_norm = 15;

void refuse_unknown_forms(const expansion& e) {
  const attributes& attrs = e.attrs();
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (attrs.text(name, "NONE") != "NONE")
      fail(errc::unsupported, "quantised caches ('{}') are not supported", name);
  if (attrs.integer("sliding_window_cache", 0) != 0)
    fail(errc::unsupported, "caches of a window's size are not supported");
  const int64_t scores = attrs.integer("qk_output", 0);
  if (scores < 0 || scores > 2 || (scores != 0) != e.has_output(3))
    fail(errc::invalid_model, "attribute 'qk_output' is {}, output 3 {}", scores,
         e.has_output(3) ? "there" : "left out");
  if (e.has_input(gqa_query_norm) != e.has_input(gqa_key_norm))
    fail(errc::invalid_model, "the norms of queries and keys must both be there, or neither");
}

/// One call taken apart, step by step.
class grouped_attention {
public:
  explicit grouped_attention(expansion& e) : e_(e), o_(e) {
    if (e.has_input(gqa_past_key) != e.has_input(gqa_past_value))
      fail(errc::invalid_model, "past key and value must both be there, or neither");
    const symbolic_shape q = e.dims(o_.q, 3);
    batch_ = q[0];
    queries_ = q[1];
    past_ = e.has_input(gqa_past_key) ? e.dims(e.input(gqa_past_key), 4)[2] : dim(0);
    const std::vector<dim> total = e.call().require_known(gqa_total);
    if (total.size() != 1)
      fail(errc::invalid_model, "total_sequence_length has {} elements instead of one", total.size());
    total_ = total[0];
  }

  void expand() {
    const bool has_past = e_.has_input(gqa_past_key);
    same_starts_ = !has_past || (batch_.is(1) && total_ == past_ + queries_);
    if (e_.has_input(gqa_query_norm)) {
      o_.q = normalised(o_.q, o_.heads, gqa_query_norm);
      o_.k = normalised(o_.k, o_.kv_heads, gqa_key_norm);
    }
    if (e_.attrs().integer("do_rotary", 0) != 0)
      o_.rotate(e_, gqa_cosine, gqa_sine, e_.has_input(gqa_positions) ? e_.input(gqa_positions) : places());
    const bool plain = same_starts_ && e_.attrs().integer("causal", 1) == 1 && !has_sink() && window() < 0;
    plain ? attend_plainly() : attend_with_mask();
  }

private:
  bool has_sink() const { return e_.has_input(gqa_sink) || e_.attrs().integer("smooth_softmax", 0) == 1; }
  int64_t window() const { return e_.attrs().integer("local_window_size", -1); }

  /// Returns how many keys of each batch element count, [batch].
  value_id lengths() {
    return e_.add("Add", {e_.cast(e_.input(gqa_lengths), dtype::int64), e_.scalar(dtype::int64, 1)});
  }

  /// Returns where the new keys of each batch element begin, [batch].
  value_id starts() {
    if (starts_ == no_value)
      starts_ = e_.add("Max", {e_.add("Sub", {lengths(), e_.known_scalar(queries_)}), e_.scalar(dtype::int64, 0)});
    return starts_;
  }

  /// Returns the place of each query among its keys, [batch, queries].
  value_id places() { return e_.add("Add", {e_.reshape(starts(), {batch_, 1}), e_.range(queries_)}); }

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

  void attend_plainly() {
    attributes attrs = attention_attributes();
    attrs.set("is_causal", int64_t{1});
    attrs.set("q_num_heads", o_.heads);
    attrs.set("kv_num_heads", o_.kv_heads);
    const auto made = e_.add_all(
        "Attention", {o_.q, o_.k, o_.v, e_.input(gqa_bias), e_.input(gqa_past_key), e_.input(gqa_past_value)},
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
    const dim places = max(past_, total_);
    if (!(places == past_)) {
      const symbolic_shape d = e_.dims(past, 4);
      const value_id more =
          e_.add("Expand", {e_.scalar(e_.type(past), 0), e_.known({d[0], d[1], places - past_, d[3]})});
      past = e_.add("Concat", {past, more}, attributes_of({{"axis", int64_t{2}}}));
    }
    return e_.add("TensorScatter", {past, rows, starts()});
  }

  /// Returns who sees whom, [batch, 1, queries, keys].
  value_id visible(const dim& keys) {
    const value_id key = e_.range(keys);
    if (e_.attrs().integer("causal", 1) == 0)
      return e_.add("Less", {key, e_.reshape(lengths(), {batch_, 1, 1, 1})});
    const value_id query = e_.reshape(places(), {batch_, 1, queries_, 1});
    const value_id past = e_.add("LessOrEqual", {key, query});
    if (window() < 0)
      return past;
    const value_id first = e_.add("Sub", {query, e_.scalar(dtype::int64, static_cast<double>(window()))});
    return e_.add("And", {past, e_.add("Greater", {key, first})});
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
    const value_id all = e_.add("Expand", {mask, e_.known({batch_, o_.heads, queries_, count})});
    mask = in_front(e_.add("Expand", {score, e_.known({batch_, o_.heads, queries_, 1})}), all, 3);
  }

  void attend_with_mask() {
    value_id keys = cached(e_.input(gqa_past_key), split_heads(e_, o_.k, o_.kv_heads));
    value_id values = cached(e_.input(gqa_past_value), split_heads(e_, o_.v, o_.kv_heads));
    e_.set_output(1, keys);
    e_.set_output(2, values);
    dim count = e_.dims(keys, 4)[2];
    if (e_.has_input(gqa_bias) && !(count == total_)) {
      keys = first_rows(keys, total_);
      values = first_rows(values, total_);
      count = total_;
    }
    value_id mask = visible(count);
    if (e_.has_input(gqa_bias) || has_sink()) {
      const dtype type = e_.type(o_.q);
      const value_id none = e_.scalar(type, -std::numeric_limits<double>::infinity());
      mask = e_.add("Where", {mask, e_.has_input(gqa_bias) ? e_.input(gqa_bias) : e_.scalar(type, 0), none});
    }
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
  value_id starts_ = no_value;
  dim batch_, queries_, past_, total_;
  bool same_starts_ = false;
};

void expand_group_query(expansion& e) {
  refuse_unknown_forms(e);
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

constinit const op_table group_query_attention_ops = group_query_attention_rows;

} // namespace troupe
