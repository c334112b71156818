#include "vulkan/peers.hpp"

#include "base/cpu_relax.hpp"
#include "base/shared_work.hpp"
#include "vulkan/device_choice.hpp"

#include <algorithm>
#include <unistd.h>

namespace troupe::vulkan {
namespace {

constexpr auto handle_type = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
/// A blocking wait is cut into slices: a GPU may be lost meanwhile, and then need not answer.
constexpr uint64_t slice_ns = 10'000'000;

template <class F>
F function_of(const device_context& context, const char* name) {
  const auto found = reinterpret_cast<F>(vkGetDeviceProcAddr(context.get(), name));
  if (!found)
    fail(errc::device_failed, "{} has no {}", context.facts().name, name);
  return found;
}

/// `exported`: whether others can import it.
semaphore_handle make_timeline(const device_context& context, bool exported) {
  const VkExportSemaphoreCreateInfo shared{VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO, nullptr, handle_type};
  const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, exported ? &shared : nullptr,
                                       VK_SEMAPHORE_TYPE_TIMELINE, 0};
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  VkSemaphore made = VK_NULL_HANDLE;
  check(vkCreateSemaphore(context.get(), &info, nullptr, &made), "vkCreateSemaphore");
  return {context.get(), made};
}

/// A thread that waits for another's submission looks for it as long as that mostly takes; then it looks now and then,
/// since a plan may be installed there first.
constexpr auto look_time = std::chrono::milliseconds(2);
constexpr auto pause_time = std::chrono::microseconds(50);

const peer_arrival& as_peers(const arrival_ref& when) {
  const auto* const known = dynamic_cast<const peer_arrival*>(when.get());
  expects(known != nullptr, "a value was promised to a GPU that does not know how");
  return *known;
}

/// Whether a value is there, or promised by work that has been submitted.
bool can_be_read(const moved_value& value) {
  if (!value.may_be_promised())
    return true; // it was there when the chunk was sent
  if (!value.is_told())
    return false;
  const arrival_ref& when = value.promised_for();
  return !when || as_peers(when).is_submitted();
}

} // namespace

/// A peer's timeline as a semaphore of the GPU that waits for it.
class peer_import {
public:
  peer_import(std::shared_ptr<peer_timeline> maker, std::shared_ptr<const device_context> reader)
      : maker_(std::move(maker)), reader_(std::move(reader)), semaphore_(make_timeline(*reader_, false)) {
    const auto import = function_of<PFN_vkImportSemaphoreFdKHR>(*reader_, "vkImportSemaphoreFdKHR");
    const std::lock_guard lock(maker_->mutex_);
    const VkImportSemaphoreFdInfoKHR info{VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR,
                                          nullptr,
                                          semaphore_.get(),
                                          0,
                                          handle_type,
                                          maker_->export_semaphore()};
    if (const VkResult result = import(reader_->get(), &info); result != VK_SUCCESS) {
      close(info.fd); // else it is the driver's
      check(result, "vkImportSemaphoreFdKHR");
    }
    maker_->imports_.push_back(this);
  }

  ~peer_import() {
    const std::lock_guard lock(maker_->mutex_);
    std::erase(maker_->imports_, this);
  }

  const peer_timeline& maker() const { return *maker_; }
  VkSemaphore semaphore() const { return semaphore_.get(); }

  /// Signals all that has been promised, if it is not; what a driver has to say against it does not matter here.
  void release() const noexcept {
    uint64_t reached = 0;
    const uint64_t promised = maker_->last_;
    if (vkGetSemaphoreCounterValue(reader_->get(), semaphore_.get(), &reached) != VK_SUCCESS || reached >= promised)
      return;
    const VkSemaphoreSignalInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, nullptr, semaphore_.get(), promised};
    vkSignalSemaphore(reader_->get(), &info);
  }

private:
  const std::shared_ptr<peer_timeline> maker_; // and its device
  const std::shared_ptr<const device_context> reader_;
  const semaphore_handle semaphore_;
};

peer_timeline::~peer_timeline() = default;

void peer_timeline::open(std::shared_ptr<const device_context> context) {
  semaphore_ = make_timeline(*context, true);
  context_ = std::move(context);
}

/// Returns a file descriptor that is the caller's.
int peer_timeline::export_semaphore() const {
  const auto get = function_of<PFN_vkGetSemaphoreFdKHR>(*context_, "vkGetSemaphoreFdKHR");
  const VkSemaphoreGetFdInfoKHR info{VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR, nullptr, semaphore_.get(),
                                     handle_type};
  int made = -1;
  check(get(context_->get(), &info, &made), "vkGetSemaphoreFdKHR");
  return made;
}

/// A driver that has no memory for the question says nothing about the value: it is asked again.
void peer_timeline::wait(uint64_t value) const {
  const VkSemaphore semaphore = semaphore_.get();
  const VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &semaphore, &value};
  while (!is_kept(value) && !is_lost()) {
    const VkResult result = vkWaitSemaphores(context_->get(), &info, slice_ns);
    if (result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST) // the maker's waiter hears of that, too
      return;
    if (result != VK_TIMEOUT)
      std::this_thread::sleep_for(pause_time);
  }
}

void peer_timeline::lose() noexcept {
  lost_ = true; // before it is looked at what has been promised: see `vulkan_device`
  const std::lock_guard lock(mutex_);
  for (const peer_import* each : imports_)
    each->release();
}

peers::peers(std::shared_ptr<const device_context> context, std::shared_ptr<peer_timeline> own)
    : context_(std::move(context)), own_(std::move(own)) {
  try {
    if (own_)
      own_->open(context_);
  } catch (const error&) {
    own_ = nullptr;
  }
}

peers::~peers() {
  if (own_)
    own_->lose();
}

peer_import* peers::import_of(const std::shared_ptr<peer_timeline>& maker) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = imports_.try_emplace(maker.get());
  if (is_new)
    try {
      found->second = std::make_unique<peer_import>(maker, context_);
    } catch (const error&) { // it stays null
    }
  return found->second.get();
}

void peers::add_wait(const arrival_ref& when, peer_links& links) {
  const peer_arrival& promised = as_peers(when);
  if (promised.is_over())
    return;
  const peer_import* const import = import_of(promised.maker());
  if (!import)
    return wait(when);
  if (promised.is_over()) // it was lost before it was imported
    return;
  const auto same = std::ranges::find(links.awaited, import->semaphore(), &semaphore_value::semaphore);
  if (same == links.awaited.end())
    links.awaited.push_back({import->semaphore(), promised.value()});
  else
    same->value = std::max(same->value, promised.value());
}

void peers::wait(const arrival_ref& when) {
  const peer_arrival& promised = as_peers(when);
  promised.maker()->wait(promised.value());
}

bool peers::await(const chunk_work& work) const {
  const bool looks = is_hardware(context_->facts()) && has_spare_cores();
  const auto sleeps_from = std::chrono::steady_clock::now() + (looks ? look_time : std::chrono::milliseconds(0));
  for (const value_ref& value : work.uploads)
    while (!can_be_read(*value)) {
      if (work.stop && work.stop->load(std::memory_order_relaxed))
        return false;
      if (std::chrono::steady_clock::now() < sleeps_from)
        cpu_relax();
      else
        std::this_thread::sleep_for(pause_time);
    }
  return true;
}

void peers::release_lost() {
  const std::lock_guard lock(mutex_);
  for (const auto& [maker, import] : imports_)
    if (import && maker->is_lost())
      import->release();
}

} // namespace troupe::vulkan
