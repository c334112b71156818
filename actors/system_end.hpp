// How an actor system ends though threads hang in it or live longer.
#pragma once

#include <memory>

namespace troupe::actors {

/// Makes the calling thread forget a system's logger at its end. CAF notes that logger, counted, in a thread-local
/// object of every thread that makes, ends or asks a system, and a system's end waits for all of those: callers'
/// threads may live longer. And those of the main thread are destroyed before an engine in a static object is.
struct forgotten_logger {
  forgotten_logger() = default;
  ~forgotten_logger();
  forgotten_logger(const forgotten_logger&) = delete;
  forgotten_logger& operator=(const forgotten_logger&) = delete;
};

/// Keeps what hanging threads still use, for ever and reachable, on purpose: there is no safe moment to free it.
void abandon(std::shared_ptr<void> what);

} // namespace troupe::actors
