#include "remote/session_memory.hpp"

#include <utility>

namespace troupe::remote {

std::shared_ptr<session_memory> session_memory::make(const shared_ledgers& ledgers, told_lack told) {
  std::shared_ptr<session_memory> made(new session_memory(std::move(told)));
  const std::lock_guard lock(made->telling_); // the ledgers may call already
  made->books_.resize(ledgers.size());
  for (uint32_t d = 0; d < ledgers.size(); ++d)
    made->books_[d].account = ledgers[d]->open([weak = std::weak_ptr(made), d] {
      if (const auto self = weak.lock())
        self->look_again(d);
    });
  return made;
}

bool session_memory::take(uint32_t device, const bound_plan& bound, device_index self,
                          std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    uint64_t seen = 0;
    {
      const std::lock_guard lock(waking_);
      // Before the question: memory that comes back between the question and the wait would not wake this thread.
      seen = changes_;
    }
    bool waits = false;
    if (take_now(device, bound, self, waits))
      return true;
    std::unique_lock lock(waking_);
    if (!waits || !woken_.wait_until(lock, end, [&] { return stopped_ || changes_ != seen; }) || stopped_)
      break;
  }
  const std::lock_guard lock(mutex_);
  books_[device].account->withdraw();
  return false;
}

bool session_memory::take_now(uint32_t device, const bound_plan& bound, device_index self, bool& waits) {
  const std::lock_guard lock(mutex_);
  device_book& book = books_[device];
  const uint64_t id = bound.layout->id;
  int64_t bytes = 0;
  if (!book.layouts.contains(id)) {
    bytes += slot_bytes(*bound.layout, self);
    if (!book.plans.contains(bound.source.get()))
      bytes += bound.source->weight_bytes[self];
  }
  if (bytes > 0 && !book.account->take(bytes)) {
    waits = book.account->waits();
    return false;
  }
  held_layout& layout = book.layouts[id];
  if (layout.plans++ == 0) {
    layout.slots = 1;
    ++book.plans[bound.source.get()];
  }
  return true;
}

bool session_memory::take_slot(uint32_t device, const bound_plan& bound, device_index self, uint32_t slot) {
  const std::lock_guard lock(mutex_);
  device_book& book = books_[device];
  const auto found = book.layouts.find(bound.layout->id);
  if (found == book.layouts.end())
    return false;
  const int64_t more = int64_t{slot} + 1 - found->second.slots;
  if (more <= 0)
    return true;
  if (book.account->take(more * slot_bytes(*bound.layout, self))) {
    found->second.slots += more;
    return true;
  }
  book.account->withdraw();
  wake(); // an install that waits asks again
  return false;
}

void session_memory::give_back(uint32_t device, const bound_plan& bound, device_index self) {
  const std::lock_guard lock(mutex_);
  device_book& book = books_[device];
  const auto layout = book.layouts.find(bound.layout->id);
  if (layout == book.layouts.end() || --layout->second.plans > 0)
    return;
  int64_t bytes = layout->second.slots * slot_bytes(*bound.layout, self);
  book.layouts.erase(layout);
  const auto weights = book.plans.find(bound.source.get());
  if (--weights->second == 0) {
    bytes += bound.source->weight_bytes[self];
    book.plans.erase(weights);
  }
  book.account->give_back(bytes);
  wake();
}

void session_memory::stop_waiting() {
  const std::lock_guard lock(waking_);
  stopped_ = true;
  woken_.notify_all();
}

void session_memory::look_again(uint32_t device) {
  {
    const std::lock_guard lock(telling_);
    device_book& book = books_[device];
    const int64_t lack = book.account->missing_elsewhere().value_or(0);
    if (std::exchange(book.told, lack) != lack)
      tell_(device, lack);
  }
  wake();
}

void session_memory::wake() {
  const std::lock_guard lock(waking_);
  ++changes_;
  woken_.notify_all();
}

} // namespace troupe::remote
