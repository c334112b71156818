// Control-flow chunks that have begun: which body each executes next, and what comes out in the end. The bodies are
// executions of their own, which others run one after the other for each chunk. Not thread-safe.
#pragma once

#include "run/control_flow.hpp"
#include "run/execution.hpp"

namespace troupe {

/// Returns the plan of body `index` of a control-flow chunk's node.
const planned_model_ptr& body_of(const execution& e, chunk_id chunk, size_t index);

/// Returns the operands of a control-flow chunk's node, in its order; undefined if absent.
std::vector<tensor> operands_of(const execution& e, const chunk_work& work);

/// Fills the values that a control-flow chunk makes, whose bodies are done.
void fill_results(execution& e, chunk_id chunk, const control_flow& flow);

class control_chunks {
public:
  explicit control_chunks(std::vector<command>& commands) : commands_(commands) {}

  /// Begins a chunk of `e` that is ready: it goes on when `continue_control` is handed back.
  void begin(const execution& e, chunk_work work);
  bool has(const chunk_place& place) const { return running_.contains(place); }
  /// Returns the body to execute next for a chunk of `e`; nullopt if there is none left. Throws as `control_flow` does.
  std::optional<control_flow::body_call> next(const execution& e, chunk_id chunk);
  /// Takes the outputs of the body that `next` named last; the chunk goes on when `continue_control` is handed back.
  void take(const chunk_place& place, std::vector<tensor> outputs);
  /// Ends a chunk of `e` that has no body left: fills the values that it makes.
  chunk_result finish(execution& e, chunk_id chunk);
  /// Ends the chunks of an execution that has ended.
  void forget(execution& e);

  /// Returns the name of the node of a chunk of `e`: "Loop 'x'".
  static std::string name(const execution& e, chunk_id chunk);
  /// Returns the body that `next` named last for a chunk of `e`: "Loop 'x', iteration 3".
  std::string position(const execution& e, chunk_id chunk) const;

private:
  struct running {
    chunk_work work;                  // until the flow begins
    std::optional<control_flow> flow; // null before that
    int64_t started_ns = 0;
  };

  std::vector<command>& commands_;
  std::map<chunk_place, running> running_;
};

} // namespace troupe
