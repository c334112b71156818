// Task graphs without operators, as plain data: tasks with work, edges with bytes. Simulations take one as a model
// (troupe/simulation.hpp). It is in the laboratory, a library that a program links for it: troupe::lab.
//
//   troupe::task_graph g = troupe::read_task_graph("graph:cholesky,tiles=8");
//   std::cout << to_text(troupe::simulate(troupe::model_of(g), {}, how));
#pragma once

#include "troupe/built_model.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A value that `to` reads of what `from` makes.
struct graph_edge {
  uint32_t from = 0, to = 0;
  double bytes = 0;

  bool operator==(const graph_edge&) const = default;
};

struct graph_task {
  std::string kind; // what it does, e.g. "potrf"
  double work = 0;  // floating-point operations
  /// Of its own among the graph's tasks; empty: its kind and its number, as "potrf_0".
  std::string name = {};

  bool operator==(const graph_task&) const = default;
};

struct task_graph {
  std::string name;
  std::vector<graph_task> tasks;
  std::vector<graph_edge> edges; // from < to; ascending by `to`, then by `from`

  bool operator==(const task_graph&) const = default;
};

/// Returns the graph that a name asks for, "graph:NAME[,PARAMETER=VALUE…]", such as "graph:cholesky,tiles=8": fork-join
/// (width, stages, work, bytes), cholesky and lu (tiles, tile), fft (points, work, bytes), stencil (width, steps, work,
/// bytes), montage (images, seed), layers (tasks, shape, out-degree, work, bytes, seed), cybershake (ruptures,
/// variations, seed), epigenomics (lanes, splits, seed), inspiral (groups, width, seed), sipht (replicons, patsers,
/// seed). "graph:FILE", with a '.' or a
/// '/', reads a file: WfFormat 1.4 or 1.5, DAX, STG, DOT (src/schedules/README.md). Throws `errc::invalid_argument`,
/// saying what there is, for other names, parameters and values, and for graphs of more than a million tasks; for a
/// file that is wrong, naming the place; `errc::io` for one that cannot be read.
TROUPE_API task_graph read_task_graph(std::string_view name);

/// Writes a graph as its file's extension says: .json, WfFormat 1.5; .stg; .dot or .gv. 1e9 operations are a second of
/// the formats that have seconds. `read_task_graph` reads it back, without the tasks' kinds; WfFormat has whole bytes,
/// STG has no names. Throws `errc::invalid_argument` for a graph that cannot be or that the format does not have (STG:
/// bytes, parts of seconds; DOT: names with '\'), for other extensions, and `errc::io` if it cannot be written.
TROUPE_API void save_task_graph(const task_graph& g, const std::string& file);

/// Returns what a task is called: its name, else its kind and its number.
TROUPE_API std::string task_name(const task_graph& g, uint32_t task);

/// Returns the graph as a model: each task is a node (troupe.Task) of its name, each edge a value. A task takes its
/// work by a device's float32 speed, or its bytes by the memory's, whichever is longer, and a launch; what it computes
/// is zeros. Tasks that read no edge read the one input; each that makes none makes an output of one element. Throws
/// `errc::invalid_argument`, naming it, for an edge of less than 0 or more than 2^40 bytes, one against the order of
/// the tasks or of a task that does not exist, work that is negative or no number, two tasks of one name, and a graph
/// without tasks.
TROUPE_API built_model model_of(const task_graph& g);

} // namespace troupe
