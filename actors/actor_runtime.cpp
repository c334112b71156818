#include "actors/actor_runtime.hpp"

#include "actors/system_end.hpp"
#include "cost/profile_file.hpp"

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <filesystem>
#include <thread>

#include <unistd.h>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

/// An actor that may never end is given this long when the engine closes.
constexpr auto lost_device_grace = std::chrono::milliseconds(200);
/// Any other actor this long if devices may be silent for ever.
constexpr std::chrono::milliseconds closing_limit = std::chrono::minutes(10);

/// Checks the options; a device timeout that sets no limit becomes zero.
engine_options checked(engine_options options) {
  options.device_timeout = time_limit(options.device_timeout, "engine_options::device_timeout").value_or(0ms);
  if (const std::string& folder = options.recorder.folder; !folder.empty()) {
    std::error_code why;
    std::filesystem::create_directories(folder, why);
    if (why)
      fail(errc::io, "cannot make the folder '{}' for recordings: {}", folder, why.message());
  }
  return options;
}

std::unique_ptr<caf::actor_system_config> make_config(const engine_options& options) {
  auto config = std::make_unique<caf::actor_system_config>();
  // With the default work stealing, a message to an idle worker takes 80 µs; with one shared queue 10 µs.
  config->set("scheduler.policy", caf::atom("sharing"));
  config->set("scheduler.max-threads", std::max(1u, options.scheduler_threads));
  return config;
}

void forget_ended(std::vector<caf::actor_addr>& actors) {
  std::erase_if(actors, [](const caf::actor_addr& a) { return !caf::actor_cast<caf::strong_actor_ptr>(a); });
}

template <class Ref, class Message>
void tell_all(const std::vector<caf::actor_addr>& actors, const Message& message) {
  for (const caf::actor_addr& a : actors)
    if (auto actor = caf::actor_cast<Ref>(a))
      caf::anon_send(actor, message);
}

/// What hanging threads still use.
struct abandoned_system {
  std::unique_ptr<caf::actor_system_config> config;
  std::unique_ptr<caf::actor_system> system;
};

} // namespace

actor_runtime::actor_runtime(const engine_options& options, const engine_hooks& hooks)
    : options_(checked(options)), make_network_(hooks.make_network), config_(make_config(options)),
      system_(std::make_unique<caf::actor_system>(*config_)), host_(std::make_unique<host>(*system_)) {
  const forgotten_logger behind;
  try {
    open_all(hooks);
  } catch (...) {
    close(); // the system's own end would wait for a device that hangs
    throw;
  }
}

void actor_runtime::open_all(const engine_hooks& hooks) {
  const split_names names = split_device_names(options_.devices);
  host_->open_devices(options_, names.here, hooks);
  for (const host_address& h : parse_hosts(options_.hosts))
    add_host(h, names.elsewhere);
  host_->check_complete(names.elsewhere);
}

void actor_runtime::add_host(const host_address& host, const std::vector<std::string>& wanted) {
  const forgotten_logger behind;
  check_open();
  {
    const std::lock_guard lock(connecting_);
    if (!hosts_)
      hosts_ = std::make_unique<remote_hosts>(*this, make_network_(options_.credentials));
  }
  hosts_->add(host, wanted);
}

std::vector<host_summary> actor_runtime::other_hosts() const {
  const std::lock_guard lock(connecting_);
  return hosts_ ? hosts_->summary() : std::vector<host_summary>{};
}

remote::host_activity actor_runtime::activity_of(const std::string& host) const {
  const std::lock_guard lock(connecting_);
  return hosts_ ? hosts_->activity(host) : remote::host_activity{};
}

measured_link actor_runtime::calibrate_link(const std::string& host) const {
  {
    const std::lock_guard lock(connecting_);
    expects(hosts_ != nullptr, "calibrate_link: there are no other hosts");
  }
  return hosts_->calibrate(host); // made once, and gone with this only
}

actor_runtime::~actor_runtime() {
  close();
}

std::unique_ptr<recording::recorder> actor_runtime::make_recorder(const std::vector<device_handle>& devices,
                                                                  const std::shared_ptr<session_plans>& plans,
                                                                  bool follows_speeds) {
  const recorder_options& how = options_.recorder;
  if (how.folder.empty())
    return nullptr;
  std::vector<device_info> infos;
  infos.reserve(devices.size());
  for (const device_handle& d : devices)
    infos.push_back(d.info);
  recording::session_facts facts = recording::facts_of(*plans, infos, options_.completion, follows_speeds);
  facts.version = TROUPE_VERSION;
  facts.profile_file = options_.profile_file.empty() ? profile_path().string() : options_.profile_file;
  const std::filesystem::path file =
      std::filesystem::path(how.folder) / fmt::format("session-{}-{}.recording", getpid(), ++recordings_);
  return std::make_unique<recording::recorder>(file, facts, how.memory, plans);
}

coordinator_ref actor_runtime::spawn_coordinator(const device_list& devices, std::shared_ptr<session_plans> plans) {
  const forgotten_logger behind;
  const std::lock_guard lock(mutex_);
  if (closed_)
    fail(errc::cancelled, "the engine is closed");
  forget_ended(coordinators_);
  const bool follows = options_.kernels == kernel_time::later;
  std::unique_ptr<recording::recorder> notes = make_recorder(*devices, plans, follows);
  coordinator_options options{
      *devices, std::move(plans), system_->spawn<caf::detached>(planner), options_.completion, options_.device_timeout,
      follows,  std::move(notes)};
  coordinator_ref actor = system_->spawn(coordinator, std::move(options));
  coordinators_.push_back(actor.address());
  const device_list now = host_->devices();
  // Devices that have joined since the session was planned, and are not lost again. `announce` holds the same lock, so
  // the session hears of each device once.
  for (size_t d = devices->size(); d < now->size(); ++d)
    if ((*now)[d].actor)
      caf::anon_send(actor, device_joined{std::make_shared<const device_handle>((*now)[d])});
  for (const device_handle& d : *now)
    if (auto leaving = d.health->leaves(); leaving && d.actor)
      caf::anon_send(actor, device_leaves{d.actor.address(), leaving->second, leaving->first});
  return actor;
}

stream_ref actor_runtime::spawn_stream(stream_parts parts) {
  const forgotten_logger behind;
  const std::lock_guard lock(mutex_);
  if (closed_)
    fail(errc::cancelled, "the engine is closed");
  forget_ended(streams_);
  stream_ref actor = system_->spawn<caf::detached>(stream, std::move(parts));
  streams_.push_back(actor.address());
  return actor;
}

void actor_runtime::add_devices(const std::vector<device_factory>& makes, host::threading where) {
  const forgotten_logger behind;
  const std::lock_guard one_by_one(joining_);
  check_open();
  std::vector<device_handle> opened;
  try {
    for (const device_factory& make : makes)
      opened.push_back(host_->open(make, where, opened));
    announce(opened);
  } catch (...) {
    for (const device_handle& d : opened)
      caf::anon_send_exit(d.actor, caf::exit_reason::user_shutdown);
    throw;
  }
}

void actor_runtime::announce(const std::vector<device_handle>& joined) {
  const std::lock_guard lock(mutex_);
  if (closed_)
    fail(errc::cancelled, "the engine is closed");
  host_->add(joined);
  for (const device_handle& d : joined) {
    const device_joined message{std::make_shared<const device_handle>(d)};
    tell_all<coordinator_ref>(coordinators_, message);
    tell_all<stream_ref>(streams_, message);
  }
}

void actor_runtime::let_leave(const std::function<bool(const device_info&)>& which, const std::string& why,
                              const std::shared_ptr<const void>& need) {
  const forgotten_logger behind;
  const std::lock_guard lock(mutex_);
  const device_list all = host_->devices();
  for (const device_handle& d : *all)
    if (!closed_ && !d.health->lost && which(d.info)) {
      d.health->leave(why, need);
      tell_all<coordinator_ref>(coordinators_, device_leaves{d.actor.address(), why, need});
    }
}

void actor_runtime::claim_memory(const device_info& device, int64_t bytes) {
  const forgotten_logger behind;
  const device_list all = host_->devices();
  for (const device_handle& d : *all)
    if (d.info.name == device.name && d.info.incarnation == device.incarnation)
      d.memory->claim(bytes);
}

void actor_runtime::lose_devices(const std::function<bool(const device_info&)>& which, const std::string& why) {
  const forgotten_logger behind;
  host_->lose(which, why);
}

void actor_runtime::check_open() {
  const std::lock_guard lock(mutex_);
  if (closed_)
    fail(errc::cancelled, "the engine is closed");
}

tensor actor_runtime::fetch(const device_tensor& value) {
  const forgotten_logger behind;
  check_open();
  return host_->fetch(value, options_.device_timeout);
}

device_tensor actor_runtime::put(const tensor& value, const std::string& device) {
  const forgotten_logger behind;
  check_open();
  return host_->put(value, device, options_.device_timeout);
}

void actor_runtime::close() {
  const forgotten_logger behind;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true))
      return;
    for (const auto* sessions : {&streams_, &coordinators_})
      for (const caf::actor_addr& a : *sessions)
        if (auto actor = caf::actor_cast<caf::strong_actor_ptr>(a))
          caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }
  host_->close();
  hosts_ = nullptr; // what waits for other hosts ends
  const bool ended = await_actors();
  if (!ended)
    abandon(std::make_shared<abandoned_system>(abandoned_system{std::move(config_), std::move(system_)}));
  callbacks_->close(ended);
}

bool actor_runtime::await_actors() const {
  const auto silence = options_.device_timeout.count() > 0 ? options_.device_timeout : closing_limit;
  const auto limit = host_->any_lost() ? lost_device_grace : std::max(silence, lost_device_grace);
  const auto end = std::chrono::steady_clock::now() + limit;
  auto pause = std::chrono::microseconds(20);
  while (system_->registry().running() > 0) {
    if (std::chrono::steady_clock::now() >= end)
      return false;
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(pause * 2, 2ms);
  }
  return true;
}

} // namespace troupe::actors
