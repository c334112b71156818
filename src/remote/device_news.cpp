#include "remote/device_news.hpp"

namespace troupe::remote {

void device_news::listen(uint32_t device, device_listener who) {
  const std::lock_guard lock(mutex_);
  listeners_[device] = std::move(who);
}

void device_news::on_memory_wanted(memory_told told) {
  const std::lock_guard lock(mutex_);
  told_memory_ = std::move(told);
}

load_progress device_news::loads() const {
  load_progress all;
  const std::lock_guard lock(mutex_);
  for (const auto& [device, load] : loads_) {
    all.came += load.came;
    all.total += load.total;
  }
  return all;
}

device_listener device_news::listener_of(uint32_t device) const {
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(device);
  return found == listeners_.end() ? device_listener{} : found->second;
}

void device_news::tell(chunk_made made) {
  if (const device_listener who = listener_of(made.device); who.on_chunk)
    who.on_chunk(std::move(made));
}

void device_news::tell(installed done) {
  {
    const std::lock_guard lock(mutex_);
    loads_.erase(done.device);
  }
  if (const device_listener who = listener_of(done.device); who.on_installed)
    who.on_installed(std::move(done));
}

void device_news::tell(const loading& how_far) {
  if (how_far.came < 0 || how_far.came > how_far.total)
    fail(errc::invalid_input, "{} of {} bytes of weights cannot have come", how_far.came, how_far.total);
  const device_listener who = listener_of(how_far.device);
  if (!who.on_progress)
    return;
  {
    const std::lock_guard lock(mutex_);
    load_progress& known = loads_[how_far.device];
    if (how_far.came <= known.came) // bytes that are there do not go away: else a host keeps a run waiting for ever
      return;
    known = {how_far.came, how_far.total};
  }
  who.on_progress();
}

void device_news::tell(const memory_wanted& lack) {
  if (lack.device >= devices_ || lack.bytes < 0)
    fail(errc::invalid_input, "{} bytes of device {} are wanted", lack.bytes, lack.device);
  memory_told told;
  {
    const std::lock_guard lock(mutex_);
    told = told_memory_;
  }
  if (told)
    told(lack.device, lack.bytes);
}

void device_news::end() {
  const std::lock_guard lock(mutex_);
  listeners_.clear();
}

} // namespace troupe::remote
