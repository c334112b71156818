#include "universe/universe_process.hpp"

#include "universe/virtual_threads.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::universe {
namespace {

/// A universe that takes longer than that, in real time, hangs where no virtual thread waits.
constexpr unsigned real_limit_s = 120;

story tale;

/// What `parse` reads.
void report(int to) {
  std::string text =
      fmt::format("{} {} {}\n", order_digest(), thread_switches(), 1e-9 * static_cast<double>(virtual_ns()));
  for (const auto& [what, count] : tale.counts())
    text += fmt::format("count {} {}\n", count, what);
  for (const std::string& problem : tale.problems())
    text += fmt::format("WRONG {}\n", problem);
  if (write(to, text.data(), text.size()) < 0)
    std::abort();
}

void tell_at_the_end(int which) {
  tale.print(); // as far as that is still possible
  signal(which, SIG_DFL);
  raise(which);
}

/// Lives in the process of one seed.
[[noreturn]] void play(const world_rules& how, bool tells, int answer) {
  random_source r(how.seed + 3);
  const thread_rules threads{.seed = how.seed,
                             .switch_chance = std::array{0.0, 0.01, 0.1, 0.3}[r() % 4],
                             .stall_chance = r() % 4 == 0 ? 0.0005 : 0,
                             .longest_stall_ns = 300'000'000,
                             .end_ns = 3600'000'000'000};
  alarm(real_limit_s);
  if (tells)
    for (const int which : {SIGSEGV, SIGBUS, SIGABRT, SIGALRM})
      signal(which, tell_at_the_end);
  begin_virtual_threads(threads, [&](stuck why) {
    tale.accuse("{}", why == stuck::all_wait ? "all threads wait for each other" : "it goes on for more than an hour");
    report(answer);
    if (tells) {
      tale.print();
      print_threads();
    }
    std::_Exit(1);
  });
  {
    world w(how, tale);
    w.play();
  }
  report(answer);
  if (tells)
    tale.print();
  std::_Exit(0);
}

/// What the nursery is asked for.
struct wish {
  world_rules rules;
  bool tells = false;
};
static_assert(std::is_trivially_copyable_v<wish>);

/// Stands after what a universe says, before the status of its process.
constexpr const char* end_word = "END ";

/// The nursery's process; it allocates nothing.
[[noreturn]] void tend(int wishes, int answers) {
  wish next;
  while (read(wishes, &next, sizeof next) == sizeof next) {
    const pid_t child = fork();
    if (child == 0)
      play(next.rules, next.tells, answers);
    int status = 0;
    waitpid(child, &status, 0);
    dprintf(answers, "%s%d\n", end_word, status);
  }
  std::_Exit(0);
}

/// Reads what a universe says, its status after it.
std::string read_answer(int from) {
  std::string text;
  std::array<char, 4096> part{};
  do {
    const ssize_t n = read(from, part.data(), part.size());
    if (n <= 0)
      std::abort();
    text.append(part.data(), static_cast<size_t>(n));
  } while (text.back() != '\n' || text.rfind(end_word) == std::string::npos);
  return text;
}

verdict parse(const std::string& text) {
  verdict v;
  char* at = nullptr;
  v.digest = std::strtoull(text.c_str(), &at, 10);
  v.switches = std::strtoull(at, &at, 10);
  v.virtual_s = std::strtod(at, &at);
  for (size_t line = text.find('\n'); line != std::string::npos && line + 1 < text.size();) {
    const size_t end = text.find('\n', ++line);
    const std::string words = text.substr(line, end - line);
    if (words.starts_with("WRONG "))
      v.problems.push_back(words.substr(6));
    else if (words.starts_with("count ")) {
      char* name = nullptr;
      const uint64_t n = std::strtoull(words.c_str() + 6, &name, 10);
      v.counts[name + 1] += n;
    }
    line = end;
  }
  return v;
}

} // namespace

nursery::nursery() {
  std::array<int, 2> wishes{}, answers{};
  if (pipe(wishes.data()) != 0 || pipe(answers.data()) != 0)
    std::abort();
  std::fflush(nullptr);
  if (fork() == 0) {
    close(wishes[1]);
    tend(wishes[0], answers[1]);
  }
  close(wishes[0]);
  wishes_ = wishes[1];
  answers_ = answers[0];
}

nursery::~nursery() {
  close(wishes_);
  wait(nullptr);
}

verdict nursery::live(const world_rules& rules, bool tells) {
  const wish next{rules, tells};
  if (write(wishes_, &next, sizeof next) != sizeof next)
    std::abort();
  const std::string text = read_answer(answers_);
  verdict v = parse(text);
  const int status = std::atoi(text.c_str() + text.rfind(end_word) + std::strlen(end_word));
  if (WIFSIGNALED(status))
    v.problems.push_back(fmt::format("it was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status))));
  return v;
}

} // namespace troupe::universe
