// troupe run --stream: many inputs through a session's queue.
#pragma once

#include "cli/monitoring.hpp"

namespace troupe::cli {

struct stream_arguments {
  std::string source; // a folder, "-" for names on stdin; empty: no stream
  std::filesystem::path output;
  std::chrono::milliseconds timeout{0}; // of a request
  monitor_arguments monitor;
};

/// Runs the model on each input and prints what that took. Ends with status 1 if one failed; that is told on stderr,
/// and hurts no other. Throws `errc::io` if the folder cannot be read.
void run_stream(const model_options& options, const stream_arguments& stream);

} // namespace troupe::cli
