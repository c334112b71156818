#include "actors/remote_hosts.hpp"

#include "actors/actor_runtime.hpp"
#include "remote/remote_device.hpp"

#include <algorithm>
#include <unistd.h>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

constexpr auto connect_timeout = 10s, recall_timeout = 2s;
/// What is measured once and kept may take longer than what each connection measures.
constexpr remote::measuring_effort at_length{
    .telling_s = 0.25, .telling_trips = 8, .last_load = remote::max_frame_bytes / 2, .repeats = 3};
/// Between two calls to a host that was lost.
constexpr auto pause = 500ms;
/// Between two calls to one that left in order: it comes back when its owner wants it to.
constexpr auto long_pause = 3s;

/// What a worker's log calls this process.
std::string own_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0)
    name[0] = '\0';
  return fmt::format("{}:{}", *name ? name : "unknown", getpid());
}

/// Says which devices are those of a link.
std::function<bool(const device_info&)> is_of(const remote::host_client& client) {
  const std::vector<device_info>& all = client.devices();
  const uint64_t incarnation = all.empty() ? 0 : all.front().incarnation;
  return [name = client.name(), incarnation](const device_info& d) {
    return d.host == name && d.incarnation == incarnation;
  };
}

} // namespace

remote_hosts::remote_hosts(actor_runtime& runtime, std::unique_ptr<network> links)
    : runtime_(runtime), offers_(std::make_shared<remote::outbox>(maker_in(runtime.devices().blocks()))),
      network_(std::move(links)), calling_([this] { call_again(); }) {}

remote_hosts::~remote_hosts() {
  std::vector<known_host> hosts;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    hosts = hosts_;
    wake_.notify_all();
  }
  calling_.join();
  for (const known_host& h : hosts)
    if (h.client)
      h.client->close();
}

void remote_hosts::add(const host_address& host, const std::vector<std::string>& wanted) {
  {
    const std::lock_guard lock(mutex_);
    if (std::any_of(hosts_.begin(), hosts_.end(), [&](const known_host& h) { return h.at.name == host.name; }))
      fail(errc::invalid_argument, "two hosts are called '{}': give one another name, NAME=HOST:PORT", host.name);
    known_host& added = hosts_.emplace_back();
    added.at = host;
    added.wanted = wanted;
  }
  const failure why = capture([&] { connect(host, wanted, connect_timeout); });
  if (!why.failed())
    return;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(hosts_, [&](const known_host& h) { return h.at.name == host.name; });
  }
  fail(why.code, "{}", why.message);
}

std::vector<host_summary> remote_hosts::summary() const {
  std::vector<host_summary> all;
  const std::lock_guard lock(mutex_);
  for (const known_host& h : hosts_) {
    const remote::load_progress loads = h.client ? h.client->news().loads() : remote::load_progress{};
    all.push_back({.name = h.at.name,
                   .address = endpoint_text(h.at.host, h.at.port),
                   .lost = h.client == nullptr,
                   .problem = h.problem,
                   .version = h.version,
                   .round_trip_s = h.figures.round_trip_s,
                   .to_bytes_per_s = h.figures.up_bytes_per_s,
                   .from_bytes_per_s = h.figures.down_bytes_per_s,
                   .load_bytes = loads.total,
                   .loaded_bytes = loads.came});
  }
  return all;
}

measured_link remote_hosts::calibrate(const std::string& name) const {
  std::shared_ptr<remote::host_client> client;
  {
    const std::lock_guard lock(mutex_);
    for (const known_host& h : hosts_)
      if (h.at.name == name)
        client = h.client;
  }
  if (!client)
    fail(errc::device_lost, "host '{}' is gone: its link cannot be measured", name);
  const remote::link_figures measured = client->meter().measure(at_length);
  return {client->address(), measured.round_trip_s, measured.up_bytes_per_s, measured.down_bytes_per_s};
}

remote::host_activity remote_hosts::activity(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const known_host& h : hosts_)
    if (h.at.name == name && h.client)
      return h.client->activity();
  return {};
}

void remote_hosts::connect(const host_address& host, const std::vector<std::string>& wanted,
                           std::chrono::milliseconds timeout) {
  opened_link opened = network_->connect(
      host.host, host.port, remote::encode(remote::hello{.version = TROUPE_VERSION, .name = own_name()}), timeout);
  remote::message answer = remote::decode(opened.welcome);
  auto* greeting = std::get_if<remote::welcome>(&answer);
  if (!greeting)
    fail(errc::io, "{} is not a worker of troupe", endpoint_text(host.host, host.port));
  const std::string version = greeting->version, address = endpoint_text(host.host, host.port);
  remote::link_measuring how{.earlier = {}, .effort = opened.effort};
  if (const auto kept = runtime_.devices().kept_link(address))
    how.earlier = {.round_trip_s = kept->round_trip_s,
                   .up_bytes_per_s = kept->to_bytes_per_s,
                   .down_bytes_per_s = kept->from_bytes_per_s};
  auto client =
      remote::host_client::make(std::move(opened.link), host.name, address, std::move(*greeting), offers_, how);
  std::vector<device_factory> makes;
  for (uint32_t d = 0; d < client->devices().size(); ++d)
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), client->devices()[d].name) != wanted.end())
      makes.push_back([client, d] { return remote::make_remote_device(client, d); });
  runtime_.add_devices(makes, host::threading::own_thread);
  {
    const std::lock_guard lock(mutex_);
    for (known_host& h : hosts_)
      if (h.at.name == host.name) {
        h.client = client;
        h.figures = client->figures();
        h.version = version;
        h.problem.clear();
        h.leaves = false;
      }
  }
  client->on_leaving([this, raw = client.get(), name = host.name](const auto& why, const auto& need) {
    let_leave(*raw, name, why, need);
  });
  client->news().on_memory_wanted([this, raw = client.get()](uint32_t device, int64_t bytes) {
    runtime_.claim_memory(raw->devices()[device], bytes);
  });
  // Last: if the link has ended by now, this is called at once and takes out the devices that have joined above.
  client->on_end([this, raw = client.get()](const std::string& why) { lose(raw, why); });
}

void remote_hosts::let_leave(const remote::host_client& client, const std::string& name, const std::string& why,
                             const std::shared_ptr<const void>& need) {
  {
    const std::lock_guard lock(mutex_);
    for (known_host& h : hosts_)
      if (h.client.get() == &client) {
        h.leaves = true;
        h.problem = fmt::format("it leaves: {}", why);
      }
  }
  runtime_.let_leave(is_of(client), fmt::format("host '{}' leaves: {}", name, why), need);
}

void remote_hosts::lose(const remote::host_client* client, const std::string& why) {
  std::shared_ptr<remote::host_client> lost; // let go of outside of the lock
  {
    const std::lock_guard lock(mutex_);
    for (known_host& h : hosts_)
      if (h.client.get() == client) {
        lost = std::exchange(h.client, nullptr);
        h.next_call = std::chrono::steady_clock::now() + (h.leaves ? long_pause : 0s);
      }
    wake_.notify_all();
  }
  if (lost)
    runtime_.lose_devices(is_of(*lost), why);
}

void remote_hosts::call_again() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    std::vector<known_host> lost;
    for (const known_host& h : hosts_)
      if (!h.client && h.next_call <= std::chrono::steady_clock::now() &&
          h.figures.round_trip_s > 0) // one that `add` calls for the first time is not ours
        lost.push_back(h);
    lock.unlock();
    {
      std::vector<std::jthread> calls; // at the same time: one that does not answer keeps no other host away
      for (known_host& h : lost)
        calls.emplace_back([&] { h.problem = capture([&] { connect(h.at, h.wanted, recall_timeout); }).message; });
    }
    lock.lock();
    for (const known_host& tried : lost)
      for (known_host& h : hosts_)
        if (h.at.name == tried.at.name) {
          h.problem = tried.problem;
          h.next_call = std::chrono::steady_clock::now() + (h.leaves ? long_pause : pause);
        }
    wake_.wait_for(lock, pause, [&] { return closing_; });
  }
}

} // namespace troupe::actors
