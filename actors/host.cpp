#include "actors/host.hpp"

#include "actors/awake.hpp"
#include "actors/device_names.hpp"
#include "base/parallel.hpp"
#include "base/round_up.hpp"
#include "cpu/cpu_device.hpp"
#include "device/null_device.hpp"
#include "device/slow_device.hpp"
#include "plan/known_profile.hpp"
#include "vulkan/device_choice.hpp"
#include "vulkan/pipeline_file.hpp"
#include "vulkan/vulkan_device.hpp"

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <climits>

namespace troupe::actors {
namespace {

/// Opening a device may compile kernels or wait for a driver; asking for counters waits for one chunk at most.
constexpr auto open_timeout = std::chrono::minutes(2);
constexpr auto stats_timeout = std::chrono::seconds(10);

std::unique_ptr<device> make_null_device(const std::string& name) {
  return std::make_unique<null_device>(device_info{
      .name = name, .kind = device_kind::null, .description = "runs nothing", .memory_bytes = INT64_MAX / 2});
}

/// Several CPU devices share the cores.
int threads_of_each_cpu(const engine_options& options, const std::vector<device_request>& requests) {
  const auto cpus = std::count_if(requests.begin(), requests.end(),
                                  [](const device_request& r) { return r.kind == device_kind::cpu; });
  if (options.cpu_threads > INT_MAX)
    fail(errc::invalid_argument, "cpu_threads: {} threads", options.cpu_threads);
  const int asked = static_cast<int>(options.cpu_threads), all = asked > 0 ? asked : thread_count();
  return cpus > 1 ? std::max(1, static_cast<int>(ceil_div(all, cpus))) : asked;
}

} // namespace

void host::list_gpus(bool validation) {
  try {
    gpus_ = std::make_shared<const vulkan::instance>(vulkan::instance_options{validation});
    if (gpus_->gpus().empty())
      no_gpu_because_ = "no Vulkan driver offers a device";
  } catch (const error& e) {
    no_gpu_because_ = e.what();
  }
  if (!gpus_)
    return;
  for (const vulkan::listed_gpu& gpu : gpus_->gpus())
    hardware_gpus_ += vulkan::is_hardware(gpu.snapshot) && vulkan::why_unusable(gpu.snapshot).empty() ? 1 : 0;
  if (hardware_gpus_ == 0 && !gpus_->gpus().empty())
    no_gpu_because_ = explain_gpus();
}

std::string host::explain_gpus() const {
  std::string text;
  for (size_t i = 0; i < gpus_->gpus().size(); ++i) {
    const vulkan::gpu_snapshot& s = gpus_->gpus()[i].snapshot;
    const std::string why = vulkan::why_unusable(s);
    text += fmt::format("{}vulkan:{} ({}) {}", text.empty() ? "" : "; ", i, s.name,
                        why.empty() ? "is software, used only when it is named" : why);
  }
  return text;
}

device_factory host::factory_of(const device_request& request, const engine_options& options,
                                const std::shared_ptr<kernel_choices>& kernels, const gpu_ties& ties) const {
  const auto limited = options.memory.find(request.name);
  const int64_t limit = limited == options.memory.end() ? INT64_MAX : limited->second;
  switch (request.kind) {
    case device_kind::cpu:
      // Only GPUs gain from outputs in blocks.
      return [name = request.name, blocks = opens_gpus_ ? blocks_ : nullptr, threads = cpu_threads_] {
        return make_cpu_device(name, {.blocks = blocks, .threads = threads});
      };
    case device_kind::null: return [name = request.name] { return make_null_device(name); };
    case device_kind::slow:
      return [name = request.name, percent = request.percent, blocks = opens_gpus_ ? blocks_ : nullptr,
              threads = static_cast<int>(options.cpu_threads)] {
        return make_slow_device(make_cpu_device(name, {.blocks = blocks, .threads = threads}), name, percent);
      };
    case device_kind::control: fail(errc::internal, "control flow has no device");
    case device_kind::vulkan: break;
  }
  if (!gpus_ || request.gpu >= gpus_->gpus().size())
    fail(errc::invalid_argument, "there is no GPU '{}'{}{}", request.name, no_gpu_because_.empty() ? "" : ": ",
         no_gpu_because_);
  return [gpus = gpus_, request, blocks = blocks_, limit, kernels, ties, when = options.kernels] {
    return vulkan::make_vulkan_device(gpus, request.gpu, request.name,
                                      {.blocks = blocks,
                                       .measured = kernels,
                                       .memory_limit = limit,
                                       .kernels = when,
                                       .peer_set = ties.set,
                                       .for_peers = ties.timeline});
  };
}

std::shared_ptr<kernel_choices> host::kernels_of(const device_request& request) const {
  if (request.kind != device_kind::vulkan || !gpus_ || request.gpu >= gpus_->gpus().size())
    return nullptr;
  return std::make_shared<kernel_choices>(vulkan::shader_revisions_of(gpus_->gpus()[request.gpu].snapshot));
}

device_handle host::open_requested(const device_request& request, const engine_options& options, const gpu_ties& ties) {
  const std::shared_ptr<kernel_choices> kernels = kernels_of(request);
  device_handle device = open(factory_of(request, options, kernels, ties),
                              request.kind == device_kind::null ? threading::shared : threading::own_thread);
  device.info.fallback = request.fallback;
  device.kernels = kernels;
  if (kernels)
    for (const measured_profile& m : profiles_.devices)
      if (m.device == key_of(device.info))
        kernels->set(by_call(m.kernels));
  return device;
}

void host::open_devices(const engine_options& options, const std::vector<std::string>& names,
                        const engine_hooks& hooks) {
  if (may_name_gpus(names))
    list_gpus(hooks.gpu_validation);
  const std::vector<device_request> requests = parse_device_names(names, hardware_gpus_);
  opens_gpus_ = std::any_of(requests.begin(), requests.end(),
                            [](const device_request& r) { return r.kind == device_kind::vulkan; });
  cpu_threads_ = threads_of_each_cpu(options, requests);
  limits_ = options.memory;
  const std::string& file = options.profile_file;
  loaded_profiles loaded = load_profiles(file.empty() ? profile_path() : std::filesystem::path(file));
  profile_problem_ = std::move(loaded.problem);
  profiles_ = std::move(loaded);
  gpu_peers peers{std::vector<gpu_ties>(requests.size()), {}};
  if (gpus_)
    peers = find_gpu_peers(*gpus_, requests);
  why_gpus_are_apart_ = std::move(peers.why_apart);
  for (size_t i = 0; i < requests.size(); ++i) {
    const device_request& request = requests[i];
    try {
      add({open_requested(request, options, peers.ties[i])});
    } catch (const error& e) {
      if (!request.by_all)
        throw;
      no_gpu_because_ += fmt::format("{}{} ({}) does not open: {}", no_gpu_because_.empty() ? "" : "; ", request.name,
                                     gpus_->gpus()[request.gpu].snapshot.name, e.what());
    }
  }
  for (const device_factory& make : hooks.custom_devices)
    add({open(make, threading::own_thread)});
}

void host::check_complete(const std::vector<std::string>& names) const {
  const device_list all = devices();
  const auto is_open = [&](const std::string& name) {
    return std::any_of(all->begin(), all->end(), [&](const device_handle& d) { return d.info.name == name; });
  };
  for (const std::string& name : names)
    if (!is_open(name))
      fail(errc::invalid_argument, "there is no device '{}': no host of that name lends one called so", name);
  if (all->empty())
    fail(errc::invalid_argument, "an engine needs at least one device");
  for (const auto& limit : limits_)
    if (!is_open(limit.first))
      fail(errc::invalid_argument, "a memory limit names the device '{}', which is not open", limit.first);
}

std::optional<measured_link> host::kept_link(const std::string& address) const {
  for (const measured_link& l : profiles_.links)
    if (l.address == address)
      return l;
  return {};
}

device_list host::devices() const {
  const std::lock_guard lock(mutex_);
  return devices_;
}

void host::add(const std::vector<device_handle>& opened) {
  const std::lock_guard lock(mutex_);
  std::vector<device_handle> all = *devices_;
  all.insert(all.end(), opened.begin(), opened.end());
  if (std::any_of(opened.begin(), opened.end(), [](const device_handle& d) { return worth_looking(d.info); }))
    answers_fast_ = true;
  set_devices(std::move(all));
}

void host::set_devices(std::vector<device_handle> all) {
  for (device_handle& d : all)
    if (d.health->lost)
      d.actor = device_ref();
  devices_ = device_list(std::move(all));
}

void host::lose(const std::function<bool(const device_info&)>& which, const std::string& why) {
  const device_list all = devices();
  for (const device_handle& d : *all)
    if (!d.health->lost && which(d.info)) {
      d.health->lose(why);
      caf::anon_send_exit(d.actor, caf::exit_reason::kill);
    }
  const std::lock_guard lock(mutex_);
  set_devices(*devices_);
}

std::vector<std::string> host::gpu_messages() const {
  return gpus_ ? gpus_->messages() : std::vector<std::string>{};
}

device_handle host::open(device_factory make, threading where, const std::vector<device_handle>& beside) {
  auto health = std::make_shared<device_health>();
  device_handle handle{.info = {}, .health = health};
  handle.actor = where == threading::shared ? system_.spawn(device_actor, std::move(make), health)
                                            : system_.spawn<caf::detached>(device_actor, std::move(make), health);
  device_opened answer{{}, {errc::device_lost, "a device did not open in time"}};
  caf::scoped_actor self{system_};
  self->request(handle.actor, open_timeout, open_device{})
      .receive([&](device_opened& opened) { answer = std::move(opened); },
               [&](const caf::error&) { open_hangs_ = true; });
  const auto same_name = [&](const device_handle& d) { return d.info.name == answer.info.name && !d.health->lost; };
  const device_list all = devices();
  if (!answer.why.failed() &&
      (std::any_of(all->begin(), all->end(), same_name) || std::any_of(beside.begin(), beside.end(), same_name)))
    answer.why = {errc::invalid_argument, fmt::format("two devices are called '{}'", answer.info.name)};
  if (answer.why.failed()) {
    caf::anon_send_exit(handle.actor, caf::exit_reason::kill);
    throw error(answer.why.code, answer.why.message);
  }
  handle.info = std::move(answer.info);
  if (const auto limit = limits_.find(handle.info.name); limit != limits_.end())
    handle.info.memory_bytes = std::min(handle.info.memory_bytes, limit->second);
  handle.memory = std::make_shared<shared_ledger>(handle.info.memory_bytes);
  handle.info.profile = known_profile(handle.info, profiles_.devices);
  return handle;
}

std::vector<device_stats> host::stats() const {
  const device_list devices = this->devices();
  std::vector<device_stats> all(devices->size());
  caf::scoped_actor self{system_};
  for (size_t d = 0; d < devices->size(); ++d)
    if (!(*devices)[d].health->lost)
      self->request((*devices)[d].actor, stats_timeout, query_stats{})
          .receive([&](const device_stats& stats) { all[d] = stats; }, [](const caf::error&) {});
  return all;
}

bool host::any_lost() const {
  const device_list all = devices();
  return open_hangs_ ||
         std::any_of(all->begin(), all->end(), [](const device_handle& d) { return d.health->lost.load(); });
}

void host::close() {
  const device_list all = devices();
  for (const device_handle& d : *all)
    if (d.actor)
      caf::anon_send_exit(d.actor, caf::exit_reason::user_shutdown);
}

} // namespace troupe::actors
