#include "actors/worker.hpp"

#include "actors/host_names.hpp"
#include "actors/lent_device.hpp"

namespace troupe::actors {
namespace {

constexpr auto peer_timeout = std::chrono::seconds(2);

} // namespace

worker::worker(worker_options options)
    : options_(std::move(options)), runtime_(options_.devices, options_.hooks),
      network_(options_.hooks.make_network(options_.who)) {
  std::vector<remote::served_device_ptr> lent;
  const device_list opened = runtime_.devices().devices();
  for (const device_handle& d : *opened)
    lent.push_back(lend(runtime_.system(), d));
  remote::service_options service = options_.service;
  service.version = TROUPE_VERSION;
  service.make = maker_in(runtime_.devices().blocks());
  service.connect_peer = [this](const std::string& address) { return connect_peer(address); };
  service_ = std::make_shared<remote::host_service>(std::move(lent), std::move(service));
  exposed_ = network_->exposes(options_.host);
  // A caller may come while the worker ends.
  const auto accept = [weak = std::weak_ptr(service_)](const remote::frame& hello, const remote::link_ptr& link) {
    const auto lending = weak.lock();
    if (!lending)
      fail(errc::unsupported, "the worker ends");
    return lending->accept(hello, link);
  };
  port_ = network_->listen(options_.host, options_.port, accept);
}

worker::~worker() = default;

std::vector<device_info> worker::devices() const {
  std::vector<device_info> all;
  const device_list opened = runtime_.devices().devices();
  for (const device_handle& d : *opened)
    all.push_back(d.info);
  return all;
}

remote::link_ptr worker::connect_peer(const std::string& address) {
  const host_address where = parse_endpoint(address);
  const remote::hello who{.version = TROUPE_VERSION, .role = remote::role::peer, .name = "worker"};
  return network_->connect(where.host, where.port, remote::encode(who), peer_timeout).link;
}

} // namespace troupe::actors
