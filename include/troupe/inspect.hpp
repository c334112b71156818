// What a session and a trace say beyond the everyday: for those who build on troupe, such as its Python package.
#pragma once

#include "troupe/session.hpp"

namespace troupe {

/// Returns the names of the outputs whose bytes a run with such inputs has in common with the session, or with other
/// runs: what does not depend on the inputs' elements, and in a model with control flow all of them. A caller that lets
/// others write into outputs copies these first. The bytes of any other output belong to its run, unless they are one
/// of the inputs, or another output, passed on. Makes the plan where it is not cached. Throws what `session::run`
/// throws for inputs.
TROUPE_API std::vector<std::string> shared_outputs(const session& s, const named_tensors& inputs);

/// Returns the inputs that a run may leave out, by name: the file has a value for each, an initializer of the same
/// name. A run to which one is given takes longer if the last ones had another value, or none: the model is prepared
/// for the value.
TROUPE_API std::vector<value_info> optional_inputs(const session& s);

/// Makes inputs fit that programs give otherwise than the model declares them, since ONNX Runtime looks at less:
/// - a list of one for a scalar: the sampling rate of Silero's detectors, as sherpa-onnx gives it;
/// - a 0 among the dims of an input without elements becomes the one size that inputs with elements have for its name,
///   if the input has no elements then either: the first, empty cache of transformers.js's decoders is
///   [0, heads, 0, size], also where the tokens are a batch of 1;
/// - an optional that is not given is empty.
/// `declared` are the session's inputs. `session::run` alone takes them as they are.
TROUPE_API void take_loosely(named_tensors& inputs, const std::vector<value_info>& declared);

/// Returns warnings for the caller of a run with such inputs, one line each: a device that was named and gets no node,
/// with the reason; an output whose shape is another than the file declares, which then does not count. Of a session
/// with a strategy, which decides who takes what: a pipeline or a model-parallel plan that is predicted to answer fewer
/// requests a second than one of its devices alone. Makes the plan where it is not cached. Throws what `session::run`
/// throws for inputs.
TROUPE_API std::vector<std::string> warnings_of(const session& s, const named_tensors& inputs);

/// What is known of an engine's devices, speeds and links too: `to_cluster` (troupe/simulation.hpp) writes it down.
struct device_facts;
class engine;
TROUPE_API std::shared_ptr<const device_facts> facts_of(const engine& e);

/// One thing that a device did in a traced run.
struct traced_work {
  enum class what : uint8_t {
    node,     // work
    upload,   // a value came to the device
    download, // a value left it
  };
  what kind = what::node;
  std::string name; // of the node, or of the value
  std::string device;
  int64_t bytes = 0;             // of a value; 0 if it is not known
  double begin_s = 0, end_s = 0; // since the run's begin
};

/// Returns what the devices did in a traced run, by device, each in the order of its begins. Values that a device reads
/// where they are, as in the host's memory, are not moved.
TROUPE_API std::vector<traced_work> work_of(const run_trace& trace);

/// Returns a traced run in the format of Paje, which ViTE, PajeNG and StarVZ read: devices and their queues as
/// containers, work and moves as states, dependencies as links, counters as variables.
TROUPE_API std::string to_paje(const run_trace& trace);

/// Returns a traced run as StarPU's tasks.rec: each node that ran, what it waited for, its device's number as worker
/// and memory node, times in milliseconds, and the values that it read and made.
TROUPE_API std::string to_tasks_rec(const run_trace& trace);

/// Returns a traced run as execution traces of Chakra, which ASTRA-sim plays: one for each device, in the order of the
/// plan's, with the nodes that ran there, and a node for each end of a value's way between devices.
TROUPE_API std::vector<std::string> to_chakra(const run_trace& trace);

/// Returns a traced run as one HTML page that needs no network: the page of `troupe run --trace run.html`.
/// A program links the laboratory for it: troupe::lab.
TROUPE_API std::string to_html(const run_trace& trace);

} // namespace troupe
