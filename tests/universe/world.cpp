#include "universe/world.hpp"

#include "support/reference_device.hpp"
#include "universe/virtual_disk.hpp"

#include <thread>
#include <unistd.h>

namespace troupe::universe {

using namespace std::chrono_literals;
using test::below;

world_rules rules_of(uint64_t seed) {
  random_source r(seed);
  world_rules rules{.seed = seed};
  rules.homes = 1 + below(r, 2);
  rules.workers = 1 + below(r, below(r, 8) == 0 ? 8 : 3);
  rules.home_devices = 1 + below(r, 3);
  rules.callers = 1 + below(r, 4);
  rules.operations = 2 + below(r, 8);
  rules.troubles = below(r, 8) == 0 ? 0 : 1 + below(r, 12);
  rules.failing_devices = below(r, 3) == 0;
  rules.memory = below(r, 4) == 0 ? 20'000 + static_cast<int64_t>(below(r, 300'000)) : 0;
  rules.full_disk_chance = below(r, 4) == 0 ? 0.3 : 0;
  rules.is_busy = below(r, 4) > 0;
  rules.lies = std::array{liar::none, liar::none, liar::guest, liar::worker}[below(r, 4)];
  return rules;
}

world::world(const world_rules& rules, story& tale)
    : rules_(rules), tale_(tale), random_(rules.seed + 1),
      folder_(std::filesystem::path("/dev/shm") / fmt::format("troupe-universe-{:010}", gettid())),
      sites_(rules_.workers), homes_(rules_.homes) {
  set_full_disk_chance(rules_.full_disk_chance);
  excuses_.failing_devices = rules_.failing_devices;
  for (size_t i = 0; i < sites_.size(); ++i) {
    sites_[i].name = fmt::format("w{}", i);
    sites_[i].weights = folder_ / sites_[i].name;
  }
  for (size_t i = 0; i < homes_.size(); ++i)
    homes_[i].name = fmt::format("home{}", i);
  mend_all(); // opens the workers
  for (home& at : homes_)
    at.lives = std::make_unique<engine>(open_engine(at.name, rules_.home_devices));
  let_in_liar();
  tale_.tell("{} homes with {} devices each, {} workers, {} callers{}{}{}", homes_.size(), rules_.home_devices,
             sites_.size(), rules_.callers, rules_.failing_devices ? ", devices that fail" : "",
             rules_.memory > 0 ? fmt::format(", {} bytes a device", rules_.memory) : "",
             rules_.full_disk_chance > 0 ? ", full disks" : "");
}

engine world::open_engine(const std::string& name, size_t devices, const std::vector<std::string>& more_hosts) {
  engine_options options{.devices = {}, .credentials = {.insecure = true}, .device_timeout = rules_.device_timeout};
  for (const site& worker : sites_)
    options.hosts.push_back(fmt::format("{0}={0}:1", worker.name));
  for (const std::string& other : more_hosts)
    options.hosts.push_back(fmt::format("{0}={0}:1", other));
  engine_hooks hooks{.make_network = [this, name](const host_credentials&) { return internet_.join(name); }};
  for (size_t d = 0; d < devices; ++d) {
    const std::string own = fmt::format("h{}", d);
    hooks.custom_devices.push_back(device_of(own, script_of(rules_.failing_devices && d > 0)));
    if (rules_.memory > 0)
      options.memory[own] = rules_.memory;
  }
  return make_engine(options, hooks);
}

engine world::open_guest(const std::string& name) {
  return open_engine(name, 1);
}

/// From when its engine is open, a guest lies or a worker lies to it.
void world::let_in_liar() {
  if (rules_.lies == liar::none)
    return;
  const std::string guest = "guest";
  const bool is_worker = rules_.lies == liar::worker;
  tale_.tell("{} lies", is_worker ? liar_.name : guest);
  if (is_worker) {
    liar_.weights = folder_ / liar_.name;
    open_worker(liar_);
  }
  misled_ =
      std::make_unique<engine>(open_engine(guest, 1, is_worker ? std::vector{liar_.name} : std::vector<std::string>()));
  internet_.let_lie(is_worker ? liar_.name : guest, rules_.seed + 2, tale_);
}

world::~world() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

fault_script world::script_of(bool may_fail) {
  fault_script script;
  if (below(random_, 3) > 0)
    script.delay = std::chrono::microseconds(1 + below(random_, rules_.is_busy ? 60'000 : 2'000));
  if (!may_fail || below(random_, 2) == 0)
    return script;
  const uint64_t at = below(random_, 30);
  switch (below(random_, 5)) {
    case 0: script.fail_at = at; break;
    case 1: script.stall_at = at; break;
    case 2: script.die_at = at; break;
    case 3: script.stall_fetches = true; break;
    default: script.hang_at = at; script.latch = latches_.emplace_back(std::make_shared<hang_latch>());
  }
  return script;
}

device_factory world::device_of(const std::string& name, const fault_script& script) {
  return
      [name, script] { return std::make_unique<fault_device>(std::make_unique<test::reference_device>(name), script); };
}

void world::open_worker(site& at) {
  actors::worker_options options{.devices = {.devices = {}, .device_timeout = rules_.device_timeout},
                                 .who = {.insecure = true},
                                 .host = at.name,
                                 .port = 1};
  options.hooks.make_network = [this, name = at.name](const host_credentials&) { return internet_.join(name); };
  options.service.weights = at.weights;
  at.devices = 1 + below(random_, 2);
  at.may_hang = false;
  for (size_t d = 0; d < at.devices; ++d) {
    const std::string name = fmt::format("d{}", d);
    const fault_script script = script_of(rules_.failing_devices);
    at.may_hang |=
        script.stall_at != fault_script::never || script.hang_at != fault_script::never || script.stall_fetches;
    options.hooks.custom_devices.push_back(device_of(name, script));
    if (rules_.memory > 0)
      options.devices.memory[name] = rules_.memory;
  }
  at.worker = std::make_unique<actors::worker>(std::move(options));
}

void world::play() {
  std::vector<std::thread> callers;
  for (size_t c = 0; c < rules_.callers; ++c)
    callers.emplace_back([this, c] { call_models(*this, *homes_[c % homes_.size()].lives, c, false); });
  if (misled_)
    callers.emplace_back([this] { call_models(*this, *misled_, rules_.callers, true); });
  make_troubles();
  for (std::thread& t : callers)
    t.join();
  mend_all();
  check_hosts_are_back();
  check_devices_are_back();
  for (home& at : homes_)
    at.lives = nullptr;
  misled_ = nullptr;
  for (const auto& latch : latches_)
    latch->release();
  check_nothing_is_left();
  for (site& at : sites_) {
    at.worker = nullptr;
    at.await_end();
  }
  liar_.worker = nullptr;
}

} // namespace troupe::universe
