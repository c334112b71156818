#include "support/worker_process.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {
namespace {

// Older lines are forgotten.
constexpr size_t most_log_bytes = size_t{1} << 20;

} // namespace

worker_process::worker_process(std::vector<std::string> options, uint16_t port, const host_place& where) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0)
    throw std::runtime_error("no pipe for a worker");
  options.insert(options.begin(), {TROUPE_COMMAND, "worker", "--listen", where.address + ":" + std::to_string(port)});
  if (std::find(options.begin(), options.end(), "--tls-cert") == options.end())
    options.push_back("--insecure");
  std::vector<char*> words;
  for (std::string& word : options)
    words.push_back(word.data());
  words.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); // whatever ends the test
    dup2(pipe_ends[1], STDOUT_FILENO);
    if (where.space >= 0 && setns(where.space, CLONE_NEWNET) != 0)
      _exit(126);
    for (int fd = STDERR_FILENO + 1; fd < 1024; ++fd)
      close(fd);
    execv(TROUPE_COMMAND, words.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  output_ = pipe_ends[0];
  log_reader_ = std::thread([this] { read_log(); });
  const std::string said = next_line();
  const std::string at = "\"at\":\"" + where.address + ":";
  const size_t found = said.find(at);
  if (found == std::string::npos) {
    kill_now();
    log_reader_.join();
    close(output_);
    throw std::runtime_error("a worker does not listen: " + said);
  }
  port_ = static_cast<uint16_t>(std::stoi(said.substr(found + at.size())));
}

worker_process::~worker_process() {
  kill_now();
  log_reader_.join();
  close(output_);
}

void worker_process::kill_now() {
  if (pid_ <= 0)
    return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void worker_process::hang() {
  kill(pid_, SIGSTOP);
}

void worker_process::go_on() {
  kill(pid_, SIGCONT);
}

/// Always, since a full pipe would stop the worker.
void worker_process::read_log() {
  char bytes[4096];
  for (ssize_t got = 0; (got = read(output_, bytes, sizeof bytes)) > 0;) {
    const std::lock_guard lock(mutex_);
    log_.append(bytes, static_cast<size_t>(got));
    if (log_.size() > most_log_bytes)
      log_.erase(0, log_.find('\n', log_.size() - most_log_bytes) + 1);
    logged_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  log_is_over_ = true;
  logged_.notify_all();
}

std::string worker_process::next_line() {
  std::unique_lock lock(mutex_);
  logged_.wait(lock, [this] { return log_is_over_ || log_.find('\n') != std::string::npos; });
  const size_t end = std::min(log_.find('\n'), log_.size() - 1) + 1;
  std::string line = log_.substr(0, end);
  log_.erase(0, end);
  return line;
}

void worker_process::ask_to_leave() {
  kill(pid_, SIGTERM);
}

int worker_process::await_end() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool worker_process::has_ended() {
  if (pid_ > 0 && waitpid(pid_, &end_status_, WNOHANG) == pid_)
    pid_ = -1;
  return pid_ <= 0;
}

std::string worker_process::last_words() {
  std::string text = !has_ended()               ? "runs"
                     : WIFSIGNALED(end_status_) ? "ended by signal " + std::to_string(WTERMSIG(end_status_))
                                                : "ended with status " + std::to_string(WEXITSTATUS(end_status_));
  const std::lock_guard lock(mutex_);
  return text + "; its log:\n" + log_;
}

int64_t worker_process::status_kb(const std::string& what) const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(what + ":"))
      return std::stoll(line.substr(what.size() + 1));
  return -1;
}

int worker_process::descriptors() const {
  int count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd"))
    ++count;
  return count;
}

} // namespace troupe::test
