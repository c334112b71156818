// What a session's process and a worker say to each other over a link, and workers among themselves. Each message is
// one frame: its kind, then its members in their order (wire/archive.hpp).
//
//   session                      worker
//      │ hello ───────────────────▶│ checks version and limits
//      │◀───────────────── welcome │ its devices
//      │ install ─────────────────▶│ pulls plan and weights, makes the plan again, installs it on the device
//      │◀─────────── prove_weights │ of weights that it has
//      │ weight_proofs ───────────▶│ shows that they are known over there
//      │◀───────────── want_weight │ once for each weight that it lacks
//      │ weight_source ───────────▶│ pulls it from here or from another worker
//      │◀──────────── have_weights │ so that it can pass them on
//      │◀───────────────── loading │ how far the weights have come
//      │◀─────────────── installed │
//      │ run_chunk ───────────────▶│ pulls what the chunk reads, runs it
//      │◀────────────── chunk_made │ what it made, or where it is kept
//      │ piece_request ⇄ piece     │ bytes that were too long for a message: pulled by who needs them
//      │ release ─────────────────▶│ a kept value is needed no more
//
// `hello` and `welcome` begin with the protocol's number, for ever: two versions can tell each other what they are.
#pragma once

#include "device/device.hpp"
#include "remote/link.hpp"
#include "remote/pieces.hpp"
#include "run/request.hpp"

#include <variant>

namespace troupe::remote {

/// Two sides with different numbers do not talk. To be raised with every change of a message or of what `wire` writes.
inline constexpr uint32_t protocol = 5;

/// Who connects, and what for.
enum class role : uint8_t {
  session, // runs plans on the devices
  peer,    // another worker: only pulls values
};

struct hello {
  uint32_t protocol = remote::protocol;
  std::string version; // of troupe
  remote::role role = remote::role::session;
  std::string name; // of the sender, for the log
};

/// Most devices that one worker lends: far more than a host has, and few enough to plan over.
inline constexpr size_t max_lent_devices = 1024;

struct welcome {
  uint32_t protocol = remote::protocol;
  std::string version;
  std::vector<device_info>
      devices; // as the worker calls them; at most `max_lent_devices`, without those for control flow
};

/// Where the bytes of a tensor are.
enum class origin : uint8_t {
  message, // here
  sender,  // to be pulled from who says this
  kept,    // the worker that reads this keeps them already
  peer,    // to be pulled from another worker
};

/// A tensor on its way. Strings are counted strings, one after the other (values.hpp).
struct sent_value {
  origin from = origin::message;
  dtype type = dtype::undefined;
  shape dims;
  std::vector<uint8_t> bytes; // origin::message
  hash128 key;                // otherwise
  int64_t size = 0;           // bytes to pull
  std::string peer;           // HOST:PORT, origin::peer
};

/// A piece that holds a whole blob, such as a plan: to be pulled from the sender.
struct sent_blob {
  hash128 key;
  int64_t size = 0;

  bool operator==(const sent_blob&) const = default;
};

// -- session → worker. `device`: index among those of `welcome`; plans, bound plans and executions are numbered by the
// session

struct install {
  uint32_t device = 0;
  uint64_t plan = 0;
  sent_blob encoded; // the plan; wire/plans.hpp
  uint64_t bound_plan = 0;
  std::vector<uint8_t> binding; // wire/plans.hpp
  uint32_t self = 0;            // the device's index in the plan
};

/// What becomes of a value that a chunk makes.
struct wanted_value {
  hash128 key;
  destination home = destination::host;
  bool send = false; // to the session
};

struct run_chunk {
  uint32_t device = 0;
  uint64_t bound_plan = 0;
  uint32_t chunk = 0;
  uint64_t execution = 0;
  uint32_t slot = 0;
  bool timed = false;
  std::vector<sent_value> uploads;
  std::vector<wanted_value> downloads;
};

struct stop_chunks {
  uint64_t execution = 0;
};
struct end_chunks {
  uint32_t device = 0;
  uint64_t execution = 0;
};
struct retire {
  uint32_t device = 0;
  uint64_t bound_plan = 0;
};
/// No bound plan of it will be installed any more.
struct forget_plan {
  uint64_t plan = 0;
};
struct release {
  std::vector<hash128> keys;
};
/// Answers `want_weight`.
struct weight_source {
  hash128 content;
  std::string peer; // HOST:PORT of the worker that has it; empty: this process, under its content
  hash128 key;      // that the peer offers it by
};
/// Answers `prove_weights`.
struct weight_proofs {
  hash128 challenge;
  std::vector<hash128> proofs; // `content_proof` of each; zero for a weight of no plan offered there
};

/// What these three are answered with says `request`.
struct fetch_kept {
  uint64_t request = 0;
  uint32_t device = 0;
  hash128 key;
};
struct put_value {
  uint64_t request = 0;
  uint32_t device = 0;
  hash128 key; // to keep it by
  sent_value value;
};
struct ask_stats {
  uint64_t request = 0;
  uint32_t device = 0;
};

// -- worker → session

struct installed {
  uint32_t device = 0;
  uint64_t bound_plan = 0;
  failure why;
};

/// How many bytes of an install's weights have come from elsewhere, of how many; now and then until `installed`.
struct loading {
  uint32_t device = 0;
  int64_t came = 0, total = 0;
};

struct chunk_made {
  uint32_t device = 0;
  uint64_t execution = 0;
  uint32_t chunk = 0;
  chunk_result result;
  std::vector<sent_value> downloads; // origin::kept if the session does not want them; none if the chunk failed
};

struct fetched {
  uint64_t request = 0;
  failure why;
  sent_value value;
};
struct was_put {
  uint64_t request = 0;
  failure why;
};
struct stats_told {
  uint64_t request = 0;
  device_stats stats;
};
/// What has become of the source that a worker was told before.
enum class weight_fault : uint8_t {
  none,    // it asks for the first time
  refused, // the peer does not have the weight any more
  useless, // the peer cannot be reached, was lost on the way, or sent something else
};
/// Asks where to pull a weight from. One is asked for at a time, until `have_weights` or `give_up_weight` names it.
/// After a fault, the source is the session's process.
struct want_weight {
  hash128 content;
  weight_fault fault = weight_fault::none;
};
struct offered_weight {
  hash128 content;
  hash128 key; // for other workers
};
struct have_weights {
  std::vector<offered_weight> weights;
};
struct give_up_weight {
  hash128 content;
};
/// The worker has weights of these names: it gives them to who shows that it has them too. One is asked for at a time;
/// answered with `weight_proofs`.
struct prove_weights {
  hash128 challenge;
  std::vector<hash128> contents;
};
/// The worker ends soon, because its owner has asked it to: runs that begin should go elsewhere, those in flight end
/// here. Who needs it no more ends the link; the worker does so after a while.
struct leaving {
  std::string why;
};
/// Other sessions lack `bytes` of a device that this one holds: it should let go of plans that no run uses. 0: not any
/// more.
struct memory_wanted {
  uint32_t device = 0;
  int64_t bytes = 0;
};

// -- both ways

/// Measures the link: answered with `pong`, which carries `answer_bytes` bytes.
struct ping {
  uint64_t request = 0;
  uint32_t answer_bytes = 0;
  std::vector<uint8_t> load;
};
struct pong {
  uint64_t request = 0;
  int64_t clock_ns = 0; // of who answers: now_ns()
  std::vector<uint8_t> load;
};

using message = std::variant<hello, welcome, install, run_chunk, stop_chunks, end_chunks, retire, forget_plan, release,
                             fetch_kept, put_value, ask_stats, installed, loading, chunk_made, fetched, was_put,
                             stats_told, leaving, ping, pong, piece_request, piece, weight_source, want_weight,
                             have_weights, give_up_weight, memory_wanted, prove_weights, weight_proofs>;

/// Returns the message as a frame.
frame encode(const message& m);

/// Returns the message that a frame holds. Throws `errc::invalid_input` where it holds none: nothing is allocated
/// beyond what the frame's own bytes can fill.
message decode(std::span<const uint8_t> f);
} // namespace troupe::remote
