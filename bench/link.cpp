// A link between two hosts, both in this process, over loopback: round trip of a small frame, and MB/s one way, plain
// and by TLS; beside them what the same frames take by CAF alone (its TLS is caf::openssl), and the same bytes over a
// socket, and through OpenSSL over one.
//
// Usage: bench_link [seconds a figure]      default 0.5
#include "actors/certificates.hpp"
#include "actors/network.hpp"
#include "actors/network/channel.hpp"
#include "cluster/caf_link.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

using namespace troupe;
using namespace troupe::actors;

namespace {

using clock_type = std::chrono::steady_clock;

constexpr size_t small_bytes = 64;
constexpr size_t piece_bytes[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

/// A link whose other end answers each frame with an empty one.
class pair_of_hosts {
public:
  pair_of_hosts(const host_credentials& worker, const host_credentials& session) : far_(worker), near_(session) {
    const uint16_t port = far_.listen("127.0.0.1", 0, [](const remote::frame&, const remote::link_ptr& link) {
      link->receive({[link](const remote::frame&) { link->send({}); }, [](const std::string&) {}});
      return remote::frame{};
    });
    link_ = near_.connect("127.0.0.1", port, {}, std::chrono::seconds(10)).link;
    link_->receive({[this](const remote::frame&) {
                      const std::lock_guard lock(mutex_);
                      ++answers_;
                      changed_.notify_one();
                    },
                    [](const std::string&) {}});
  }
  ~pair_of_hosts() { link_->close(); }

  /// Sends frames for a time, `in_flight` at once; returns how many a second were answered, and notes each round trip.
  double frames_a_second(size_t bytes, size_t in_flight, double seconds, std::vector<double>* times = nullptr) {
    const auto start = clock_type::now();
    size_t sent = 0, first = answers_;
    while (seconds_since(start) < seconds) {
      const auto sent_at = clock_type::now();
      link_->send(remote::frame(bytes));
      ++sent;
      await(first + sent - std::min(sent, in_flight - 1));
      if (times)
        times->push_back(seconds_since(sent_at));
    }
    await(first + sent);
    return static_cast<double>(sent) / seconds_since(start);
  }

private:
  void await(size_t answers) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answers_ >= answers; });
  }

  tcp_network far_, near_;
  remote::link_ptr link_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t answers_ = 0;
};

/// Moves all of `size` bytes by `move`, one of the channel's functions.
template <class Move, class Bytes>
bool move_all(channel& at, Move move, Bytes* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    size_t moved = 0;
    const progress came = (at.*move)(bytes + done, size - done, moved);
    done += moved;
    if (came == progress::ended)
      return false;
    if (came != progress::done)
      wait_for(at.fd(), came == progress::wants_input ? POLLIN : POLLOUT, clock_type::now() + std::chrono::seconds(10));
  }
  return true;
}

void shake(channel& at) {
  for (progress came = at.shake_hands(); came != progress::done; came = at.shake_hands())
    wait_for(at.fd(), POLLIN, clock_type::now() + std::chrono::seconds(10));
}

/// Bytes a second, or if `echo`, round trips a second, of pieces through a channel alone.
double through_channel(const tls_context& worker, const tls_context& session, size_t bytes, bool echo, double seconds) {
  auto [listening, port] = listen_at("127.0.0.1", 0);
  std::thread far([&, socket = listening.get()] {
    wait_for(socket, POLLIN, clock_type::now() + std::chrono::seconds(10));
    channel at(accept_one(socket), worker, true);
    shake(at);
    for (std::vector<char> piece(bytes); move_all(at, &channel::read, piece.data(), bytes);)
      if (echo && !move_all(at, &channel::write, piece.data(), bytes))
        return;
  });
  size_t pieces = 0;
  double took = 0;
  {
    channel at(connect_to("127.0.0.1", port, clock_type::now() + std::chrono::seconds(10)), session, false);
    shake(at);
    std::vector<char> piece(bytes);
    const auto start = clock_type::now();
    for (; (took = seconds_since(start)) < seconds; ++pieces) {
      move_all(at, &channel::write, piece.data(), bytes);
      if (echo)
        move_all(at, &channel::read, piece.data(), bytes);
    }
  }
  far.join();
  return static_cast<double>(pieces) * (echo ? 1. : static_cast<double>(bytes)) / took;
}

void measure(const char* what, const host_credentials& worker, const host_credentials& session, double seconds) {
  pair_of_hosts hosts(worker, session);
  std::vector<double> times;
  hosts.frames_a_second(small_bytes, 1, seconds, &times);
  caf_pair by_caf(worker, session);
  const tls_context far = make_tls_context(worker), near = make_tls_context(session);
  fmt::print("{}\n  round trip of {} bytes: link p50 {:.0f} µs, CAF {:.0f}, socket {:.0f}\n", what, small_bytes,
             1e6 * median(times), 1e6 / by_caf.frames_a_second(small_bytes, 1, seconds),
             1e6 / through_channel(far, near, small_bytes, true, seconds));
  for (const size_t bytes : piece_bytes) {
    const double four = hosts.frames_a_second(bytes, 4, seconds), eight = hosts.frames_a_second(bytes, 8, seconds);
    const double caf = by_caf.frames_a_second(bytes, 4, seconds);
    fmt::print("  {:5} KiB: link {:5.0f} MB/s with 4 in flight, {:5.0f} with 8; CAF {:5.0f}; socket {:5.0f}\n",
               bytes >> 10, four * static_cast<double>(bytes) / 1e6, eight * static_cast<double>(bytes) / 1e6,
               caf * static_cast<double>(bytes) / 1e6, through_channel(far, near, bytes, false, seconds) / 1e6);
  }
}

} // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::stod(argv[1]) : 0.5;
  std::string folder = (std::filesystem::temp_directory_path() / "troupe-keys-XXXXXX").string();
  if (!mkdtemp(folder.data()))
    return 1;
  make_certificates({.folder = folder, .names = {"worker", "session"}});
  const auto who = [&](const std::string& name) -> host_credentials {
    return {folder + "/" + name + ".crt", folder + "/" + name + ".key", folder + "/ca.crt"};
  };
  measure("plain", {.insecure = true}, {.insecure = true}, seconds);
  measure("TLS", who("worker"), who("session"), seconds);
  std::filesystem::remove_all(folder);
}
