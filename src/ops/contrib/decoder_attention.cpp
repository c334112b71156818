// DecoderMaskedMultiHeadAttention of com.microsoft: MultiHeadAttention of one query a row, as decoders do it token by
// token.
//
// Q [batch, 1, hidden] with K and V alike, or all three one after the other as one operand: self attention, over past
// keys and the new one. Or K and V [batch, heads, keys, size] as they are kept: cross attention, without past ones.
// Bias, mask [batch, keys] and scores are those of MultiHeadAttention. With past_present_share_buffer past and present
// ones are buffers of more places than are used: the new key is written at place past_sequence_length, and what comes
// after that does not count. Otherwise present ones are past ones and the new one. cache_indirection [batch / beams,
// beams, places] says by whose buffer of a beam search each row continues: place k of beam j is that of beam [.., j,
// k]. (ONNX Runtime's CPU then writes the new key at place 0, and scales mask and attention_bias too: here, as on its
// GPUs, they are not.)
#include "ops/contrib/attention.hpp"
#include "ops/operand.hpp"

#include <limits>
#include <optional>

namespace troupe {
namespace {

constexpr size_t masked_mask = 3, masked_added = 4, masked_past_key = 5, masked_past_value = 6, masked_past_length = 7,
                 masked_beams = 8, masked_indirection = 9, masked_bias = 10;

/// One call taken apart, step by step.
class masked_attention {
public:
  explicit masked_attention(expansion& e) : e_(e), heads_(heads_of(e)), o_{e.input(0), e.input(1), e.input(2)} {
    if (e.has_input(1) != e.has_input(2) || e.has_input(masked_past_key) != e.has_input(masked_past_value))
      fail(errc::invalid_model, "key and value must both be there, or neither; so must the past ones");
    const symbolic_shape q = e.dims(o_.q, 3);
    require_one(q[1], "queries of a row");
    if (!e.has_input(1))
      unpack(q[2]);
    batch_ = q[0];
    if (e.has_input(masked_bias))
      add_bias(e, o_, masked_bias);
  }

  void expand() {
    if (e_.rank(o_.k) == 4)
      return attend_across();
    require_one(e_.dims(o_.k, 3)[1], "new keys of a row");
    if (e_.attrs().integer("past_present_share_buffer", 0) != 0)
      attend_in_buffers();
    else
      attend_after_past();
  }

private:
  static void require_one(const dim& count, const char* what) {
    if (count.is_constant() && !count.is(1))
      fail(errc::invalid_model, "{} {} instead of one", count.constant(), what);
  }

  void unpack(const dim& width) {
    if (width.is_constant() && width.constant() % 3 != 0)
      fail(errc::invalid_model, "{} elements are not those of a query, a key and a value", width.to_string());
    const dim size = floor_div(width, 3);
    const auto parts = split_last(e_, o_.q, {size, size, size});
    o_.q = parts[0];
    o_.k = parts[1];
    o_.v = parts[2];
  }

  /// Attends and sets outputs 0 and 3; returns present ones too, if they are wanted and something is past.
  std::vector<value_id> attend_all(value_id added, bool presents) {
    const size_t outputs = e_.has_output(3) ? 4 : presents ? 3 : 1;
    auto made = attend(e_, o_, {e_.input(masked_mask), added}, outputs);
    e_.set_output(0, made[0]);
    if (e_.has_output(3))
      e_.set_output(3, made[3]);
    return made;
  }

  void attend_across() {
    if (e_.has_input(masked_past_key))
      fail(errc::invalid_model, "keys of rank 4 are those of cross attention, which has no past ones");
    attend_all(e_.input(masked_added), false);
    e_.set_output(1, o_.k);
    e_.set_output(2, o_.v);
  }

  void attend_after_past() {
    if (e_.has_input(masked_indirection))
      fail(errc::unsupported, "cache_indirection without past_present_share_buffer is not supported");
    o_.past_key = e_.input(masked_past_key);
    o_.past_value = e_.input(masked_past_value);
    const bool presents = e_.has_output(1) || e_.has_output(2);
    const auto made = attend_all(e_.input(masked_added), presents);
    for (size_t i = 1; presents && i < 3; ++i)
      e_.set_output(i, made[i]);
  }

  void attend_in_buffers() {
    if (!e_.has_input(masked_past_key) || !e_.has_input(masked_past_length))
      fail(errc::invalid_model, "past_present_share_buffer needs past_sequence_length and the past key and value");
    check_beams();
    const symbolic_shape length = e_.dims(e_.input(masked_past_length));
    require_same(volume(std::span<const dim>(length)), 1, "elements of past_sequence_length");
    past_ = e_.reshape(e_.cast(e_.input(masked_past_length), dtype::int64), {1});
    places_ = e_.dims(e_.input(masked_past_key), 4)[2];
    const std::optional<dim> counted = counted_places();
    o_.k = in_buffer(1, o_.k, masked_past_key, counted);
    o_.v = in_buffer(2, o_.v, masked_past_value, counted);
    attend_all(counted ? e_.input(masked_added) : hidden_places(), false);
  }

  /// Returns how many places of the buffers count, if that is known before the run: as many as mask and scores have, or
  /// the host knows.
  std::optional<dim> counted_places() const {
    if (const auto past = e_.call().known(masked_past_length)) {
      if ((*past)[0].is_constant() && (*past)[0].constant() < 0)
        fail(errc::invalid_model, "past_sequence_length is {}", (*past)[0].constant());
      return (*past)[0] + 1;
    }
    if (e_.has_input(masked_mask))
      return e_.dims(e_.input(masked_mask), 2)[1];
    if (e_.has_input(masked_added))
      return e_.dims(e_.input(masked_added), 4)[3];
    if (e_.has_output(3))
      fail(errc::unsupported, "scores of as many keys as past_sequence_length says in the run are not supported");
    return std::nullopt;
  }

  /// Returns what hides the places after the new key, to be added to the scores.
  value_id hidden_places() {
    const dtype type = e_.type(o_.q);
    const value_id seen = e_.add("LessOrEqual", {e_.range(places_), past_});
    const value_id added =
        e_.add("Where", {seen, e_.scalar(type, 0), e_.scalar(type, -std::numeric_limits<double>::infinity())});
    return e_.reshape(added, {1, 1, 1, places_});
  }

  void check_beams() {
    beams_ = e_.has_input(masked_indirection) ? e_.dims(e_.input(masked_indirection), 3)[1] : dim(1);
    const auto stated = e_.has_input(masked_beams) ? e_.call().known(masked_beams) : std::nullopt;
    if (stated && stated->size() == 1)
      require_same((*stated)[0], beams_, "beam_width and the beams of cache_indirection");
  }

  /// Writes the new row after the past ones; the result becomes output `output`. Returns the rows that may count.
  value_id in_buffer(size_t output, value_id row, size_t past, const std::optional<dim>& counted) {
    const value_id fresh = split_heads(e_, row, heads_), start = e_.add("Expand", {past_, e_.known({batch_})});
    const auto write = [&](value_id buffer) { return e_.add("TensorScatter", {buffer, fresh, start}); };
    const value_id own = write(e_.input(past));
    e_.set_output(output, own);
    const value_id all = e_.has_input(masked_indirection) ? write(of_beams(e_.input(past))) : own;
    return counted ? e_.add("Slice", {all, e_.known({0}), e_.known({*counted}), e_.known({2})}) : all;
  }

  /// Returns the buffer of each beam, [batch, heads, places, size], put together from those that cache_indirection
  /// names.
  value_id of_beams(value_id buffer) {
    const symbolic_shape d = e_.dims(buffer, 4), shared = e_.dims(e_.input(masked_indirection), 3);
    const dim& groups = shared[0];
    require_same(shared[2], places_, "places of cache_indirection and of the buffers");
    const value_id by_place = e_.reshape(e_.transpose(buffer, {0, 2, 1, 3}), {groups, beams_, places_, d[1], d[3]});
    const value_id named = e_.cast(e_.input(masked_indirection), dtype::int64);
    const value_id beam =
        e_.add("Where", {e_.add("Less", {e_.range(places_), past_}), named, e_.scalar(dtype::int64, 0)});
    const value_id place = e_.add("Expand", {e_.range(places_), e_.known({groups, beams_, places_})});
    const auto last = [&](value_id v) { return e_.add("Unsqueeze", {v, e_.known({-1})}); };
    const value_id at = e_.add("Concat", {last(beam), last(place)}, attributes_of({{"axis", int64_t{-1}}}));
    const value_id rows = e_.add("GatherND", {by_place, at}, attributes_of({{"batch_dims", int64_t{1}}}));
    return e_.transpose(e_.reshape(rows, {d[0], places_, d[1], d[3]}), {0, 2, 1, 3});
  }

  expansion& e_;
  int64_t heads_;
  attention_operands o_;
  dim batch_, beams_, places_;
  value_id past_ = no_value; // how many keys are past, [1]
};

void expand_masked_attention(expansion& e) {
  masked_attention(e).expand();
}

constexpr auto decoder_attention_rows = std::to_array<op_def>({
    composition_row("DecoderMaskedMultiHeadAttention", 1, expand_masked_attention,
                    {.domain = microsoft, .inputs = {1, 11}, .max_outputs = 4, .types = types::floats}),
});

} // namespace

extern constinit const op_table contrib_decoder_attention_ops = decoder_attention_rows;

} // namespace troupe
