// Two ends of a network on this machine, for tests of links.
#pragma once

#include "actors/network.hpp"
#include "base/error.hpp"
#include "support/catch.hpp"
#include "support/certificate_folder.hpp"

#include <condition_variable>
#include <deque>

namespace troupe::test {

using namespace std::chrono_literals;
using actors::network;
using actors::opened_link;
using actors::tcp_network;
using remote::frame;

inline frame text_frame(std::string_view text) {
  return {text.begin(), text.end()};
}

inline std::string text_of(const frame& f) {
  return {f.begin(), f.end()};
}

/// The frames of a link, to be waited for.
class inbox {
public:
  explicit inbox(remote::link_ptr link) : link_(std::move(link)) {
    link_->receive({[this](frame f) {
                      const std::lock_guard lock(mutex_);
                      frames_.push_back(std::move(f));
                      changed_.notify_all();
                    },
                    [this](const std::string& why) {
                      const std::lock_guard lock(mutex_);
                      ends_.push_back(why);
                      changed_.notify_all();
                    }});
  }
  ~inbox() {
    link_->close();
    end();
  }

  /// Returns the next frame; fails after 10 s.
  frame next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 10s, [&] { return !frames_.empty(); }))
      FAIL("no frame has come");
    frame f = std::move(frames_.front());
    frames_.pop_front();
    return f;
  }

  /// Returns why the link has ended.
  std::string end() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 10s, [&] { return !ends_.empty(); }))
      return "it has not ended";
    return ends_.front();
  }

  size_t waiting() {
    const std::lock_guard lock(mutex_);
    return frames_.size();
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<frame> frames_;
  std::vector<std::string> ends_;
  remote::link_ptr link_;
};

/// A network that listens, welcomes every caller but "nobody" by "hello NAME", and sends every frame back.
class echo_host {
public:
  explicit echo_host(const host_credentials& who) : network_(who) {
    port_ = network_.listen("127.0.0.1", 0, [](const frame& hello, const remote::link_ptr& link) {
      if (text_of(hello) == "nobody")
        fail(errc::invalid_argument, "nobody is not welcome");
      // The link keeps itself alive by its handler until it has ended.
      link->receive({[link](frame f) { link->send(std::move(f)); }, [](const std::string&) {}});
      return text_frame("hello " + text_of(hello));
    });
  }

  uint16_t port() const { return port_; }
  network& net() { return network_; }

private:
  tcp_network network_;
  uint16_t port_ = 0;
};

inline opened_link call(network& from, uint16_t port, std::string_view hello = "me") {
  return from.connect("127.0.0.1", port, text_frame(hello), 5s);
}

/// Returns the error of a call; empty if there is none.
inline std::string problem_of(network& from, uint16_t port, std::string_view hello = "me") {
  try {
    call(from, port, hello);
    return "";
  } catch (const error& e) {
    return e.what();
  }
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace troupe::test
