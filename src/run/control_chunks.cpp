#include "run/control_chunks.hpp"

#include <algorithm>

namespace troupe {
namespace {

const node& control_node(const execution& e, chunk_id chunk) {
  return e.source().program->nodes[e.source().chunks[chunk].nodes.front()];
}

/// Returns the dims that the plan states for a value, 0 where they are not known.
shape dims_or_empty(execution& e, value_id v) {
  if (e.source().segment_of_value[v] <= e.bound()->segment)
    return e.bound()->dims[v];
  shape dims;
  for (const dim& d : *e.source().program->values[v].dims)
    dims.push_back(d.depends_on_data() ? 0 : d.evaluate(e.prepared().symbols));
  return dims;
}

} // namespace

const planned_model_ptr& body_of(const execution& e, chunk_id chunk, size_t index) {
  const auto& bodies = e.source().bodies;
  const node_id n = e.source().chunks[chunk].nodes.front();
  const auto first = std::find_if(bodies.begin(), bodies.end(), [&](const planned_body& b) { return b.node == n; });
  return e.planned()->bodies.at(static_cast<size_t>(first - bodies.begin()) + index);
}

std::vector<tensor> operands_of(const execution& e, const chunk_work& work) {
  const chunk& c = e.source().chunks[work.chunk];
  std::vector<tensor> operands;
  for (value_id v : control_node(e, work.chunk).inputs) {
    if (v == no_value) {
      operands.emplace_back();
      continue;
    }
    const auto uploaded = std::find(c.uploads.begin(), c.uploads.end(), v);
    const auto constant = e.planned()->control_constants.find(v);
    operands.push_back(uploaded != c.uploads.end() ? work.uploads[uploaded - c.uploads.begin()]->host()
                       : constant != e.planned()->control_constants.end() ? constant->second
                                                                          : e.bound()->known[v]);
    expects(operands.back().defined(), "control flow is ready, but an operand of it is not on the host");
  }
  return operands;
}

void fill_results(execution& e, chunk_id chunk, const control_flow& flow) {
  const node& n = control_node(e, chunk);
  std::vector<shape> empty; // dims of scan outputs without elements
  for (size_t i = flow.carried(); i < flow.carried() + flow.scan_outputs(); ++i)
    empty.push_back(i < n.outputs.size() && n.outputs[i] != no_value ? dims_or_empty(e, n.outputs[i]) : shape{0});
  e.values().fill(e.source().chunks[chunk], flow.results(empty));
}

void control_chunks::begin(const execution& e, chunk_work work) {
  const chunk_place place{e.id(), work.chunk};
  running_.emplace(place, running{.work = std::move(work), .flow = std::nullopt, .started_ns = now_ns()});
  commands_.push_back(continue_control{place});
}

std::optional<control_flow::body_call> control_chunks::next(const execution& e, chunk_id chunk) {
  running& control = running_.at({e.id(), chunk});
  if (!control.flow)
    control.flow.emplace(control_node(e, chunk), operands_of(e, std::exchange(control.work, {})));
  return control.flow->next();
}

void control_chunks::take(const chunk_place& place, std::vector<tensor> outputs) {
  running_.at(place).flow->take(std::move(outputs));
  commands_.push_back(continue_control{place});
}

chunk_result control_chunks::finish(execution& e, chunk_id chunk) {
  const auto found = running_.find({e.id(), chunk});
  const control_flow& flow = *found->second.flow;
  fill_results(e, chunk, flow);
  chunk_result result;
  if (e.costs().traced())
    result.timings.push_back({.id = e.source().chunks[chunk].nodes.front(),
                              .begin_ns = found->second.started_ns,
                              .end_ns = now_ns(),
                              .kernel = fmt::format("bodies: {}", flow.executed())});
  running_.erase(found);
  return result;
}

void control_chunks::forget(execution& e) {
  // No device answers for these chunks. If they did not end here, the execution would never be taken out of the book.
  std::erase_if(running_, [&](const auto& entry) {
    return entry.first.execution == e.id() && e.in_flight().end(entry.first.chunk);
  });
}

std::string control_chunks::name(const execution& e, chunk_id chunk) {
  return describe(control_node(e, chunk));
}

std::string control_chunks::position(const execution& e, chunk_id chunk) const {
  return fmt::format("{}, {}", name(e, chunk), running_.at({e.id(), chunk}).flow->position());
}

} // namespace troupe
