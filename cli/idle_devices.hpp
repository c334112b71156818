// Devices that the caller names and a plan leaves idle.
#pragma once

#include "cli/command.hpp"

namespace troupe::cli {

/// Returns a line for each device of `--devices` that gets no node of the plan, with the reason. A CPU that is named
/// beside a GPU only helps out, and "all" names none.
std::vector<std::string> why_idle(const model_options& args, const plan& p);

/// Prints these lines on stderr, as warnings; none if a strategy decides who takes what.
void warn_of_idle_devices(const model_options& args, const plan& p);

} // namespace troupe::cli
