// The values of an execution that cross between chunks: what it is given, what chunks read and make, what comes out.
// They are made when the chunk that makes them is taken, and held until the last chunk that reads them has been: chunks
// carry references, devices fill and read what these name (device/moved_value.hpp). Not thread-safe.
#pragma once

#include "run/commands.hpp"
#include "run/model.hpp"

namespace troupe {

/// Returns the names of the run's device inputs that its plan uploads elsewhere than where they are.
std::vector<std::string> inputs_wanted_on_host(const run_request& request, const planned_model& planned);

class execution_values {
public:
  /// Those of an execution of `planned`, which outlives them, that is given nothing yet and keeps nothing. `promises`:
  /// whether devices may promise values to their peers.
  execution_values(const planned_model& planned, bool promises);

  /// Takes note of what the request keeps, by name and between pairs of a bound session.
  void keep(const run_request& request);
  /// Takes the model's inputs from `request`; copies share bytes.
  void give(const run_request& request);
  /// Takes the inputs of a body.
  void give(std::vector<tensor> inputs);
  /// Takes the outputs that a segment's binding knows.
  void start(const bound_plan& bound);

  /// Returns what a chunk reads, of which the last reader lets go: values that are there, or will be
  /// (`let_peers_wait`). Inputs that have not been given are null.
  std::vector<value_ref> uploads_of(const chunk& c);
  /// Returns what a chunk is to make.
  std::vector<value_ref> downloads_of(const chunk& c);
  /// Puts what has been given since into the work of a chunk that was taken before.
  void give(const chunk& c, chunk_work& work);

  /// Called when a chunk has said which of its downloads it has made. Does what can be done of `complete` and
  /// `carried`.
  void look_ahead(const chunk& c, std::span<const uint32_t> made, const bound_plan& bound);
  /// Returns whether peers can wait for what a chunk makes for them: it is small enough to be promised. Then they may
  /// be sent, and let go of it, before the chunk has ended.
  bool let_peers_wait(const chunk& c, const bound_plan& bound);
  /// Called when a chunk has made its values; binds the symbols that these state. Throws `errc::internal` if the values
  /// are not as the plan says.
  void complete(const chunk& c, const bound_plan& bound, bindings& symbols);
  /// Says what a control-flow chunk has made: the outputs of its node, in their order.
  void fill(const chunk& c, std::span<const tensor> results) const;

  /// Returns a value that crosses, made or to be made; null before its chunk is taken, and if it is needed no more.
  const value_ref& made(value_id v) const { return at(v).made; }
  /// Returns whether all outputs are there.
  bool are_complete() const { return outputs_missing_ == 0; }
  /// Returns the outputs in the order of the plan's graph.
  std::vector<tensor> outputs() const;
  /// Returns those that the run does not keep.
  named_tensors named_outputs() const;
  /// Returns those that it keeps by name.
  named_device_tensors kept() const;
  /// Returns those that it hands on (`carried_values`), by pair.
  carried_bundle carried() const;
  /// Returns whether `look_ahead` has moved what the run hands on out of it.
  bool has_handed_on() const { return carried_ != nullptr; }

private:
  /// What is known of a value that crosses.
  struct crossing_state {
    value_ref made;          // if it is there, or made now, and still needed
    uint32_t kept = 0;       // as how many outputs the run keeps it
    uint32_t uses_left = 0;  // uploads that have not been taken; outputs count as one more
    bool is_checked = false; // it is as planned
  };

  crossing_state& at(value_id v) { return crossings_[planned_.crossing_of[v]]; }
  const crossing_state& at(value_id v) const { return crossings_[planned_.crossing_of[v]]; }
  /// Returns output `i` where it stays.
  device_tensor kept_output(size_t i) const;
  /// Returns output `i` on the host.
  const tensor& output(size_t i) const;
  /// Returns a value for a chunk that reads it, letting go of it after the last one.
  value_ref use(value_id v);
  /// Returns a value for the chunk to fill that makes it: one of `together`, which has room for the chunk's, if the run
  /// keeps it and that is not null.
  value_ref value_to_make(value_id v, const std::shared_ptr<std::vector<moved_value>>& together) const;
  /// Moves what the run hands on to `carried_` if all of it is there, on a device alone, and not wanted elsewhere: so
  /// no reference to it is counted, which the next run's threads do at that time.
  void hand_on();

  const planned_model& planned_;
  const plan& source_; // of it
  const bool promises_;
  std::shared_ptr<const std::vector<carried_pair>> pairs_; // null: none, without a count that all sessions share
  std::vector<crossing_state> crossings_;                  // as `planned_model::crossings`
  carried_bundle carried_;           // what the run hands on; null if that was not ahead of its end
  std::vector<size_t> kept_outputs_; // those that the run keeps by name, in the order in which the request names them
  uint32_t outputs_missing_ = 0;     // distinct values
  bool is_given_ = false;            // the inputs
};

} // namespace troupe
