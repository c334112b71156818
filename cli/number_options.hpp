// Options that take numbers.
#pragma once

namespace CLI {
class App;
}

namespace troupe::cli {

/// Has each option of a command, and of its subcommands, that takes a number refuse what is not the number that was
/// typed: NaN, which CLI11's checks let through, infinity, and integers that its conversion wraps around.
void require_numbers(CLI::App& app);

} // namespace troupe::cli
