// The large leaves of one session's plans on a worker. A leaf is taken from a model of the owner if one has it. It is
// taken from the weight store if the session shows that it has the leaf too: knowing a weight's name is not having the
// weight. Else it comes from the source that the session's process names: itself, or another worker. Leaves that have
// come are offered to other workers, under keys that only the session's process tells them.
#pragma once

#include "remote/session_line.hpp"
#include "wire/plans.hpp"

#include <unordered_set>

namespace troupe::remote {

/// The leaves of a plan that other workers may pull, as long as this lives.
class offered_leaves {
public:
  explicit offered_leaves(piece_source& in) : in_(in) {}
  ~offered_leaves();
  offered_leaves(const offered_leaves&) = delete;
  offered_leaves& operator=(const offered_leaves&) = delete;

  /// Offers a leaf and returns the key.
  offered_weight add(const hash128& content, const tensor& leaf);

private:
  piece_source& in_;
  std::vector<hash128> keys_;
};

/// How many bytes of weights came from where.
struct loaded_bytes {
  int64_t here = 0, session = 0, peers = 0;
};

/// Is told how many bytes of weights have come from elsewhere, of how many, while they come.
using load_told = std::function<void(int64_t came, int64_t total)>;

/// Tells how far the weights of an install have come, one after the other: at most a thousand times, and not for each
/// piece.
class load_report {
public:
  explicit load_report(const load_told& told) : told_(told) {}

  /// Before all else: one more has to come.
  void expect(int64_t bytes) { total_ += bytes; }
  /// Bytes of the current weight received so far.
  void show(int64_t bytes) {
    if (ended_ + bytes < next_)
      return;
    told_(ended_ + bytes, total_);
    next_ = ended_ + bytes + std::max(total_ / 1000, largest_piece);
  }
  /// Called when the current weight has come.
  void end(int64_t bytes) {
    show(bytes);
    ended_ += bytes;
  }

private:
  const load_told& told_;
  int64_t ended_ = 0, total_ = 0, next_ = 0;
};

/// See the top of this file. Leaves are loaded by one thread at a time; `tell` and `close` are for others.
class weight_loader {
public:
  /// `shared` and `line` live longer. `line` and `puller` lead to the session's process.
  weight_loader(shared_service& shared, session_line& line, std::shared_ptr<piece_puller> puller)
      : shared_(shared), line_(line), puller_(std::move(puller)) {}

  piece_source& offers() { return shared_.offers; }

  /// Fills in what chunks of a device read, offers it, adds to `loaded`, and says on the way how far that has come.
  /// Takes as long as the bytes take to come; throws why they do not.
  void load(wire::decoded_plan& p, device_index self, offered_leaves& offered, loaded_bytes& loaded,
            const load_told& told);

  /// Take the session's answers. Throw `errc::invalid_input` if nothing was asked.
  void tell(weight_source source);
  void tell(weight_proofs proofs);
  /// The link to the session's process has ended: nothing comes from there any more.
  void close(const std::string& why);

private:
  std::vector<hash128> load_from_here(wire::decoded_plan& p, device_index self, offered_leaves& offered,
                                      loaded_bytes& loaded);
  /// Takes out what the session has not shown that it has.
  void drop_unproven(std::vector<std::pair<hash128, tensor>>& found);
  tensor fetch(const hash128& content, const weight& leaf, loaded_bytes& loaded, load_report& report);
  /// Returns what is wrong with the peer; `leaf` is set if nothing is.
  weight_fault fetch_from(const weight_source& peer, weight_writer& to, tensor& leaf);
  void pull_from(const weight_source& peer, const tensor& to);
  weight_source ask(const want_weight& wish);

  shared_service& shared_;
  session_line& line_;
  const std::shared_ptr<piece_puller> puller_;
  std::mutex mutex_;
  std::condition_variable told_;
  std::optional<hash128> asked_; // without an answer yet
  std::optional<weight_source> answer_;
  std::optional<prove_weights> challenged_; // without an answer yet
  std::optional<std::vector<hash128>> proofs_;
  std::unordered_set<hash128> shown_; // the session has them; used by the thread that loads alone
  std::string closed_;                // why; empty as long as the link is there
};

} // namespace troupe::remote
