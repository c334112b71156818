// How a subcommand's devices share the work: `--strategy` and what goes with it.
#pragma once

#include "cli/command.hpp"

namespace troupe::cli {

/// Returns what `--strategy auto` has chosen (`session::choice`) as a line; empty if it had nothing to choose.
std::string choice_text(const std::optional<strategy_choice>& chosen);
nlohmann::json to_json(const strategy_choice& choice);

/// Adds `--strategy`, `--micro-batch`, `--depth`, `--schedule`, `--shares`, `--max-batch`, `--max-delay`.
void add_strategy_options(CLI::App& command, model_options& options);

/// A table of a session's replicas and what they did, for people and as JSON; empty if its queue was not used.
std::string replicas_text(const stream_stats& stats, double wall_ms);
nlohmann::json replicas_json(const stream_stats& stats, double wall_ms);

} // namespace troupe::cli
