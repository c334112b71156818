// What can be said and made of a request before it runs: a session's plan in words, JSON or DOT, with a strategy that
// of each replica for the pieces that it will get; and all that its first runs need.
#include "actors/engine_access.hpp"
#include "actors/session_state.hpp"
#include "plan/show/print.hpp"
#include "strategy/first_sizes.hpp"
#include "strategy/replica_roster.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

namespace troupe {

using namespace actors;

namespace {

std::string written(const bound_plan& bound, plan_format format) {
  switch (format) {
    case plan_format::text: return to_text(*bound.source, &bound);
    case plan_format::json: return to_json(*bound.source, &bound);
    case plan_format::dot: return to_dot(*bound.source, &bound);
  }
  fail(errc::invalid_argument, "there is no plan format {}", static_cast<int>(format));
}

/// Returns the inputs of a typical piece of a request.
named_tensors piece_of(const named_tensors& inputs, const request_rows& whole, const model_rows& rows, int64_t most) {
  if (!whole.divisible || whole.rows <= most)
    return inputs;
  const rows_in first{&inputs, 0, most};
  return rows.join_inputs({&first, 1}, make_plain_tensor);
}

/// Returns, for each replica, why it rests at first; empty if it does not.
std::vector<std::string> rests_of(const machine_options& machine, int64_t rows) {
  replica_roster roster(machine);
  if (machine.how == distribution::adaptive || machine.how == distribution::stealing)
    roster.compare_speeds(rows);
  std::vector<std::string> why;
  for (size_t i = 0; i < roster.size(); ++i)
    why.push_back(roster.why_rests(i));
  return why;
}

/// Returns, by replica, the rows of the pieces that it should get of such requests.
std::vector<std::set<int64_t>> sizes_of(const machine_options& machine, const stream_request& request) {
  const auto count = static_cast<int64_t>(machine.replicas.size());
  if (machine.how == distribution::plug_in) // what it will say is not known
    return std::vector<std::set<int64_t>>(machine.replicas.size(), {(request.rows + count - 1) / count});
  return first_sizes(machine, request);
}

/// Waits until no GPU has kernels to compile.
void wait_for_kernels(const actor_runtime& runtime, const run_options& limits) {
  const auto limit = time_limit(limits.timeout, "run_options::timeout");
  const auto start = std::chrono::steady_clock::now();
  const auto is_busy = [](const device_stats& d) { return d.pending_kernels > 0; };
  while (std::ranges::any_of(runtime.devices().stats(), is_busy)) {
    if (limits.cancel.stop_requested())
      fail(errc::cancelled, "the preparation was cancelled while kernels were compiled");
    if (limit && std::chrono::steady_clock::now() - start >= *limit)
      fail(errc::timeout, "kernels were not compiled within {} ms", limit->count());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::string header(strategy how, const replica& r, size_t number, const model_rows& rows, int64_t piece,
                   const std::string& rests) {
  std::string text = fmt::format("strategy {}, replica {}: {}", to_string(how), number, fmt::join(r.devices.own, ", "));
  if (!rests.empty())
    text += fmt::format(" (rests at first: {})", rests);
  if (!r.devices.helpers.empty())
    text += fmt::format(" (helped by {})", fmt::join(r.devices.helpers, ", "));
  if (rows.symbol().empty())
    return text + fmt::format("; requests run whole: {}\n", rows.whole_because());
  return text + fmt::format("; rows of '{}' are independent: pieces of {}, predicted {:.3f} ms and {:.3f} ms a row\n",
                            rows.symbol(), piece, r.predicted.fixed_seconds * 1e3, r.predicted.row_seconds * 1e3);
}

} // namespace

std::string session::plan(const named_tensors& inputs, plan_format format) const {
  if (state_->how == strategy::automatic) {
    run_options unlimited;
    return settled(inputs, unlimited).plan(inputs, format);
  }
  if (state_->how == strategy::none)
    return written(*bound_plan_of(*this, inputs), format);
  const auto count = static_cast<int64_t>(state_->replicas.size());
  const size_t stages = state_->replicas.front().devices.own.size();
  const request_rows whole = state_->rows->measure(inputs);
  int64_t most = state_->model->options.stream.micro_batch;
  if (most == 0)
    most = micro_batch_of(state_->how, whole.rows, stages);
  if (most == 0)
    most = (whole.rows + count - 1) / count;
  const named_tensors piece = piece_of(inputs, whole, *state_->rows, most);
  const std::vector<std::string> rests =
      rests_of(predicted_machine(state_->how, state_->model->options.stream, state_->replicas), whole.rows);
  std::vector<std::string> plans;
  for (size_t i = 0; i < state_->replicas.size(); ++i) {
    const replica& r = state_->replicas[i];
    plans.push_back(format == plan_format::text
                        ? header(state_->how, r, i, *state_->rows, std::min(most, whole.rows), rests[i])
                        : "");
    plans.back() += written(*bound_plan_of(session(state_->on(r)), piece), format);
  }
  if (plans.size() == 1 || format == plan_format::dot)
    return plans.front();
  return format == plan_format::text ? fmt::format("{}", fmt::join(plans, "\n"))
                                     : fmt::format("[{}]", fmt::join(plans, ",\n"));
}

std::vector<std::future<run_result>> session::state::prepare(const named_tensors& inputs,
                                                             const run_options& options) const {
  std::vector<std::future<run_result>> made;
  if (how == strategy::none) {
    made.push_back(prepare_on(replicas.front(), inputs, options));
    return made;
  }
  const stream_options& stream = model->options.stream;
  const request_rows whole = rows->measure(inputs);
  const std::vector<std::set<int64_t>> sizes = sizes_of(
      predicted_machine(how, stream, replicas), request_for(how, stream, whole, replicas.front().devices.own.size()));
  for (size_t r = 0; r < sizes.size(); ++r)
    for (int64_t count : sizes[r])
      made.push_back(prepare_on(replicas[r], piece_of(inputs, whole, *rows, count), options));
  return made;
}

void session::prepare(const named_tensors& inputs, const run_options& options) const {
  run_options rest = options;
  std::vector<std::future<run_result>> made = settled(inputs, rest).state_->prepare(inputs, rest);
  const std::shared_ptr<state> queue = in_time_of(rest, [&](const patience& limits) {
    return state::chosen_for_queue(state_, {inputs, options.device_inputs}, limits);
  });
  if (queue)
    std::ranges::move(queue->prepare(inputs, rest), std::back_inserter(made));
  for (std::future<run_result>& each : made)
    each.get();
  wait_for_kernels(*state_->runtime, rest);
}

} // namespace troupe
