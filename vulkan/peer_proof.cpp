#include "vulkan/peer_proof.hpp"

#include "base/hash.hpp"
#include "base/user_files.hpp"
#include "vulkan/device_choice.hpp"
#include "vulkan/imported_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::vulkan {
namespace {

namespace fs = std::filesystem;

/// Grows when what is tried changes.
constexpr uint32_t proof_version = 1;

/// What a verdict depends on.
hash128 key_of(std::span<const gpu_snapshot> gpus, gpu_pair pair) {
  hasher h;
  h.add(proof_version);
  for (const size_t number : {pair.first, pair.second}) {
    const gpu_snapshot& s = gpus[number];
    h.add(number);
    h.add(s.name);
    h.add(s.driver_version);
    h.add_bytes(s.pipeline_cache_uuid.data(), s.pipeline_cache_uuid.size());
  }
  return h.digest();
}

/// Returns why two GPUs need not be tried, empty if they have to be.
std::string why_hopeless(std::span<const gpu_snapshot> gpus, gpu_pair pair) {
  for (const size_t number : {pair.first, pair.second}) {
    const gpu_snapshot& s = gpus[number];
    if (!s.exports_timelines)
      return fmt::format("the driver of {} shares no timelines", s.name);
    if (!imports_blocks(s) || is_unified(s))
      return fmt::format("{} exchanges nothing through blocks of the host's memory", s.name);
  }
  return "";
}

/// Verdicts by key, as they are kept: a line for each, the key, a blank, and why not.
using kept_verdicts = std::map<std::string, std::string>;

kept_verdicts read_verdicts(const std::string& path) {
  kept_verdicts kept;
  std::ifstream file(path);
  constexpr size_t digits = 32;
  for (std::string line; std::getline(file, line);)
    if (line.size() > digits && line[digits] == ' ' && from_hex(line.substr(0, digits)))
      kept[line.substr(0, digits)] = line.substr(digits + 1);
  return kept;
}

void write_verdicts(const std::string& path, const kept_verdicts& kept) {
  std::string text;
  for (const auto& [key, why] : kept)
    text += fmt::format("{} {}\n", key, why);
  replace_file(path, std::as_bytes(std::span(text.data(), text.size()))); // if it fails, they are tried again
}

/// A process whose lines are read.
class trial_process {
public:
  explicit trial_process(trial_command words) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      return;
    std::vector<char*> arguments;
    for (std::string& word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&id_, words.front().c_str(), &actions, nullptr, arguments.data(), environ) != 0)
      id_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = ends[0];
  }
  ~trial_process() {
    end();
    if (output_ >= 0)
      close(output_);
  }
  trial_process(const trial_process&) = delete;
  trial_process& operator=(const trial_process&) = delete;

  bool runs() const { return id_ > 0; }

  /// Returns the next line; nullopt if there is none within `limit`, or any more.
  std::optional<std::string> next_line(std::chrono::milliseconds limit) {
    const auto give_up = std::chrono::steady_clock::now() + limit;
    for (;;) {
      if (const size_t end = read_.find('\n'); end != std::string::npos) {
        std::string line = read_.substr(0, end);
        read_.erase(0, end + 1);
        return line;
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - std::chrono::steady_clock::now());
      pollfd ready{output_, POLLIN, 0};
      const int events = left.count() > 0 ? poll(&ready, 1, static_cast<int>(left.count())) : 0;
      if (events < 0 && errno == EINTR)
        continue;
      char piece[256];
      const ssize_t count = events > 0 ? read(output_, piece, sizeof piece) : 0;
      if (count <= 0) {
        is_late_ = events == 0;
        return std::nullopt;
      }
      read_.append(piece, static_cast<size_t>(count));
    }
  }

  /// Returns why there was no line, and whether that is likely to be so again.
  std::pair<std::string, bool> why_silent() {
    if (is_late_)
      return {"it did not end", true};
    const int status = end();
    if (WIFSIGNALED(status)) {
      const int by = WTERMSIG(status);
      const bool crashed = by == SIGSEGV || by == SIGBUS || by == SIGABRT || by == SIGFPE || by == SIGILL;
      return {fmt::format("the trial was ended by signal {} ({})", by, strsignal(by)), crashed || by == SIGALRM};
    }
    return {fmt::format("the trial ended with status {}", WEXITSTATUS(status)), false};
  }

private:
  int end() {
    int status = 0;
    if (id_ <= 0)
      return status;
    if (is_late_)
      kill(id_, SIGKILL);
    while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return status;
  }

  pid_t id_ = -1;
  int output_ = -1;
  bool is_late_ = false;
  std::string read_;
};

/// What a trial has found, and whether it is worth keeping.
struct trial_result {
  std::string why_not;
  bool is_sure = true;
};

/// Tries the first of `pairs`, and those after it as far as one process goes. Returns what it found, at least one.
std::vector<trial_result> try_some(std::span<const gpu_pair> pairs, trial_command command,
                                   std::chrono::milliseconds limit) {
  if (command.empty())
    return {{"the command troupe, which tries it, is not beside the library", false}};
  for (const gpu_pair& pair : pairs)
    command.push_back(fmt::format("{}:{}", pair.first, pair.second));
  trial_process trials(std::move(command));
  if (!trials.runs())
    return {{"the command troupe, which tries it, does not start", false}};
  std::vector<trial_result> found;
  for (const gpu_pair& pair : pairs) {
    const std::string expected = trial_line(pair, "");
    std::optional<std::string> line;
    do
      line = trials.next_line(limit);
    while (line && !line->starts_with(expected)); // drivers may print what they like
    if (!line) {
      const auto [why, again] = trials.why_silent();
      found.push_back({why, again});
      return found;
    }
    found.push_back({line->substr(expected.size())});
  }
  return found;
}

} // namespace

std::string trial_line(gpu_pair pair, std::string_view why_not) {
  return fmt::format("peers {}:{} {}", pair.first, pair.second, why_not);
}

trial_command usual_trials() {
  Dl_info self{};
  std::vector<fs::path> folders;
  std::error_code problem;
  if (dladdr(reinterpret_cast<const void*>(&usual_trials), &self) && self.dli_fname)
    folders.push_back(fs::path(self.dli_fname).parent_path());
  folders.push_back(fs::read_symlink("/proc/self/exe", problem).parent_path());
  for (const fs::path& folder : folders)
    for (const char* from : {"", "../bin", "../../bin"}) // beside a program, and beside the library's folder
      if (const fs::path command = folder / from / "troupe";
          fs::is_regular_file(command, problem) && access(command.c_str(), X_OK) == 0)
        return {command.string(), std::string(trial_word)};
  return {};
}

std::string peer_file_path() {
  const fs::path folder = cache_folder();
  return folder.empty() ? std::string() : (folder / "gpu-peers").string();
}

std::vector<peer_verdict> prove_peers(std::span<const gpu_snapshot> gpus, const std::vector<gpu_pair>& pairs,
                                      const trial_command& trials, const std::string& file,
                                      std::chrono::milliseconds limit) {
  std::vector<peer_verdict> known;
  std::vector<gpu_pair> open;
  kept_verdicts kept = read_verdicts(file);
  for (const gpu_pair& pair : pairs) {
    if (std::string why = why_hopeless(gpus, pair); !why.empty())
      known.push_back({pair, std::move(why)});
    else if (const auto found = kept.find(to_hex(key_of(gpus, pair))); found != kept.end())
      known.push_back({pair, found->second});
    else
      open.push_back(pair);
  }
  bool is_new = false;
  for (size_t next = 0; next < open.size();)
    for (const trial_result& result : try_some(std::span(open).subspan(next), trials, limit)) {
      const gpu_pair pair = open[next++];
      known.push_back({pair, result.why_not});
      if (result.is_sure)
        kept[to_hex(key_of(gpus, pair))] = result.why_not;
      is_new |= result.is_sure;
    }
  if (is_new && !file.empty())
    write_verdicts(file, kept);
  return known;
}

std::vector<uint32_t> peer_sets(std::span<const size_t> gpus, std::span<const peer_verdict> verdicts) {
  const auto can = [&](size_t a, size_t b) {
    const gpu_pair pair{std::min(a, b), std::max(a, b)};
    return std::ranges::any_of(verdicts, [&](const peer_verdict& v) { return v.pair == pair && v.why_not.empty(); });
  };
  std::vector<std::vector<size_t>> sets; // of positions
  for (size_t i = 0; i < gpus.size(); ++i) {
    const auto fits = [&](const std::vector<size_t>& set) {
      return std::ranges::all_of(set, [&](size_t other) { return can(gpus[i], gpus[other]); });
    };
    const auto found = std::ranges::find_if(sets, fits);
    (found == sets.end() ? sets.emplace_back() : *found).push_back(i);
  }
  std::vector<uint32_t> numbers(gpus.size(), 0);
  uint32_t last = 0;
  for (const std::vector<size_t>& set : sets)
    if (set.size() > 1) {
      ++last;
      for (const size_t i : set)
        numbers[i] = last;
    }
  return numbers;
}

} // namespace troupe::vulkan
