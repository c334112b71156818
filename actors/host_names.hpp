// Other hosts as people write them: "gpu-box:4242", "big=10.0.0.7:4242", "[fe80::1]:4242", "@cluster.txt".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// A worker to connect to.
struct host_address {
  /// Unique; the devices there are "NAME/vulkan:0" and so on.
  std::string name;
  std::string host;
  uint16_t port = 0;
};

/// Returns the hosts of a list "[NAME=]HOST:PORT,…", in its order; "@FILE" is replaced by the lines of a file, in which
/// "#" starts a comment. One without a name is called by its host, or, if hosts would share that, by "HOST:PORT".
/// Throws `errc::invalid_argument`, naming the entry, or `errc::io`.
std::vector<host_address> parse_hosts(const std::vector<std::string>& entries);

/// Returns what "HOST:PORT" says, as `--listen` takes it; port 0 is any free one. Throws `errc::invalid_argument`.
host_address parse_endpoint(std::string_view text);

/// Returns e.g. "gpu-box:4242" or "[::1]:4242".
std::string endpoint_text(const std::string& host, uint16_t port);

} // namespace troupe::actors
