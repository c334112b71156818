// What a session machine asks for, and what it is told: plain data without promises. A shell carries the commands out,
// in their order, and reports back; `actors/messages.hpp` sends the same structs to device actors.
#pragma once

#include "device/device.hpp"
#include "run/ledger_account.hpp"
#include "run/request.hpp"

#include <functional>
#include <variant>

namespace troupe {

/// A chunk of an execution; a control-flow chunk when it says for what a body is executed.
struct chunk_place {
  execution_id execution = 0;
  chunk_id chunk = 0;

  auto operator<=>(const chunk_place&) const = default;
};

// -- orders to a device; it takes them in their order

/// Before the first chunk of a bound plan. Answered with `plan_installed`.
struct install_plan {
  bound_plan_ptr bound;
  device_index self = 0; // the device's index in the plan
};

/// Chunks that have become ready together; they run in this order, after all chunks sent before. Each is answered with
/// exactly one `chunk_ended`, unless the device dies before.
struct run_chunks {
  std::vector<chunk_work> works;
};

/// An execution that ended early has chunks on the device: they need not be finished, but are answered. Not answered
/// itself.
struct stop_execution {
  execution_id execution = 0;
};

/// An execution that ended early has no chunk on the device any more: the device need not remember that it failed. Not
/// answered.
struct end_execution {
  execution_id execution = 0;
};

/// No execution needs a bound plan any more. Not answered.
struct retire_plan {
  uint64_t bound_plan = 0;
};

/// A run needs a value of the device elsewhere. Answered with `tensor_fetched`, after the chunks sent before, unless
/// the device dies before.
struct fetch_tensor {
  device_tensor value;
  uint64_t ticket = 0; // run_request::ticket
  std::string input;   // of the run
};

/// `device` is an index among the session's devices.
struct device_order {
  size_t device = 0;
  std::variant<install_plan, run_chunks, stop_execution, end_execution, retire_plan, fetch_tensor> what;
};

// -- other commands

/// The device is lost: nothing is sent to it any more, what it still says does not count.
struct abandon_device {
  size_t device = 0;
};

/// The session needs nothing more of a device that leaves.
struct let_device_go {
  size_t device = 0;
};

/// The one answer to a run; `result` counts unless it failed.
struct run_answer {
  uint64_t ticket = 0;
  run_result result;
  failure why;
};

/// To be handed back to `session_machine::on` after what has been reported meanwhile: so a loop leaves room for other
/// runs, cancellation and deadlines.
struct continue_control {
  chunk_place place;
};

/// To be called on a thread that has the time; answered with `planned`. One at a time.
struct plan_wanted {
  uint64_t job = 0;
  std::function<void()> make; // see plan_job
};

/// The one answer to a question for a plan.
struct query_answer {
  uint64_t query = 0;
  bound_plan_ptr bound; // the first segment
  failure why;
};

/// After the orders that free it: memory that other sessions may have.
struct give_memory_back {
  ledger_accounts accounts;
  std::vector<int64_t> bytes; // by device

  void operator()() const {
    for (size_t d = 0; d < bytes.size(); ++d)
      if (bytes[d] > 0)
        accounts[d]->give_back(bytes[d]);
  }
};

using command = std::variant<device_order, abandon_device, let_device_go, run_answer, continue_control, plan_wanted,
                             query_answer, give_memory_back>;

/// The answer to `plan_wanted`.
struct planned {
  uint64_t job = 0;
  failure why; // what `make` threw
};

// -- answers of devices

struct plan_installed {
  uint64_t bound_plan = 0;
  device_index self = 0;
  failure why; // set if the install failed; errc::device_lost means that the device is gone
};

/// A device has begun a chunk of which it knows some values already, though not their bytes: what stays in its memory.
/// Only for the session's own good, which looks at them meanwhile. It may come after `chunk_ended`.
struct chunk_begun {
  execution_id execution = 0;
  chunk_id chunk = 0;
  std::vector<uint32_t> made; // positions among the chunk's downloads; the others are not to be looked at
};

struct chunk_ended {
  execution_id execution = 0;
  chunk_id chunk = 0;
  /// errc::cancelled: dropped, because an earlier chunk of the execution failed or the execution was stopped.
  chunk_result result;
};

struct tensor_fetched {
  uint64_t ticket = 0; // ticket and input are those of `fetch_tensor`
  std::string input;
  fetch_result result;
};

} // namespace troupe
