#include "actors/network/gate.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <vector>

namespace troupe::actors {

gate::gate(file_descriptor listening, tls_context tls, std::function<void(channel)> admit,
           std::chrono::milliseconds max_age)
    : listening_(std::move(listening)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), tls_(std::move(tls)),
      admit_(std::move(admit)), max_age_(max_age), thread_([this] { work(); }) {}

gate::~gate() {
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void gate::work() {
  for (std::vector<pollfd> polled;;) {
    polled.assign({{wake_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}});
    for (const visitor& v : visitors_)
      polled.push_back({v.at.fd(), static_cast<short>(v.waits_for == progress::wants_output ? POLLOUT : POLLIN), 0});
    poll(polled.data(), polled.size(), visitors_.empty() ? -1 : 100);
    if (polled[0].revents != 0)
      return;
    const auto now = std::chrono::steady_clock::now();
    auto ready = polled.begin() + 2;
    for (auto v = visitors_.begin(); v != visitors_.end(); ++ready) {
      const auto one = v++;
      if (one->end < now) // however much it says: who sends a byte now and then is not shaking hands
        visitors_.erase(one);
      else if (ready->revents != 0)
        go_on(one);
    }
    if (polled[1].revents != 0)
      accept_some();
  }
}

void gate::accept_some() {
  for (size_t accepted = 0; accepted < max_unshaken; ++accepted) {
    file_descriptor fd = accept_one(listening_.get());
    const bool out_of_descriptors = fd.get() < 0 && (errno == EMFILE || errno == ENFILE);
    if ((fd.get() >= 0 && visitors_.size() >= max_unshaken) || (out_of_descriptors && !visitors_.empty()))
      // The oldest, not the newest: strangers who keep connections open do not keep members out.
      visitors_.pop_front();
    else if (out_of_descriptors)
      std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the queue stays as it is, and poll returns at once
    if (fd.get() < 0)
      return;
    visitors_.push_back({channel(std::move(fd), tls_, true), std::chrono::steady_clock::now() + max_age_});
  }
}

void gate::go_on(std::list<visitor>::iterator one) {
  one->waits_for = one->at.shake_hands();
  if (one->waits_for == progress::done)
    admit_(std::move(one->at));
  if (one->waits_for == progress::done || one->waits_for == progress::ended)
    visitors_.erase(one);
}

} // namespace troupe::actors
