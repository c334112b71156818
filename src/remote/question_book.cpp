#include "remote/question_book.hpp"

namespace troupe::remote {

uint64_t question_book::expect(asker who) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) {
      waiting_.emplace(++last_, std::move(who));
      return last_;
    }
  }
  who.taken(nullptr, *ended_); // never changes again
  return 0;
}

void question_book::answer(uint64_t request, message& m) {
  asker who;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(request);
    if (found == waiting_.end())
      return;
    if (!found->second.fits(m))
      fail(errc::invalid_input, "question {} is answered by a message of another kind, {}", request, m.index());
    who = std::move(found->second);
    waiting_.erase(found);
  }
  who.taken(&m, {});
}

void question_book::end(const failure& why) {
  decltype(waiting_) waiting;
  {
    const std::lock_guard lock(mutex_);
    ended_ = why;
    waiting.swap(waiting_);
  }
  for (auto& [number, who] : waiting)
    who.taken(nullptr, why);
}

} // namespace troupe::remote
