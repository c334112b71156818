// Strategies of your own as plain data: who of several replicas takes which rows of the requests that wait.
//
// A plug-in is a shared library that exports `troupe_strategy`; `session_options::strategy_plugin` and
// `--strategy-plugin` name its file:
//
//     extern "C" TROUPE_API const troupe::strategy_plugin* troupe_strategy() {
//       static const troupe::strategy_plugin mine{.abi_version = troupe::strategy_abi_version, .name = "mine",
//                                                 .what = "what it does, for people", .choose = choose};
//       return &mine;
//     }
//
// troupe makes a replica of the model for each device; a GPU's has the CPU of its host for what the GPU cannot run. A
// request is a number of rows: of a batch, if each row of the outputs depends on its own row of the inputs alone,
// else one. Rows wait in one queue (priorities, deadlines and requests that are joined are troupe's), and the
// strategy says who takes them:
//
// - `share`, if there is one, is asked once for each request that may be cut: how many rows each replica gets, at once.
// - `choose` is asked for all others, whenever something has changed and rows wait: which replica takes the first of
//   them now, and how many; or no replica, until the next change or a time.
//
// Rules for both sides:
// - Nothing here owns anything: all pointers are valid while the function runs.
// - One stream of requests is asked about by one thread at a time; several streams may be asked about at once, each has
//   a state of its own (`open`).
// - A function must not throw (troupe catches it, and ends what waits with an error). It reports what is wrong, and
//   returns other than 0.
// - The answers may depend on all that was asked before, and on nothing else: simulations repeat what they saw.
// - Later versions may change everything but `abi_version`, which stays first. troupe refuses plug-ins of other
//   versions.
#pragma once

#include "troupe/export.hpp"

#include <cstdint>

extern "C" {
namespace troupe {

/// The version of everything below.
inline constexpr uint32_t strategy_abi_version = 1;

/// No replica.
inline constexpr uint32_t strategy_none = UINT32_MAX;

/// `strategy_replica::flags`.
enum strategy_replica_flags : uint32_t {
  strategy_replica_living = 1, // its devices are there
  strategy_replica_free = 2,   // it takes one more piece now
};

/// A replica. A piece of n rows is expected to take it `fixed_s` + n · `row_s` seconds.
struct strategy_replica {
  uint32_t flags;     // of `strategy_replica_flags`
  uint32_t in_flight; // pieces that it has
  int64_t own_rows;   // that wait for this one alone: its shares, and requests whose values it holds
  double busy_s;      // seconds until it has done the pieces that it has
  double fixed_s, row_s;
  double predicted_fixed_s, predicted_row_s; // the same before anything was measured
};

/// A stream of requests as it is now.
struct strategy_stream {
  uint32_t abi_version;
  uint32_t replica_count;
  const strategy_replica* replicas;
  double now_s;         // seconds, from any beginning
  int64_t waiting_rows; // that any replica may take
  /// The first argument of the function below.
  void* context;
  /// Says why a strategy fails; it returns other than 0 then.
  void (*report)(void* context, const char* message);
};

/// The rows that are next.
struct strategy_offer {
  int64_t rows;       // at least 1
  int32_t may_be_cut; // whether a replica may take fewer
  int32_t reserved;   // 0
};

/// Who takes them. At the beginning: no replica, all rows, no time.
struct strategy_answer {
  uint32_t replica;  // that is living and free; `strategy_none`: they wait
  uint32_t reserved; // 0
  int64_t rows;      // how many, from 1 to `strategy_offer::rows`; ignored unless they may be cut
  double wait_s;     // with `strategy_none`: after how many seconds to ask again if nothing changes; 0: not at all
};

/// What a plug-in is. The functions return 0, or other than 0 after `strategy_stream::report`.
struct strategy_plugin {
  uint32_t abi_version; // `strategy_abi_version` as it was when the plug-in was compiled
  const char* name;     // short, of letters, digits, '-' and '_'
  const char* what;     // it does, for people
  /// Returns the state of a new stream, which the functions below get first; null for no state. May be null.
  void* (*open)(uint32_t replica_count);
  /// Ends it. May be null.
  void (*close)(void* state);
  /// Says who takes the offered rows.
  int32_t (*choose)(void* state, const strategy_stream* stream, const strategy_offer* offer, strategy_answer* answer);
  /// Fills in how many of a request's rows each replica gets: all together, none for one that is not living. Null:
  /// requests are not shared out, `choose` cuts them.
  int32_t (*share)(void* state, const strategy_stream* stream, int64_t rows, int64_t* shares);
};

/// The type of the function that a plug-in exports, and its name. What it returns stays as it is while the library is
/// loaded.
typedef const strategy_plugin* (*strategy_entry)();
inline constexpr char strategy_entry_name[] = "troupe_strategy";

} // namespace troupe
}
