#include "support/host_network.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace troupe::test {
namespace {

void command(const std::string& line) {
  if (std::system((line + " >/dev/null 2>&1").c_str()) != 0)
    throw std::runtime_error("'" + line + "' failed");
}

void enter_new_space() {
  if (unshare(CLONE_NEWNET) != 0)
    throw std::runtime_error(std::string("no network namespace: ") + std::strerror(errno));
}

/// Makes a namespace whose one card is joined to the bridge of this process. A new thread makes it, since a namespace
/// belongs to a thread.
host_place make_host(int number) {
  host_place made{.address = fmt::format("10.97.0.{}", number + 2)};
  std::string problem;
  std::thread([&] {
    try {
      enter_new_space();
      made.space = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
      command(fmt::format("ip link add card type veth peer name host{} netns {}", number, getpid()));
      command(fmt::format("ip addr add {}/24 dev card", made.address));
      command("ip link set card up");
      command("ip link set lo up");
    } catch (const std::exception& e) {
      problem = e.what();
    }
  }).join();
  if (!problem.empty())
    throw std::runtime_error(problem);
  command(fmt::format("ip link set host{} master joint up", number));
  return made;
}

} // namespace

host_network::host_network(int hosts) {
  const int before = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  try {
    enter_new_space();
    command("ip link set lo up");
    command("ip link add joint type bridge");
    command("ip addr add 10.97.0.1/24 dev joint");
    command("ip link set joint up");
    for (int i = 0; i < hosts; ++i)
      places_.push_back(make_host(i));
    own_ = "10.97.0.1";
  } catch (const std::runtime_error& e) {
    why_not_ = e.what();
    places_.assign(static_cast<size_t>(hosts), {});
    // A half-made network connects no hosts. If this is refused, the process has not left its old one.
    setns(before, CLONE_NEWNET);
  }
  close(before);
}

host_network::~host_network() {
  for (const host_place& p : places_)
    if (p.space >= 0)
      close(p.space);
}

} // namespace troupe::test
