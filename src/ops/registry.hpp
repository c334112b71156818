// The operator table: all files' rows, found by domain, name and opset.
#pragma once

#include "ops/op.hpp"

#include <functional>

namespace troupe {

/// Returns the newest row of the operator whose `since` ≤ `opset`, or null if there is none.
const op_def* find_op(std::string_view domain, std::string_view name, int64_t opset);

/// The operators whose calls planning inserts.
enum class inserted_op : uint8_t { cast, concat, identity, reorder, reshape, slice };

/// Returns the row that an inserted call has.
const op_def& row_of(inserted_op op);

/// Returns a resolved call; its output is not inferred yet.
node make_call(inserted_op op, std::string name, std::vector<value_id> inputs, value_id output, attributes attrs = {});

/// Returns all rows, file by file.
std::vector<const op_def*> all_ops();

/// The newest opset of a domain that troupe knows; 0 for an unknown domain.
int64_t newest_opset(std::string_view domain);

/// Sets every node's `def` and checks its arity; throws `errc::unsupported` for unknown operators and domains and
/// opsets newer than troupe knows, `errc::invalid_model` for a wrong number of inputs or outputs. A `def` that is set
/// already stays: nodes of inlined functions follow their function's opsets, not the graph's.
void resolve(graph& g);

/// Does the same for one node, with opset versions by domain.
void resolve_node(node& n, const std::map<std::string, int64_t>& opsets);

/// Calls `work` on a resolved node after its first operand's type was checked. Errors carry the node's name.
void work_on(const graph& g, const node& n, const std::function<void()>& work);

/// Runs shape inference for one resolved node: see `work_on`; calls its row's `infer`.
void infer_node(graph& g, node& n);

} // namespace troupe
