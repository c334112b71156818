// A session's plan in words, JSON or DOT: with a strategy, that of each replica for the pieces that it will get.
#include "actors/engine_access.hpp"
#include "actors/session_state.hpp"
#include "plan/show/print.hpp"

#include <fmt/ranges.h>

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
std::vector<std::string> rests_of(strategy how, const stream_options& options, std::span<const replica> all,
                                  int64_t rows) {
  std::vector<replica_figures> predicted;
  for (const replica& r : all)
    predicted.push_back(r.predicted);
  const machine_options machine = machine_for(how, options, std::move(predicted), all.front().devices.own.size());
  replica_roster roster(machine);
  if (machine.how == distribution::adaptive || machine.how == distribution::stealing)
    roster.compare_speeds(rows);
  std::vector<std::string> why;
  for (size_t i = 0; i < all.size(); ++i)
    why.push_back(roster.why_rests(i));
  return why;
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
      rests_of(state_->how, state_->model->options.stream, state_->replicas, whole.rows);
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

} // namespace troupe
