#include "cli/progress.hpp"

#include "cli/progress_text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <unistd.h>

namespace troupe::cli {
namespace {

constexpr int interrupted_status = 128 + SIGINT;
constexpr auto quiet_at_first = std::chrono::milliseconds(500), between = std::chrono::milliseconds(250);

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

/// Writes over the terminal's last line; an empty text takes it away.
void write_line(const std::string& text) {
  fmt::print(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
}

sigset_t only_interrupt() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

} // namespace

progress::progress(std::string what, bool wanted) : what_(std::move(what)) {
  if (wanted && isatty(STDERR_FILENO))
    drawer_ = std::jthread([this](const std::stop_token& end) { draw_until(end); });
}

progress::~progress() {
  if (drawer_.joinable()) {
    drawer_.request_stop();
    drawer_.join();
  }
  clear();
}

void progress::draw_until(const std::stop_token& end) {
  std::unique_lock lock(lock_);
  ended_.wait_for(lock, end, quiet_at_first, [] { return false; });
  while (!end.stop_requested()) {
    shown_ = true;
    write_line(text());
    ended_.wait_for(lock, end, between, [] { return false; });
  }
}

std::string progress::text() {
  const auto now = clock::now();
  const std::string other = other_ ? other_(seconds(now - other_since_.value_or(now))) : "";
  if (other.empty())
    other_since_.reset();
  else if (!other_since_)
    other_since_ = now;
  return other.empty() ? progress_text(what_, done_, all_, unit_, seconds(now - begin_)) : other;
}

void progress::watch(std::function<std::string(double)> other) {
  const std::lock_guard lock(lock_);
  other_ = std::move(other);
}

void progress::show(double done, double all, std::string unit) {
  const std::lock_guard lock(lock_);
  done_ = done;
  all_ = all;
  unit_ = std::move(unit);
}

void progress::clear() {
  const std::lock_guard lock(lock_);
  if (shown_)
    write_line("");
  shown_ = false;
}

interrupts::interrupts() {
  const sigset_t interrupt = only_interrupt();
  pthread_sigmask(SIG_BLOCK, &interrupt, nullptr); // threads made from now on inherit it
  watcher_ = std::jthread([this, interrupt](const std::stop_token& end) {
    constexpr timespec slice{0, 50'000'000};
    while (!end.stop_requested())
      if (sigtimedwait(&interrupt, nullptr, &slice) == SIGINT && !source_.request_stop())
        _exit(interrupted_status);
  });
}

interrupts::~interrupts() {
  watcher_.request_stop();
  watcher_.join();
  const sigset_t interrupt = only_interrupt();
  pthread_sigmask(SIG_UNBLOCK, &interrupt, nullptr);
}

void interrupts::exit_if_requested() const {
  if (!requested())
    return;
  fmt::print(stderr, "troupe: interrupted\n");
  throw CLI::RuntimeError(interrupted_status);
}

} // namespace troupe::cli
