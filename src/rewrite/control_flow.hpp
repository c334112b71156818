// Control flow in the rewrite: bodies are rewritten as graphs of their own, or they take the place of their node.
//
// An If whose condition is known becomes its branch. A Loop or Scan of a few known iterations becomes that many copies
// of its body, in which the iteration number is a constant. Every other node keeps its bodies, each rewritten like a
// model: its inputs have the types and dims of what the node is given, captured constants are constants of the body,
// and captured host-known elements are known in it. A carried dim that an iteration changes is a symbol of the body; so
// are the elements of inputs that decide shapes (graph/element_symbols.hpp): both are bound before each execution. An
// If whose branches give different ranks takes in the nodes that read such a result (branches.cpp). A Loop whose
// carried values change their rank becomes such an If, and has its iterations one by one until ranks stay (peel.cpp).
#pragma once

#include "graph/bodies.hpp"
#include "rewrite/passes.hpp"

#include <array>
#include <set>

namespace troupe {

/// The nodes of a graph that are not inferred yet.
struct nodes_ahead {
  std::vector<node> pending;    // the last one first
  std::set<value_id> postponed; // results of the Ifs that others went before (branches.cpp)
};

/// Rewrites the bodies of `n`, a node of `g` with bodies whose operands are inferred, or returns the nodes that take
/// its place, in order and not inferred. Nodes that are ahead may move into it. Throws `errc::invalid_model` and
/// `errc::unsupported` naming node and body.
std::optional<std::vector<node>> rewrite_control_flow(graph& g, node& n, nodes_ahead& ahead, rewrite_context& context);

/// The same for an If that stays: branches may give different ranks (branches.cpp).
std::optional<std::vector<node>> rewrite_branches(graph& g, node& n, nodes_ahead& ahead, rewrite_context& context);

/// Returns `n`, an If of `g`, with copies of nodes after those of its branches, the else branch first. `results`,
/// values of `g` that `n` or nodes in each branch make, are its outputs. Throws `errc::unsupported` if too many move.
node extend_branches(const graph& g, const node& n, const std::array<std::vector<node>, 2>& added,
                     std::vector<value_id> results, rewrite_context& context);

/// The attribute of a Loop that is known to have one more iteration, and of an If that says whether it has: how many
/// went before it (peel.cpp).
inline constexpr std::string_view iterations_before = "troupe.iterations_before";
/// The attribute of such an If that takes in all that depends on it before it is rewritten (branches.cpp).
inline constexpr std::string_view takes_readers = "troupe.takes_readers";
/// The attribute of a Loop in whose body the iteration's number is a symbol, whatever it is for.
inline constexpr std::string_view counts_iterations = "troupe.counts_iterations";

/// The same for a Loop that stays: iterations may change the rank of a carried value (peel.cpp).
std::optional<std::vector<node>> rewrite_loop(graph& g, node& n, rewrite_context& context);

/// Returns the nodes that take the place of `n` if it can be executed beforehand (see the top of this file).
std::optional<std::vector<node>> unroll(graph& g, const node& n, rewrite_context& context);

/// Returns the parts of `n`, an attention that has graphs which change its scores or weights (modified_attention.cpp).
std::vector<node> take_apart_attention(graph& g, node& n, rewrite_context& context);

/// Adds copies of the nodes of `body`, one of `n`'s, to `nodes`, with `given` in place of its formal inputs and names
/// that begin with `name`; returns what its outputs are in `outer`. They are not inferred.
std::vector<value_id> copy_body(graph& outer, const node& n, const node_body& body, std::span<const value_id> given,
                                const std::string& name, rewrite_context& context, std::vector<node>& nodes);

/// Rewrites the bodies of `n`.
void rewrite_bodies(const graph& g, node& n, rewrite_context& context);

/// Returns a Scan of opset 8 as one of opset 9 over the batch around one over the sequence.
node nest_old_scan(const graph& g, const node& n);

/// Returns a body's copy in a form that can be inferred: resolved and topologically sorted.
graph prepare_body(const graph& source);

/// Returns `name` with a suffix if a value is called so already; the result is taken then.
std::string take_name(rewrite_context& context, const std::string& name);

} // namespace troupe
