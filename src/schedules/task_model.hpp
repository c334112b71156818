// Made-up task graphs as models: plans, policies, strategies and simulations take them like any other.
//
// A task is a node (troupe.Task), an edge a value of its own. How long a task takes is for the cost model to say: its
// work by the device's float32 speed, or its bytes by the memory's, whichever is longer, and the launch.
#pragma once

#include "graph/graph.hpp"
#include "schedules/task_graph.hpp"

#include <filesystem>
#include <optional>

namespace troupe {

/// Throws `errc::invalid_argument` for what no graph is: see `model_of`, but for bytes of edges.
void check(const task_graph& g);

/// Returns the graph as a model; see `model_of`.
graph to_model(const task_graph& made_up);

/// Whether a model's name asks for a made-up graph: "graph:…".
bool names_task_graph(std::string_view name);

/// Returns the file that such a name means: one with a '.' or a '/' that is no generator. nullopt for all other names.
std::optional<std::filesystem::path> task_graph_file(std::string_view name);

} // namespace troupe
