// What a model file may cost before its first run: the rule, and every number of it.
//
// Loading, rewriting and planning take time and memory that are bounded by a stated multiple of the file's bytes (its
// external data included), plus a fixed amount, plus what the devices have. A model that would take more is refused
// with an error that says which limit it met, or, if that is as good, is not simplified any further: a node over
// constants that is too dear to compute beforehand stays a node, and then counts against the memory of the device that
// runs it.
//
// - Reading copies the messages but not the tensors: about 100 bytes for each byte of a message.
// - Operators that are computed beforehand: `folding_*`. Constants that a device computes when it takes them (weight
//   recipes) count too: what a recipe takes is charged when it is made.
// - Expressions of symbolic dims: `dim_*`.
// - Control flow: `body_*`, `copied_*`, `moved_*`, `peeled_iterations`.
// - What one text or list in the file may ask for: `longest_*`, `max_*`.
// Nothing recurses as deep as a file says, beyond `max_nesting` and `max_dim_characters`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::limits {

inline constexpr int64_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib;

// -- the file

/// Nodes, in the file and with its functions inlined.
inline constexpr int64_t max_nodes = 1'000'000;
/// Nodes, attributes, tensors and graphs together.
inline constexpr int64_t max_messages = 4'000'000;
/// Messages inside each other; protobuf's own limit is 100.
inline constexpr int max_message_depth = 96;
/// Graphs and calls of functions inside each other.
inline constexpr int64_t max_nesting = 100;
/// Inputs, and outputs, of a node.
inline constexpr int max_operands = 65'536;
/// Characters of a name.
inline constexpr size_t longest_name = 64 * 1024;
/// Dims of a tensor, stated or inferred.
inline constexpr size_t max_rank = 64;
/// Tensors in a sequence.
inline constexpr int64_t max_sequence_length = 1 << 20;
/// Bytes of nodes and names that inlining functions may write: a fixed number, and one for each byte of the file.
inline constexpr int64_t inlined_bytes = 256 * mib, inlined_bytes_a_byte = 16;
/// Tensors of up to this size are known by a hash of their content, larger ones by their place in the file.
inline constexpr int64_t hashed_bytes = mib;
/// Bytes of external files that are copied, checked or hashed: a fixed number, and a number for each byte of the files.
/// Tensors that name the same bytes count each.
inline constexpr int64_t touched_bytes = 64 * mib, touched_bytes_a_byte = 2;
/// Bytes that the arrays of an .npz archive may have: a fixed number, and a number for each byte of the archive.
inline constexpr int64_t unpacked_bytes = gib, unpacked_bytes_a_byte = 16;
/// Characters of an error message: files give names, and names may have megabytes.
inline constexpr size_t max_message_characters = 2000;

// -- folding

/// Results of up to `eager_bytes` are computed while rewriting if their operands have up to `eager_input_bytes`; tiny
/// ones always, so that nothing computes them twice. The others become recipes.
inline constexpr int64_t eager_bytes = 64 * kib, eager_input_bytes = mib, tiny_bytes = 8 * kib;
/// Operands of operators whose result has a size that depends on the data, or strings.
inline constexpr int64_t open_input_bytes = 64 * kib;
/// Work of all folding: an operation for each flop and for each 4 bytes read or written; a recipe's operands count for
/// each recipe. A fixed number, and a number for each byte of the model.
inline constexpr double folding_work = 1 << 28, folding_work_a_byte = 256;
/// Bytes of all results that are computed while rewriting.
inline constexpr int64_t folded_bytes = 512 * mib, folded_bytes_a_byte = 16;
/// Bytes of one folded result: a fixed number, and a number for each byte of the model.
inline constexpr int64_t largest_folded_bytes = 256 * mib, largest_folded_bytes_a_byte = 16;
/// Outputs of an operator that is computed later: each of them computes all.
inline constexpr size_t step_outputs = 256;
/// Operations that a recipe which fusion makes may take for each byte of its result.
inline constexpr double derived_work_a_byte = 64;

// -- dims

/// Characters of one symbolic dim's text, which also bounds how deep it is nested.
inline constexpr size_t max_dim_characters = 16 * 1024;
/// Products of terms that one multiplication of dims may make.
inline constexpr size_t max_dim_products = 16 * 1024;
/// Characters of all symbolic dims that a rewrite makes: a fixed number, and a number for each byte of the model.
inline constexpr int64_t dim_characters = 64 * mib, dim_characters_a_byte = 16;

// -- control flow

/// Bodies inside each other that stay bodies.
inline constexpr size_t max_body_depth = 32;
/// Control-flow nodes of one graph that stay: each is planned as a device of its own.
inline constexpr size_t max_control_nodes = 2048;
/// Nodes of bodies that are rewritten, again for each round that finds dims which change: a fixed number, and a number
/// for each node.
inline constexpr int64_t body_nodes = 200'000, body_nodes_a_node = 16;
/// Iterations and nodes up to which a loop is unrolled, and nodes of all unrolled loops together.
inline constexpr int64_t copied_iterations = 64, copied_nodes = 4096, all_copied_nodes = 16'384;
/// Iterations of a loop that may each change the rank of what it carries.
inline constexpr int64_t peeled_iterations = 16;
/// Nodes of an iteration after which only the run tells a rank, doubled with each body around it, as such iterations
/// do.
inline constexpr int64_t open_iteration_nodes = 256;
/// Nodes after an If that may move into its branches, and be looked at for that.
inline constexpr int64_t moved_nodes = 65'536, move_visits = 20'000'000;
/// Characters of the names of what is copied out of bodies.
inline constexpr size_t longest_copied_name = 1024;

} // namespace troupe::limits
