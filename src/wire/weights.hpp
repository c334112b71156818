// Weight recipes as a flat table: leaves and steps, each step after the entries that it is computed from, each shared
// entry once.
//
// Leaves of up to `inline_bytes` travel with the table; larger ones are named by the hash of their content, and the
// host that needs their bytes asks for them. Weights that shape inference may look into are small: they travel
// computed, so inference on the other host never runs a recipe. There all keys are made of content: sessions that send
// equal weights share them.
#pragma once

#include "wire/tensors.hpp"

#include <functional>
#include <unordered_map>
#include <unordered_set>

namespace troupe::wire {

/// Leaves of up to this size travel with the graph.
inline constexpr int64_t inline_bytes = 64 * 1024;

/// Gives the content hash of a leaf, remembered or computed.
using content_hashes = std::function<hash128(const weight& leaf)>;

/// The row of an operator.
struct flat_operator {
  std::string domain, name;
  int64_t since = 0;
};
flat_operator flat_of(const op_def& def);
/// Throws `errc::unsupported` if this build does not have the row.
const op_def& find_row(const flat_operator& op);

struct flat_leaf {
  tensor bytes; // inline
};
struct large_leaf {
  dtype type{};
  shape dims;
  hash128 content;
};
struct flat_step {
  dtype type{};
  shape dims;
  flat_operator op;
  attributes attrs;
  std::vector<int32_t> inputs; // positions in the table; -1 if absent
  uint32_t output = 0;         // which of the call's outputs
  uint32_t outputs = 1;        // how many it has
};
using flat_weight = std::variant<flat_leaf, large_leaf, flat_step>;

/// Fills a table.
class weight_flattener {
public:
  explicit weight_flattener(const content_hashes& content_of) : content_of_(content_of) {}

  /// Returns the weight's position in the table.
  int32_t add(const weight_ptr& w);

  std::vector<flat_weight> table;

private:
  flat_weight flatten(const weight& w) const;

  const content_hashes& content_of_;
  std::unordered_map<hash128, int32_t> added_; // positions by key
};

/// A leaf whose bytes are still to come.
using open_leaves = std::unordered_map<hash128, std::shared_ptr<weight>>;

/// Makes the weights of a table; `message_bytes`: its size, which limits what computing them may take. Throws
/// `errc::invalid_input`, `errc::unsupported`.
std::vector<weight_ptr> make_weights(std::vector<flat_weight> table, size_t message_bytes, open_leaves& open);

/// Adds to `missing` the content hashes of the leaves without bytes that `w` is computed from, each once. `seen` makes
/// several calls visit what they share once.
void collect_missing(const weight& w, std::unordered_set<const weight*>& seen, std::vector<hash128>& missing);

template <class Archive>
void visit(Archive& a, flat_operator& op) {
  a(op.domain, op.name, op.since);
}

template <class Archive>
void visit(Archive& a, flat_leaf& l) {
  a(l.bytes);
}

template <class Archive>
void visit(Archive& a, large_leaf& l) {
  a(l.type, l.dims, l.content);
  if constexpr (Archive::reads)
    check_dims(a, l.type, l.dims);
}

template <class Archive>
void visit(Archive& a, flat_step& s) {
  a(s.type, s.dims, s.op, s.attrs, s.inputs, s.output, s.outputs);
  if constexpr (Archive::reads)
    check_dims(a, s.type, s.dims);
}

} // namespace troupe::wire
