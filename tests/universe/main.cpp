// Universes by their seeds: troupe_universe COUNT FIRST [--story] [--shrink] [--twice] [--until-wrong] [NAME=NUMBER …]
//
// Each seed is a process of its own: a cluster of real engines, sessions and workers whose threads run one at a time in
// virtual time (virtual_threads.hpp). Prints what was wrong, with the seed, and in the end what was tried how often.
// --story prints what happened; --shrink looks for fewer homes, workers, callers … with which a wrong seed is still
// wrong, and prints the command that shows it; --twice lets each universe live again, which must be the same;
// --until-wrong ends after the first wrong one.
// NAME=NUMBER sets one of these numbers (world.hpp, `world_rules`). Exit status 1 if anything was wrong.
#include "universe/universe_process.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <sys/personality.h>
#include <unistd.h>

namespace {

using namespace troupe::universe;

/// Virtual threads take turns: on one processor, the next one need not be woken from afar.
void stay_on_one_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof one, &one);
}

/// The same addresses in each process, so that nothing depends on them by chance.
void fix_addresses(char** argv) {
  constexpr const char* done = "TROUPE_UNIVERSE_ADDRESSES"; // also where the system does not allow it
  if (std::getenv(done))
    return;
  personality(static_cast<unsigned long>(personality(0xffffffff)) | ADDR_NO_RANDOMIZE);
  setenv(done, "fixed", 1);
  setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  execv("/proc/self/exe", argv);
}

struct command_line {
  std::vector<uint64_t> numbers; // COUNT, FIRST
  bool tells = false, shrinks = false, twice = false, ends_early = false;
  std::map<std::string, size_t> given;
};

command_line parse(int argc, char** argv) {
  command_line line;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--story")
      line.tells = true;
    else if (word == "--shrink")
      line.shrinks = true;
    else if (word == "--twice")
      line.twice = true;
    else if (word == "--until-wrong")
      line.ends_early = true;
    else if (const size_t at = word.find('='); at != std::string::npos)
      line.given[word.substr(0, at)] = std::strtoull(word.c_str() + at + 1, nullptr, 10);
    else
      line.numbers.push_back(std::strtoull(word.c_str(), nullptr, 10));
  }
  line.numbers.resize(2, line.numbers.empty() ? 10 : 1);
  return line;
}

world_rules rules_for(uint64_t seed, const command_line& line) {
  world_rules rules = rules_of(seed);
  for (const auto& [name, number] : line.given) {
    const auto found = std::ranges::find(sizes, name, &named_size::name);
    if (found == sizes.end()) {
      std::fprintf(stderr, "there is no number '%s' of a universe\n", name.c_str());
      std::exit(2);
    }
    rules.*found->member = number;
  }
  return rules;
}

/// Finds sizes with which the universe is still wrong, and which are not if one of them is less.
world_rules shrink(nursery& from, world_rules rules) {
  for (bool found = true; found;) {
    found = false;
    for (const named_size& size : sizes)
      for (const size_t less : {rules.*size.member / 2, rules.*size.member - 1}) {
        world_rules smaller = rules;
        smaller.*size.member = less;
        if (less >= size.least && less < rules.*size.member && from.live(smaller, false).is_wrong()) {
          rules = smaller;
          found = true;
          break;
        }
      }
  }
  return rules;
}

std::string command_of(const world_rules& rules) {
  std::string text = fmt::format("troupe_universe 1 {} --story", rules.seed);
  for (const named_size& size : sizes)
    text += fmt::format(" {}={}", size.name, rules.*size.member);
  return text;
}

} // namespace

int main(int argc, char** argv) {
  fix_addresses(argv);
  stay_on_one_processor();
  nursery universes;
  const command_line line = parse(argc, argv);
  const uint64_t count = line.numbers[0], first = line.numbers[1];
  std::map<std::string, uint64_t> counts;
  uint64_t lived = 0, wrong = 0, switches = 0;
  double virtual_s = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t seed = first; seed < first + count && (wrong == 0 || !line.ends_early); ++seed, ++lived) {
    const world_rules rules = rules_for(seed, line);
    verdict v = universes.live(rules, line.tells);
    if (line.twice && universes.live(rules, false).digest != v.digest)
      v.problems.emplace_back("it is not the same the second time");
    switches += v.switches;
    virtual_s += v.virtual_s;
    for (const auto& [what, n] : v.counts)
      counts[what] += n;
    for (const std::string& problem : v.problems)
      fmt::print("seed {}: {}\n", seed, problem);
    if (line.tells)
      fmt::print("seed {}: digest {:016x}, {} switches, {:.3f} s\n", seed, v.digest, v.switches, v.virtual_s);
    wrong += v.is_wrong();
    if (v.is_wrong())
      fmt::print("  {}\n", command_of(line.shrinks ? shrink(universes, rules) : rules));
    std::fflush(stdout);
  }
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const auto& [what, n] : counts)
    fmt::print("{:10}  {}\n", n, what);
  fmt::print("{} universes, {:.0f} s of virtual time in {:.1f} s ({:.0f} times as fast), {} switches; {} wrong\n",
             lived, virtual_s, s, virtual_s / s, switches, wrong);
  return wrong == 0 ? 0 : 1;
}
