// Devices of another host without a network: a worker's service in this process, joined to a session's side by a link
// in memory.
#pragma once

#include "remote/host_service.hpp"
#include "remote/remote_device.hpp"
#include "support/link_pair.hpp"

namespace troupe::test {

/// Lends a device to sessions: calls it where it is asked, one call at a time.
remote::served_device_ptr lend_inline(std::shared_ptr<device> d);

/// A worker and the links to it.
class far_host {
public:
  explicit far_host(std::vector<std::shared_ptr<device>> devices, remote::service_options options = {},
                    std::string name = "far");
  ~far_host();
  far_host(const far_host&) = delete;
  far_host& operator=(const far_host&) = delete;

  /// Connects one more session.
  std::shared_ptr<remote::host_client> connect(std::shared_ptr<remote::outbox> offers,
                                               const link_conditions& conditions = {});
  /// Connects with a new outbox.
  std::shared_ptr<remote::host_client> connect() { return connect(std::make_shared<remote::outbox>()); }
  /// Returns a link whose other end the worker serves, and the worker's answer to `first`.
  remote::link_ptr open(const remote::frame& first, remote::frame& answer, const link_conditions& conditions = {});

  remote::host_service& service() { return *service_; }
  /// The links so far, the oldest first.
  link_pair& link(size_t i) { return *links_.at(i); }
  /// Cuts the newest link, which is a session's, and waits until the worker has noticed. Returns whether it has in
  /// time.
  bool drop_newest();
  std::string address() const { return name_ + ":4242"; }

private:
  const std::string name_;
  std::unique_ptr<remote::host_service> service_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<link_pair>> links_;
};

/// Returns a device that is used over a link; it keeps the worker.
std::unique_ptr<device> open_far(std::unique_ptr<device> near);

} // namespace troupe::test
