// Models that are ready to run; `engine::load` makes them.
#pragma once

#include "troupe/options.hpp"
#include "troupe/results.hpp"

#include <functional>
#include <future>

namespace troupe {

class bound_session;

/// What a bound session does against the loss of its values (`session::bind`).
struct bind_options {
  /// Above 0, N: after every N steps the session takes a host copy of all bound values, a checkpoint, from which it
  /// goes on if a device that keeps them is lost. Copies are made while later steps run, one at a time: if one takes
  /// longer than N steps, the next begins when it is there. Costs as much host memory as the bound values have, twice
  /// that while a copy is made; their device keeps those that are copied until then. At 0 there are checkpoints only
  /// where `heal` needs them.
  uint64_t checkpoint = 0;
  /// Whether the session itself takes the steps since the last checkpoint again after a loss, and then answers as if
  /// nothing had happened. It keeps copies of what these steps were given, and samples of what they answered. If a
  /// repeated step answers something else, as a model with random numbers does, `state_rolled_back` says so.
  bool heal = true;
  /// Bytes of steps that are kept for `heal`. When they are full a checkpoint is taken, so that they can be forgotten.
  /// A step that is given more than 1 MiB is not kept, so that keeping costs next to nothing.
  int64_t heal_bytes = int64_t{64} << 20;
};

/// Values of a bound session were on a device that is lost, and are again those of an earlier step, of which there was
/// a host copy; the steps since could not be repeated, or were not to be (`bind_options`). Its code is
/// `errc::device_lost`.
class TROUPE_API state_rolled_back : public error {
public:
  state_rolled_back(std::string_view message, uint64_t repeat_from)
      : error(errc::device_lost, message), repeat_from_(repeat_from) {}

  /// Returns the step to repeat from, counted as by `bound_session::step`: the run that it names, and those after it,
  /// are to be given their inputs again. Those before it are part of the state.
  uint64_t repeat_from() const noexcept { return repeat_from_; }

private:
  uint64_t repeat_from_;
};

/// How `session::plan` writes a plan.
enum class plan_format : uint8_t {
  text, // for people
  json, // what `session_options::plan_file` takes
  dot,  // a Graphviz digraph
};

/// What is called when a run has ended (`session::run_async`).
using run_callback = std::function<void(run_outcome)>;

/// A model, ready to run. A handle: copies share the model. Thread-safe: concurrent runs of one session are in flight
/// side by side.
class TROUPE_API session {
public:
  /// Returns the model's inputs and outputs, in the file's order.
  const std::vector<value_info>& inputs() const;
  const std::vector<value_info>& outputs() const;

  /// Runs the model. Throws `errc::invalid_input` for inputs that are missing, extra, or of wrong type or shape,
  /// `errc::invalid_argument` for options that cannot be; `errc::device_failed`, `device_lost`, `timeout` as the run
  /// ends. `errc::device_lost` too if an input is on a device that is gone.
  run_result run(named_tensors inputs, const run_options& options = {}) const;

  /// Starts a run; the future throws what `run` throws. The inputs' bytes must not change before it is ready.
  std::future<run_result> run_async(named_tensors inputs, const run_options& options = {}) const;

  /// Starts a run and calls `done` when it has ended, exactly once, however it ends: when the engine is closed too,
  /// which waits for the calls that are left. So any number of runs needs no thread to wait for them.
  ///
  /// Callbacks run one after the other, on a thread of the engine's own that neither devices nor actors use: one may
  /// call anything here, `run` too, and destroy session and engine; others wait meanwhile. Exceptions from callbacks
  /// are swallowed; the first per engine is logged to stderr. Throws `errc::invalid_argument` if `done` is empty and
  /// `errc::cancelled` if the engine is closed; `done` is not called then. The inputs' bytes must not change before
  /// `done` is called.
  void run_async(named_tensors inputs, const run_options& options, run_callback done) const;

  /// Puts a request into the session's queue, which feeds its replicas (`session_options::strategy`; with `none`, the
  /// session is the only replica) and cuts and joins requests as `session_options::stream` says. Waits while as many
  /// requests as that allows have no answer; not beyond `options.timeout`, which counts from the call. Else as
  /// `run_async`; a request that would be too late is not started. A request that names devices (`device_inputs`,
  /// `keep`) or asks for a trace runs whole.
  ///
  /// With a strategy other than `standard` and `none`, `run` and `run_async` do the same.
  std::future<run_result> submit(named_tensors inputs, const run_options& options = {}) const;
  void submit(named_tensors inputs, const run_options& options, run_callback done) const;

  /// Returns counters of the queue; nothing but zeros if nothing was submitted yet.
  stream_stats queue_stats() const;

  /// Makes outputs the inputs of the next run, and leaves them on their device between. Throws `errc::invalid_argument`
  /// if a name does not exist or is bound twice, or if type or shape of a pair cannot fit. A bound session stays on one
  /// replica, each in turn. If the strategy is automatic and nothing was chosen yet, it is chosen here, for requests of
  /// the dims that the session's options state, others being small.
  bound_session bind(std::vector<output_binding> pairs, const bind_options& options = {}) const;

  /// Returns the plan that a run with these inputs would use, making it where it is not cached: what runs where and
  /// why, in which chunks, and what moves; with shapes and bytes for these inputs. As a run does, it has
  /// `strategy::automatic` choose if nothing was chosen yet. Throws what `run` throws for inputs.
  std::string plan(const named_tensors& inputs, plan_format format = plan_format::text) const;

  /// Makes what the first runs with such inputs need, and computes nothing: plans, on their devices with their weights;
  /// with a strategy, for the pieces that each replica should get. Returns when all GPUs of the engine have compiled
  /// the kernels that are wanted there. The inputs' values count only if shapes depend on them. Of models with control
  /// flow, or dims that a run computes, what precedes those. Of `options`, `timeout` and `cancel` count. Throws what
  /// `run` throws before it computes.
  void prepare(const named_tensors& inputs, const run_options& options = {}) const;

  /// Returns every strategy with every policy, costed for such requests: each device alone, and the best 2, 3 … of the
  /// session's devices together (of more than 8, the best 2, 4, 8 …, all, and `choice_options::max_devices`). The one
  /// that `strategy::automatic` would choose comes first, then from the best to the worst, impossible ones last. Takes
  /// as long as planning all of them. Throws what `run` throws for inputs.
  std::vector<strategy_choice> compare(const named_tensors& inputs) const;

  /// Returns what was chosen by `automatic`, or for a queue by `standard`; nullopt before, or if there was no choice.
  std::optional<strategy_choice> choice() const;

  session_stats stats() const;

private:
  friend class engine;
  friend class bound_session;
  friend struct engine_access;
  struct state;
  explicit session(std::shared_ptr<state> s);
  /// What `strategy::automatic` means for this session, chosen now if it was not yet; takes the time that it took off
  /// the run's limit.
  session settled(const named_tensors& inputs, run_options& options) const;
  using start_run = std::future<run_result> (session::*)(named_tensors, const run_options&) const;
  using start_callback_run = void (session::*)(named_tensors, const run_options&, run_callback) const;
  std::future<run_result> by_choice(const named_tensors& inputs, const run_options& options, start_run start) const;
  void by_choice(const named_tensors& inputs, const run_options& options, run_callback done,
                 start_callback_run start) const;
  tensor fetch(const device_tensor& value) const;
  /// Asks for host copies of values, by input: the outputs of the result. A loss ends it with `errc::device_lost`.
  std::future<run_result> fetch_async(named_device_tensors values) const;
  std::shared_ptr<state> state_;
};

/// A session whose bound outputs feed its next run, e.g. a decoder with its past keys and values. Its runs go one after
/// the other, whichever threads call; several bound sessions of one session run side by side. A run that fails leaves
/// the state as it was before. Copies share the state.
///
/// A device that is lost takes the bound values with it that were in its own memory. The session goes back to its last
/// checkpoint and takes the steps since again (`bind_options::heal`); `run_stats::repeated_steps` counts them. If that
/// cannot be, `run` and `fetch` throw `state_rolled_back`, once, if there is a checkpoint and a device is left: the
/// state is that of the checkpoint, and the caller repeats the runs from `state_rolled_back::repeat_from` on. Else they
/// throw `errc::device_lost` until all that was there is given anew.
class TROUPE_API bound_session {
public:
  /// Runs the model; the result's outputs are those that are not bound. The first run takes the bound inputs' initial
  /// values among `inputs`; a later one that names a bound input starts it over. Throws what `session::run` throws, and
  /// see above.
  ///
  /// Initial values are the first checkpoint. If a copy that `bind_options::checkpoint` asks for fails for another
  /// reason than a loss, the next run says so instead of running, once; the state is as it was. A run that ends with
  /// `errc::timeout` or `errc::cancelled` while lost steps are repeated leaves the rest of them to the next.
  run_result run(named_tensors inputs, run_options options = {});

  /// Returns a host copy of what a bound output is now. Throws `errc::invalid_argument` where it is not bound or no run
  /// has ended well; and see above.
  tensor fetch(const std::string& output) const;

  /// Returns how many runs have ended well since the one that was given all bound inputs, which is step 1; less those
  /// that are to be repeated.
  uint64_t step() const;

private:
  friend class session;
  struct state;
  bound_session(session model, std::vector<output_binding> pairs, const bind_options& options);
  std::shared_ptr<state> state_;
};

} // namespace troupe
