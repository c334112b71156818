// One run on several devices at once: a program in which nodes are cut along an axis (ops/axes.hpp), a part a device.
//
// What is written are ordinary nodes: copies of the cut ones over parts of their operands, Slices of what is whole,
// Concats where a device needs all of what is cut, sums of partial results. So transfers, memory, prediction, saved
// plans and the loss of a device are those of any program.
#pragma once

#include "plan/split/decide.hpp"
#include "plan/split/team.hpp"

namespace troupe {

struct split_program {
  graph program;
  std::vector<device_index> placement; // by node
  std::vector<dim> nonnegative;        // see `plan::nonnegative`
  std::optional<plan_split> how;       // nullopt: nothing is cut
  std::string summary;                 // for people: what is cut, and for which devices
  hash128 decision;                    // equal for equal programs
};

/// Returns the dims of results at which cuts may begin; −1: at each node its longest axis.
std::vector<int> split_dims();

/// Returns the program as it is, placed on the device of the team with the largest share, and what that cannot run
/// beside it.
split_program on_one_device(const graph& program, std::span<const device_info> devices, const plan_options& options,
                            const split_team& team);

/// Returns the team that the file's annotations name; nullopt if they state no sharding, or not for these devices.
std::optional<split_team> annotated_team(const graph& program, std::span<const device_info> devices,
                                         const plan_options& options);

/// What `split` writes, and where nodes are that are not cut.
struct placed_decision {
  split_decision cuts;
  std::vector<device_index> home; // by node
};
placed_decision decide_placed(const graph& program, std::span<const device_info> devices, const plan_options& options,
                              const split_team& team, int along);

/// Splits a program, sorted topologically, for a team; `along` is one of `split_dims` or `along_annotations`. Returns
/// nullopt if nothing can be cut so. Throws `errc::unsupported` if inference refuses a part.
std::optional<split_program> split(const graph& program, std::span<const device_info> devices,
                                   const plan_options& options, const split_team& team, int along);

} // namespace troupe
