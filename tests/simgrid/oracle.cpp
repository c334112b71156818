#include "simgrid/oracle.hpp"

#include <simgrid/s4u.hpp>

#include <map>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {
namespace {

namespace s4u = simgrid::s4u;

/// One schedule, played by two actors a device: one fetches, the other computes.
class player {
public:
  player(const std::vector<std::string>& hosts, const std::vector<oracle_chunk>& chunks, oracle_sharing how)
      : hosts_(hosts), chunks_(chunks), readers_(chunks.size()) {
    for (size_t c = 0; c < chunks.size(); ++c) {
      ended_.push_back(s4u::Semaphore::create(0));
      here_.push_back(s4u::Semaphore::create(0));
      of_device_[chunks[c].device].push_back(c);
      for (const size_t before : chunks[c].after)
        ++readers_[before];
    }
    if (how == oracle_sharing::equal)
      take_latencies();
  }

  double play(s4u::Engine& engine) {
    for (const auto& [device, order] : of_device_) {
      s4u::Host* host = host_of(device);
      s4u::Actor::create("fetch", host, [this, &list = order, host] { fetch(list, host); });
      s4u::Actor::create("work", host, [this, &list = order] { work(list); });
    }
    engine.run();
    return s4u::Engine::get_clock();
  }

private:
  s4u::Host* host_of(size_t device) const { return s4u::Host::by_name(hosts_[device]); }

  /// Notes the latencies of all routes, and makes those of links 0: SimGrid's flows then have equal weights.
  void take_latencies() {
    for (const oracle_chunk& c : chunks_)
      for (const oracle_fetch& f : c.fetches) {
        std::vector<s4u::Link*> links;
        double& latency = latencies_[{f.from, hosts_[c.device]}];
        latency = 0;
        s4u::Host::by_name(f.from)->route_to(host_of(c.device), links, &latency);
      }
    for (s4u::Link* each : s4u::Engine::get_instance()->get_all_links())
      each->set_latency(0);
  }

  void fetch(const std::vector<size_t>& order, s4u::Host* host) {
    for (const size_t c : order) {
      for (const size_t before : chunks_[c].after)
        ended_[before]->acquire();
      for (const oracle_fetch& f : chunks_[c].fetches) {
        if (const auto latency = latencies_.find({f.from, host->get_name()}); latency != latencies_.end())
          s4u::this_actor::sleep_for(latency->second);
        s4u::Comm::sendto(s4u::Host::by_name(f.from), host, static_cast<uint64_t>(f.bytes));
      }
      here_[c]->release();
    }
  }

  void work(const std::vector<size_t>& order) {
    for (const size_t c : order) {
      here_[c]->acquire();
      s4u::this_actor::execute(chunks_[c].operations);
      for (size_t i = 0; i < readers_[c]; ++i)
        ended_[c]->release();
    }
  }

  const std::vector<std::string>& hosts_;
  const std::vector<oracle_chunk>& chunks_;
  std::vector<size_t> readers_;
  std::vector<s4u::SemaphorePtr> ended_, here_;
  std::map<size_t, std::vector<size_t>> of_device_;
  std::map<std::pair<std::string, std::string>, double> latencies_;
};

/// The model of the network without what SimGrid adds to it by measurements of TCP. No window bounds a transfer's rate
/// either.
double play_here(const std::string& platform_file, const std::vector<std::string>& hosts,
                 const std::vector<oracle_chunk>& chunks, oracle_sharing how) {
  std::vector<std::string> words{"oracle",
                                 "--log=root.thres:critical",
                                 "--cfg=network/model:CM02",
                                 "--cfg=network/TCP-gamma:1e30",
                                 "--cfg=network/bandwidth-factor:1",
                                 "--cfg=network/latency-factor:1",
                                 "--cfg=network/weight-S:0",
                                 "--cfg=network/crosstraffic:0",
                                 "--cfg=surf/precision:1e-9"};
  std::vector<char*> arguments;
  for (std::string& w : words)
    arguments.push_back(w.data());
  auto count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  s4u::Engine engine(&count, arguments.data());
  engine.load_platform(platform_file);
  engine.seal_platform();
  return player(hosts, chunks, how).play(engine);
}

} // namespace

double simgrid_makespan(const std::string& platform_file, const std::vector<std::string>& hosts,
                        const std::vector<oracle_chunk>& chunks, oracle_sharing how) {
  int ends[2];
  if (pipe(ends) != 0)
    throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0)
    throw std::runtime_error("no process");
  if (child == 0) {
    const double seconds = play_here(platform_file, hosts, chunks, how);
    const bool is_told = write(ends[1], &seconds, sizeof seconds) == sizeof seconds;
    _exit(is_told ? 0 : 1);
  }
  close(ends[1]);
  double seconds = 0;
  const bool is_told = read(ends[0], &seconds, sizeof seconds) == sizeof seconds;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!is_told || status != 0)
    throw std::runtime_error("SimGrid did not play " + platform_file);
  return seconds;
}

} // namespace troupe::test
