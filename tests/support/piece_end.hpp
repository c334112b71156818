// An end of a link that does nothing but pull and answer pieces, in frames of its own; it notes how much was
// outstanding.
#pragma once

#include "remote/pieces.hpp"
#include "support/link_pair.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace troupe::test {

class piece_end {
public:
  piece_end(link_pair& pair, size_t end, remote::piece_puller::clock clock = std::chrono::steady_clock::now)
      : pair_(pair), link_(pair.end(end)),
        puller_([this](const remote::piece_request& r) { ask(r); }, std::move(clock)) {
    link_->receive({[this](remote::frame f) { take(f); }, [this](const std::string& why) { puller_.close(why); }});
  }
  ~piece_end() { pair_.stop(); } // the pair calls both ends while they live
  piece_end(const piece_end&) = delete;
  piece_end& operator=(const piece_end&) = delete;

  remote::piece_source& source() { return source_; }
  remote::piece_puller& puller() { return puller_; }
  int most_outstanding() const { return most_; }
  int64_t most_outstanding_bytes() const { return most_bytes_; }
  /// Starts counting the most again.
  void count_anew() { most_bytes_ = outstanding_bytes_; }
  std::atomic<int64_t> longest = 0; // bytes of a request

private:
  enum kind : uint8_t { request = 1, answer, gone };
  struct header {
    uint64_t kind = 0;
    remote::piece_request about;
  };

  void ask(const remote::piece_request& r) {
    note(1, r.bytes);
    longest = std::max<int64_t>(longest, r.bytes);
    send({request, r}, {});
  }

  void send(header h, std::span<const std::byte> bytes) {
    remote::frame f;
    f.reserve(sizeof h + bytes.size());
    const auto* head = reinterpret_cast<const uint8_t*>(&h);
    f.insert(f.end(), head, head + sizeof h);
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    f.insert(f.end(), data, data + bytes.size());
    link_->send(std::move(f));
  }

  void take(const remote::frame& f) {
    header h;
    std::memcpy(&h, f.data(), sizeof h);
    if (h.kind == request) {
      const remote::piece p = source_.answer(h.about);
      return send({p.gone ? gone : answer, h.about}, p.bytes);
    }
    note(-1, -h.about.bytes);
    puller_.on_piece({h.about.request, h.kind == gone, std::as_bytes(std::span(f)).subspan(sizeof h), {}});
  }

  void note(int pieces, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    most_ = std::max(most_, outstanding_ += pieces);
    most_bytes_ = std::max(most_bytes_, outstanding_bytes_ += bytes);
  }

  link_pair& pair_;
  remote::link_ptr link_;
  std::mutex mutex_;
  int outstanding_ = 0, most_ = 0;
  int64_t outstanding_bytes_ = 0, most_bytes_ = 0;
  remote::piece_source source_;
  remote::piece_puller puller_;
};

} // namespace troupe::test
