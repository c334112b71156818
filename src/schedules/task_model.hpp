// Made-up task graphs as models: plans, policies, strategies and simulations take them like any other.
//
// A task is a node (troupe.Task), an edge a value of its own. How long a task takes is for the cost model to say: its
// work by the device's float32 speed, or its bytes by the memory's, whichever is longer, and the launch.
#pragma once

#include "graph/graph.hpp"
#include "schedules/task_graph.hpp"

namespace troupe {

/// Returns the graph as a model. Tasks without predecessors read the one input, a float32 called "start"; each task
/// without successors makes an output of one element. Throws `errc::invalid_argument` for edges of more than
/// 2^40 bytes or none.
graph to_model(const task_graph& made_up);

/// Whether a model's name asks for a made-up graph: "graph:…".
bool names_task_graph(std::string_view name);

/// Returns the graph that a name asks for, "graph:NAME[,PARAMETER=VALUE…]", such as "graph:cholesky,tiles=8": fork-join
/// (width, stages, work, bytes), cholesky and lu (tiles, tile), fft (points, work, bytes), stencil (width, steps, work,
/// bytes), montage (images, seed), layers (tasks, shape, out-degree, work, bytes, seed). Throws
/// `errc::invalid_argument`, saying what there is, for other names, parameters and values, and for graphs of more than
/// a million tasks.
task_graph read_task_graph(std::string_view name);

} // namespace troupe
