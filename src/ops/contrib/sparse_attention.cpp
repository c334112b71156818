// SparseAttention of com.microsoft: causal attention over a cache, whose queries see only some blocks of their past.
//
// A layout is a matrix of blocks of sparse_block_size places, queries by keys, whose ones are in compressed rows:
// block_col_indices [layouts, most ones] has the columns, those from block_row_indices[r] on and before
// block_row_indices[r + 1] for row r [layouts, blocks + 1]. Head h takes layout h mod layouts. Of the blocks of its row
// a query sees the keys up to its own place. The new keys of a batch element come after total_key_lengths − S keys that
// were there before, and are written there: the caches have room for all. What the layout leaves out gets the lowest
// score rather than none, so that a query that sees nothing takes the mean of its past.
#include "ops/contrib/attention.hpp"

#include <limits>

namespace troupe {
namespace {

constexpr size_t sparse_past_key = 3, sparse_past_value = 4, sparse_rows = 5, sparse_columns = 6, sparse_total = 7,
                 sparse_lengths = 8, sparse_cosine = 9, sparse_sine = 10;

/// One call taken apart, step by step.
class sparse_attention {
public:
  explicit sparse_attention(expansion& e) : e_(e), o_(e), block_(e.attrs().integer("sparse_block_size")) {
    for (size_t i = sparse_past_key; i <= sparse_lengths; ++i)
      if (!e.has_input(i))
        fail(errc::invalid_model, "input {} is missing", i);
    const symbolic_shape q = e.dims(o_.q, 3), rows = e.dims(e.input(sparse_rows), 2);
    batch_ = q[0];
    queries_ = q[1];
    layouts_ = rows[0];
    blocks_ = rows[1] - 1;
    if (block_ < 1)
      fail(errc::invalid_model, "blocks of {} places", block_);
    if (layouts_.is_constant() && (layouts_.constant() < 1 || o_.heads % layouts_.constant() != 0))
      fail(errc::invalid_model, "{} heads cannot share {} layouts", o_.heads, layouts_.constant());
    const std::vector<dim> total = e.call().require_known(sparse_total);
    if (total.size() != 1)
      fail(errc::invalid_model, "total_sequence_length has {} elements instead of one", total.size());
    total_ = total[0];
    const value_id lengths = e.cast(e.input(sparse_lengths), dtype::int64);
    starts_ = e.add("Max", {e.add("Sub", {lengths, e.known_scalar(queries_)}), e.scalar(dtype::int64, 0)});
    places_ = e.add("Add", {e.reshape(starts_, {batch_, 1}), e.range(queries_)});
  }

  void expand() {
    if (e_.attrs().integer("do_rotary", 0) != 0)
      o_.rotate(e_, sparse_cosine, sparse_sine, places_);
    const value_id keys = cached(1, sparse_past_key, o_.k), values = cached(2, sparse_past_value, o_.v);
    attributes attrs;
    set_scale(e_, attrs);
    const value_id y =
        e_.add("Attention", {split_heads(e_, o_.q, o_.heads), keys, values, added_to_scores()}, std::move(attrs));
    e_.set_output(0, join_heads(e_, y));
  }

private:
  /// Writes the new rows into a cache, which becomes output `output`; returns the rows of it that count.
  value_id cached(size_t output, size_t past, value_id rows) {
    const value_id all = e_.add("TensorScatter", {e_.input(past), split_heads(e_, rows, o_.kv_heads), starts_});
    e_.set_output(output, all);
    return e_.add("Slice", {all, e_.known({0}), e_.known({total_}), e_.known({2})});
  }

  /// Returns the layouts as booleans, [layouts, blocks of queries, blocks of keys].
  value_id layouts() {
    const value_id ends = e_.cast(e_.input(sparse_rows), dtype::int64);
    const value_id column = e_.cast(e_.input(sparse_columns), dtype::int64);
    const dim most = e_.dims(column, 2)[1];
    const auto rows = [&](const dim& from) {
      const value_id v = e_.add("Slice", {ends, e_.known({from}), e_.known({from + blocks_}), e_.known({1})});
      return e_.reshape(v, {layouts_, blocks_, 1});
    };
    const value_id place = e_.range(most);
    const value_id in_row = e_.add("And", {e_.add("LessOrEqual", {rows(0), place}), e_.add("Less", {place, rows(1)})});
    const value_id in_column = e_.add("Equal", {e_.reshape(column, {layouts_, most, 1}), e_.range(blocks_)});
    const value_id count = e_.add("MatMul", {e_.cast(in_row, dtype::float32), e_.cast(in_column, dtype::float32)});
    return e_.add("Greater", {count, e_.scalar(dtype::float32, 0)});
  }

  /// Returns whom the layouts let each query see, [batch, layouts or heads, queries, keys].
  value_id listed() {
    const auto gather = [&](value_id v, value_id places, int64_t axis) {
      const value_id block = e_.add("Div", {places, e_.scalar(dtype::int64, static_cast<double>(block_))});
      return e_.add("Gather", {v, block}, attributes_of({{"axis", axis}}));
    };
    const value_id by_key = gather(layouts(), e_.range(total_), 2);
    const value_id by_layout = e_.transpose(gather(by_key, places_, 1), {1, 0, 2, 3});
    if (layouts_.is(1))
      return by_layout;
    return e_.add("Tile", {by_layout, e_.known({1, floor_div(o_.heads, layouts_), 1, 1})});
  }

  value_id added_to_scores() {
    const dtype type = e_.type(o_.q);
    const double lowest = type == dtype::float16 ? -6e4 : -3e38, none = -std::numeric_limits<double>::infinity();
    const value_id seen = e_.add("LessOrEqual", {e_.range(total_), e_.reshape(places_, {batch_, 1, queries_, 1})});
    const value_id of_seen = e_.add("Where", {listed(), e_.scalar(type, 0), e_.scalar(type, lowest)});
    return e_.add("Where", {seen, of_seen, e_.scalar(type, none)});
  }

  expansion& e_;
  grouped_operands o_;
  int64_t block_;
  dim batch_, queries_, layouts_, blocks_, total_;
  value_id starts_ = no_value, places_ = no_value; // of the new keys, [batch] and [batch, queries]
};

void expand_sparse_attention(expansion& e) {
  sparse_attention(e).expand();
}

constexpr auto sparse_attention_rows = std::to_array<op_def>({
    composition_row("SparseAttention", 1, expand_sparse_attention,
                    {.domain = microsoft,
                     .inputs = {1, 11},
                     .max_outputs = 3,
                     .types = types::floats,
                     .host_inputs = 1U << sparse_total}),
});

} // namespace

extern constinit const op_table contrib_sparse_attention_ops = sparse_attention_rows;

} // namespace troupe
