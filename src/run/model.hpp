// A model on its way from a graph to a plan: what the file declares, and what a session reads off a plan once.
#pragma once

#include "base/name_order.hpp"
#include "plan/plan.hpp"
#include "run/request.hpp"
#include "run/strategy_library.hpp"
#include "troupe/options.hpp"
#include "troupe/results.hpp"

#include <set>

namespace troupe {

/// A model as loaded, before it is specialised. Immutable, shared by a session's handles and its machine.
struct model {
  graph source; // resolved, topologically sorted
  std::vector<value_info> inputs, outputs;
  name_order input_order; // of `inputs`
  /// Inputs with a default, an initializer of the same name, by name: `source` has them as constants. A run to which
  /// one is given has a program of its own, in which what is given is the constant.
  std::map<std::string, value_info> defaults;
  session_options options;                                 // whose strategy is not `standard` but `none`
  std::shared_ptr<const saved_plan> saved;                 // what `options.plan_file` holds; null for none
  std::shared_ptr<const policy_library> plugin;            // what `options.policy_plugin` names; null for none
  std::shared_ptr<const strategy_library> strategy_plugin; // likewise
  std::vector<std::string> host_inputs;                    // see host_inputs_of
  std::string file;                                        // that it was loaded from; empty if it was built in code
  double load_ms = 0;
};
using model_ptr = std::shared_ptr<const model>;

/// Checks a graph and the options against it, and reads the saved plan. `file`: see `model`. Throws
/// `errc::invalid_model`, `errc::unsupported`, `errc::invalid_argument`, `errc::invalid_plan`, `errc::io`.
model_ptr make_model(graph source, session_options options, double load_ms, std::string file = {});

/// What a run is given: tensors in the host's memory, and those that are on devices, by name, or carried on by a bound
/// session (null: it carries nothing). An input may be both in the host's memory and elsewhere: then both are the same.
struct given_inputs {
  const named_tensors& tensors;
  const named_device_tensors& residents;
  const carried_values* carried = nullptr;

  /// Type and dims of an input.
  struct facts {
    dtype type = dtype::undefined;
    const shape* dims = nullptr;
  };
  /// Returns what is given for the model's input `i`; nullopt if nothing is. The type is undefined if what is given
  /// holds no tensor.
  std::optional<facts> find(const model& m, size_t i) const;
  /// Returns the model's input `i` in the host's memory, undefined if it is not there; sequences and optionals always
  /// are.
  tensor on_host(const model& m, size_t i) const;
  /// Whether values may be on devices between runs.
  bool stay() const { return !residents.empty() || (carried && !carried->empty()); }
};

/// Returns those inputs of a run that take the place of a default. Throws `errc::unsupported` if one is only on a
/// device.
std::map<std::string, tensor> given_defaults(const model& m, const given_inputs& inputs);

/// Returns what is given for each of the model's inputs. Throws `errc::invalid_input` if it is not what the model
/// declares: missing, extra, of wrong type, rank or dims. Dims that share a symbol are compared when the plan is bound.
std::vector<given_inputs::facts> check_inputs(const model& m, const given_inputs& inputs);

/// Throws `errc::invalid_argument` if `keep` names what is not an output, or one twice.
void check_kept(const model& m, const std::vector<std::string>& keep);

/// Returns the positions of outputs that are the next run's inputs. Throws `errc::invalid_argument` if they cannot be:
/// names that do not exist or are bound twice, types or shapes that cannot fit.
std::vector<carried_pair> check_bindings(const model& m, const std::vector<output_binding>& bindings);

struct planned_model;
using planned_model_ptr = std::shared_ptr<const planned_model>;

/// A program's input and a plan device whose chunks upload it.
struct input_upload {
  size_t input = 0;
  device_index device = 0;
};

/// A value that does not stay inside of a chunk: a transfer of the plan, an input, or an output.
struct crossing {
  uint32_t uses = 0;      // how many chunks upload it, plus one for each output that it is
  uint32_t uses_here = 0; // of those, by devices of this process and the caller
  bool awaited = false;   // whether it is in `planned_model::awaited_outputs`
  bool to_peers = false;  // whether chunks on peers of its device read it
};

/// A model, or a body of its control flow, planned for a device set.
struct planned_model {
  uint64_t serial = 0; // unique in the process
  std::shared_ptr<const plan> compiled;
  name_order input_order;                       // of compiled->program->inputs
  std::vector<size_t> program_input;            // by the model's input: which of the program's; SIZE_MAX: none
  std::vector<input_upload> input_uploads;      // of inputs to chunks
  std::vector<std::string> output_names;        // in the order of compiled->program->outputs
  std::vector<tensor> constant_outputs;         // in that order; undefined if the output is not a constant
  std::vector<value_id> awaited_outputs;        // outputs that a chunk or a binding makes, each value once
  std::vector<size_t> devices;                  // by real plan device: index among all of the engine's devices
  std::vector<crossing> crossings;              // few, where a plan has thousands of values
  std::vector<uint32_t> crossing_of;            // by value that crosses: its place in `crossings`
  std::vector<bool> used;                       // by plan device: whether it runs anything
  std::vector<planned_model_ptr> bodies;        // parallel to compiled->bodies
  std::set<std::string> symbols;                // that binding this plan or its bodies needs
  std::map<value_id, tensor> control_constants; // operands of control-flow nodes

  const crossing& at(value_id v) const { return crossings[crossing_of[v]]; }
};

/// Returns the plan's index of a device (an index among the engine's devices); nullopt if the plan runs nothing there.
std::optional<device_index> index_in(const planned_model& p, size_t device);

/// Returns whether the plan, or that of one of its bodies, runs anything on a device (an index among the engine's
/// devices).
bool runs_on(const planned_model& p, size_t device);

/// Reads off a plan what running it needs, its bodies' included. `devices`: the plan's real devices, as indices among
/// all of the engine's. `output_names`, `program_input`: see `planned_model`; bodies have none.
planned_model_ptr describe_plan(std::shared_ptr<const plan> compiled, const std::vector<size_t>& devices,
                                std::vector<std::string> output_names = {}, std::vector<size_t> program_input = {});

} // namespace troupe
