// How the bytes of tensors cross a link: the side that needs a tensor asks for pieces of it, the side that has it
// answers each question.
//
//     puller ──── piece_request {request, key, offset, bytes} ───▶ source
//            ◀─── piece {request, bytes}, or gone ────────────────
//
// Nothing is pushed, so each side has only in memory what it asked for: the pieces outstanding on a link, of all its
// pulls together, are limited in number and bytes (link_rate.hpp), and the receiver allocates what it knows to need.
// The answers may come in any order. Only bytes move: tensors of strings go encoded, pulled into a tensor of uint8
// (src/wire decodes it).
#pragma once

#include "base/hash.hpp"
#include "remote/link_rate.hpp"
#include "run/request.hpp"
#include "troupe/tensor.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace troupe::remote {

/// Asks for `bytes` of the tensor of that key, from `offset` on.
struct piece_request {
  uint64_t request = 0; // the asker's number of it
  hash128 key;
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// The answer: the bytes, or that there are none.
struct piece {
  uint64_t request = 0;
  bool gone = false;
  std::span<const std::byte> bytes;
  /// Keeps `bytes` alive, if they are a tensor's.
  tensor owner;
};

/// Tensors that the other end may ask for, by keys that it was told. Thread-safe.
class piece_source {
public:
  /// Lets pieces of the tensor be asked for until it is withdrawn, as often as it was offered. The tensor is shared,
  /// not copied; it has no strings.
  void offer(const hash128& key, tensor bytes);
  /// The same for a key that a stranger has chosen: returns false, and changes nothing, if something is offered
  /// under it.
  bool offer_new(const hash128& key, tensor bytes);
  void withdraw(const hash128& key);

  /// Returns what is offered under a key; undefined if nothing is.
  tensor find(const hash128& key) const;
  /// Returns how many keys something is offered under.
  size_t size() const;

  /// Never throws: what is unknown, or asks for more than there is or than a piece may hold, is answered by `gone`.
  piece answer(const piece_request& wanted) const;

private:
  struct entry {
    tensor bytes;
    size_t offers = 0;
  };

  mutable std::mutex mutex_;
  std::unordered_map<hash128, entry> entries_;
};

/// The pulls of one link's end. Thread-safe; what it calls, it calls without its lock, on the thread of its
/// caller. All pulls get pieces in turns, so that a small one does not wait for a large one.
class piece_puller {
public:
  using pull_id = uint64_t;
  using sender = std::function<void(const piece_request&)>;
  using clock = std::function<link_rate::time_point()>;
  /// How a pull ended; a failure without a message is success.
  using done = std::function<void(const failure&)>;
  /// Bytes that have come, bytes in all.
  using progress = std::function<void(int64_t, int64_t)>;

  /// `send` does not block, and may be called by several threads at once.
  explicit piece_puller(sender send, clock now = std::chrono::steady_clock::now);
  /// As `close`.
  ~piece_puller();
  piece_puller(const piece_puller&) = delete;
  piece_puller& operator=(const piece_puller&) = delete;

  /// Fills `destination`, which has no strings, with the other end's tensor of that key and as many bytes. `on_done` is
  /// called exactly once, perhaps before this returns; from then on nothing is written to `destination`.
  pull_id pull(const hash128& key, tensor destination, done on_done, progress on_progress = {});

  /// Takes what has come. A piece that no pull waits for is ignored; one of a wrong length fails its pull.
  void on_piece(const piece& came);

  /// Ends a pull by `errc::cancelled`, unless it has ended. Its pieces that are on their way are awaited, since they
  /// take their part of the link, and dropped.
  void cancel(pull_id id);

  /// Ends all pulls, and those to come, by `errc::device_lost` and this text.
  void close(const std::string& why);

  /// Returns the rate at which pieces come, 0 if it is not known yet.
  double bytes_per_second() const;
  /// Returns how long pieces are now.
  int64_t piece_bytes() const;

private:
  struct pull_state {
    hash128 key;
    tensor destination;
    done on_done;
    progress on_progress;
    int64_t total = 0, asked = 0, came = 0;
    int writers = 0; // threads that copy to `destination` now
  };
  using pull_ptr = std::shared_ptr<pull_state>;
  struct outstanding {
    pull_id pull = 0;
    int64_t offset = 0, bytes = 0;
    link_rate::departure asked;
  };
  /// What a call has to do once it has left the lock.
  struct calls {
    std::vector<piece_request> requests;
    std::vector<std::pair<pull_ptr, failure>> ended;
  };

  void ask(calls& later);
  void end(std::unique_lock<std::mutex>& lock, pull_id id, failure why, calls& later);
  bool received(std::unique_lock<std::mutex>& lock, const piece& came, const outstanding& part, calls& later);
  void perform(const calls& later);

  const sender send_;
  const clock now_;
  mutable std::mutex mutex_;
  std::condition_variable written_;
  std::unordered_map<pull_id, pull_ptr> pulls_;
  std::deque<pull_id> unasked_; // pulls that have something left to ask for, the next first; some may have ended
  std::unordered_map<uint64_t, outstanding> outstanding_;
  int64_t outstanding_bytes_ = 0;
  uint64_t last_request_ = 0;
  pull_id last_pull_ = 0;
  link_rate rate_;
  std::optional<failure> closed_;
};

} // namespace troupe::remote
