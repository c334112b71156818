// Placement policies as plain data: what troupe asks one, and what it answers. The policies that are built in and
// plug-ins use the same structs.
//
// A plug-in is a shared library that exports `troupe_policy`; `session_options::policy_plugin` and `--policy-plugin`
// name its file:
//
//     extern "C" TROUPE_API const troupe::policy_plugin* troupe_policy() {
//       static const troupe::policy_plugin mine{troupe::policy_abi_version, "mine", "what it does, for people", place};
//       return &mine;
//     }
//
// A problem is a directed acyclic graph of tasks on devices. Tasks exchange values: one task makes a value, any number
// read it, and a device that has it once has it for all its tasks. Tasks, values and devices are numbers from 0; tasks
// are numbered in topological order, so that what a task reads is made by tasks of smaller numbers. What is large
// (times of tasks by device, moves by pair of devices) is asked for by functions and found when it is asked: a policy
// that asks little takes little, whatever the number of tasks and devices.
//
// Rules for both sides:
// - Nothing here owns anything: all pointers are valid while the policy's function runs, names until the next question.
// - The functions of a problem never throw and never fail: if one cannot answer, troupe notes it and fails after the
//   policy has returned. A policy's function must not throw either (troupe catches it, and refuses the policy). It may
//   be called by any thread, but one problem is asked by one thread at a time.
// - Equal problems get equal answers: plans are kept by what they were made from. Randomness needs a fixed seed.
// - Later versions may change everything but `policy_problem::abi_version` and `policy_plugin::abi_version`, which stay
//   first. troupe refuses plug-ins of other versions.
#pragma once

#include "troupe/export.hpp"

#include <cstdint>

extern "C" {
namespace troupe {

/// The version of everything below.
inline constexpr uint32_t policy_abi_version = 1;

/// No task, no device.
inline constexpr uint32_t policy_none = UINT32_MAX;
/// In place of a device: the memory of the process that asked for the run, from where inputs come and to where answers
/// go.
inline constexpr uint32_t policy_caller = UINT32_MAX - 1;

/// `policy_device::flags`.
enum policy_device_flags : uint32_t {
  policy_device_fallback = 1,    // gets only tasks that no other device is allowed to run, or has room for
  policy_device_gpu = 2,         // a GPU
  policy_device_host_memory = 4, // its tasks work in its host's memory
};

/// `policy_problem::task_flags`.
enum policy_task_flags : uint8_t {
  policy_task_control =
      1, // control flow: the process that asked executes it beside the devices; only one device is allowed
};

/// `policy_problem::value_flags`.
enum policy_value_flags : uint8_t {
  policy_value_constant = 1, // a weight: each device that needs it gets it before the run, and keeps it
  policy_value_known = 2,    // known wherever it is read, such as the numbers of a shape: nothing moves
  policy_value_answer = 4,   // goes back to the caller when it is made
};

struct policy_device {
  const char* name;     // for messages
  uint32_t flags;       // of `policy_device_flags`
  uint32_t host;        // devices of one number are on one host: there is no network between them
  int64_t memory_bytes; // that may be filled
  double handover_s;    // seconds from the end of a task until another device can begin to fetch what it made
};

/// What is to be placed. Arrays named `…_begin` have one entry more than there are tasks (or values): those of i are
/// from `…_begin[i]` on, before `…_begin[i + 1]`.
struct policy_problem {
  uint32_t abi_version;
  uint32_t task_count, device_count, value_count;
  /// The first argument of the functions below.
  void* context;

  const policy_device* devices; // by device
  const uint8_t* task_flags;    // by task
  /// By task: the one device that is allowed because the caller says so, else `policy_none`. Null if there are none.
  const uint32_t* pinned;

  const uint64_t* input_begin; // by task
  const uint32_t* inputs;      // the values that it reads; one may be there twice
  const uint64_t* output_begin;
  const uint32_t* outputs;      // the values that it makes
  const uint64_t* reader_begin; // by value
  const uint32_t* readers;      // the tasks that read it, ascending, each once
  const uint32_t*
      producer; // by value: the task that makes it; `policy_none`: it is a constant, known, or the caller's input
  const uint32_t*
      storage; // by value: the value whose bytes it shares on the device that makes it (a view), else itself
  const uint8_t* value_flags; // by value, of `policy_value_flags`

  /// What ranks by mean times multiply mean moves by: 1 as the literature does, or the share of pairs of devices that
  /// are two.
  double move_weight;

  /// Whether a task may run on a device: it can, and the caller allows it.
  int32_t (*allowed)(void* context, uint32_t task, uint32_t device);
  /// The seconds that a task takes on a device. Where it is not allowed: any figure, perhaps infinity.
  double (*seconds)(void* context, uint32_t task, uint32_t device);
  /// The bytes of a value.
  int64_t (*value_bytes)(void* context, uint32_t value);
  /// The seconds that a value takes from one device to another one, `handover_s` aside. `from` may be `policy_caller`
  /// (an input), or `to` (an answer).
  double (*move_seconds)(void* context, uint32_t value, uint32_t from, uint32_t to);
  /// The mean of `move_seconds` and `handover_s` over pairs of different devices, fallback ones aside; 0 if there are
  /// no two.
  double (*mean_move_seconds)(void* context, uint32_t value);
  /// The three parts of a move of `bytes` bytes: out of a device's memory, between hosts (either may be
  /// `policy_caller`), into a device's memory.
  double (*send_seconds)(void* context, double bytes, uint32_t device);
  double (*network_seconds)(void* context, double bytes, uint32_t from, uint32_t to);
  double (*receive_seconds)(void* context, double bytes, uint32_t device);
  /// Whether some size or time that was asked for so far counts on dims that the caller has not said: then what does
  /// not fit may fit.
  int32_t (*has_guessed)(void* context);
  /// What a task is called, for messages.
  const char* (*task_name)(void* context, uint32_t task);
  /// Why no device may run a task, and what to do: a message to report where none is `allowed`.
  const char* (*why_not)(void* context, uint32_t task);
  /// Says why a policy fails; it returns other than 0 then. `code`: 2 if no device may run some task, 5 if memory
  /// lacks, else anything (these are values of `errc`).
  void (*report)(void* context, int32_t code, const char* message);
};

/// What a policy answers.
struct policy_result {
  /// By task, the device: one that is `allowed`. All are `policy_none` at the beginning.
  uint32_t* device;
  /// By task, the second at which it starts, if the policy knows: else NaN, as at the beginning. Null if the caller
  /// does not want to know.
  double* start;
};

/// Places all tasks; returns 0, or other than 0 after `policy_problem::report`.
typedef int32_t (*place_function)(const policy_problem* problem, policy_result* result);

/// What a plug-in is.
struct policy_plugin {
  uint32_t abi_version; // `policy_abi_version` as it was when the plug-in was compiled
  const char* name;     // short, of letters, digits, '-' and '_'; not a built-in one
  const char* what;     // it does, for people
  place_function place;
};

/// The type of the function that a plug-in exports, and its name. What it returns stays as it is while the library is
/// loaded.
typedef const policy_plugin* (*policy_entry)();
inline constexpr char policy_entry_name[] = "troupe_policy";

} // namespace troupe
}
