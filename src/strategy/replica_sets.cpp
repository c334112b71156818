#include "strategy/replica_sets.hpp"

#include "base/error.hpp"
#include "strategy/model_rows.hpp"
#include "troupe/option_words.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

bool is_helper(const device_info& helper, const device_info& own) {
  return helper.kind == device_kind::cpu && helper.name != own.name && helper.host == own.host;
}

replica_set of_all(std::span<const device_info> devices) {
  replica_set r;
  for (const device_info& d : devices)
    (d.fallback ? r.helpers : r.own).push_back(d.name);
  if (r.own.empty())
    r.own.swap(r.helpers);
  return r;
}

distribution distribution_of(strategy how, share_rule shares) {
  if (how == strategy::work_stealing)
    return distribution::stealing;
  if (how == strategy::plug_in)
    return distribution::plug_in;
  switch (shares) {
    case share_rule::equal: return distribution::round_robin;
    case share_rule::weighted: return distribution::weighted;
    case share_rule::adaptive: return distribution::adaptive;
  }
  fail(errc::invalid_argument, "there is no rule of shares {}", static_cast<int>(shares));
}

/// Micro-batches of a request without a stated size: enough that filling and draining a pipeline costs a fifth, few
/// enough that each still fills its device.
constexpr size_t rounds = 4;

size_t depth_of(strategy how, const stream_options& options, size_t stages) {
  if (options.depth > 0)
    return options.depth;
  if (how != strategy::pipeline)
    return 2;
  // One for each stage, and one that uploads while the first stage computes.
  return options.schedule == pipeline_schedule::fill_drain ? rounds * stages * 2 : stages + 1;
}

} // namespace

std::vector<std::string> replica_set::all() const {
  std::vector<std::string> names = own;
  names.insert(names.end(), helpers.begin(), helpers.end());
  return names;
}

replica_set led_by(const device_info& own, std::span<const device_info> devices) {
  replica_set r{{own.name}, {}};
  if (own.kind == device_kind::vulkan)
    for (const device_info& d : devices)
      if (is_helper(d, own) || (d.fallback && d.name != own.name))
        r.helpers.push_back(d.name);
  return r;
}

std::vector<replica_set> replicas_of(strategy how, std::span<const device_info> devices) {
  if (devices.empty())
    fail(errc::invalid_argument, "a strategy needs a device");
  if (how != strategy::data_parallel && how != strategy::work_stealing && how != strategy::plug_in)
    return {of_all(devices)};
  const bool only_fallbacks =
      std::all_of(devices.begin(), devices.end(), [](const device_info& d) { return d.fallback; });
  std::vector<replica_set> all;
  for (const device_info& d : devices)
    if (!d.fallback || only_fallbacks)
      all.push_back(led_by(d, devices));
  return all;
}

void check_pins(std::span<const placement_pin> pins, const replica_set& replica, std::span<const device_info> devices) {
  const std::vector<std::string> mine = replica.all();
  const auto is_mine = [&](const std::string& name) { return std::find(mine.begin(), mine.end(), name) != mine.end(); };
  for (const placement_pin& p : pins)
    if (!mine.empty() && !is_mine(p.device) &&
        std::any_of(devices.begin(), devices.end(), [&](const device_info& d) { return d.name == p.device; }))
      fail(
          errc::invalid_argument,
          "the pin '{}={}' cannot hold: the session, or a replica of its strategy, uses only {}; leave the pin out, or "
          "let one plan use all devices (--strategy none, model-parallel, pipeline; no --strategy-plugin)",
          p.pattern, p.device, fmt::join(mine, ", "));
}

placement_policy policy_of(strategy how, placement_policy wanted) {
  switch (how) {
    case strategy::pipeline: return placement_policy::pipeline;
    case strategy::model_parallel: return wanted == placement_policy::single ? placement_policy::heft : wanted;
    default: return wanted;
  }
}

placement_policy policy_of(const session_options& options) {
  return policy_of(options.strategy, options.policy_plugin.empty() ? options.policy : placement_policy::plug_in);
}

machine_options machine_for(strategy how, const stream_options& options, std::vector<replica_figures> replicas,
                            size_t stages, std::shared_ptr<const strategy_library> plugin) {
  machine_options m;
  m.plugin = std::move(plugin);
  m.replicas = std::move(replicas);
  m.how = distribution_of(how, options.shares);
  m.depth = depth_of(how, options, stages);
  m.micro_batch = options.micro_batch;
  m.max_batch = options.max_batch;
  m.max_delay = std::min<std::chrono::microseconds>(options.max_delay, std::chrono::hours(24));
  m.ordered = options.ordered;
  m.queue_limit = std::numeric_limits<int64_t>::max(); // callers wait before they come here
  return m;
}

int64_t micro_batch_of(strategy how, int64_t rows, size_t stages) {
  if (how != strategy::pipeline)
    return 0;
  const auto pieces = static_cast<int64_t>(rounds * stages);
  return (rows + pieces - 1) / pieces;
}

stream_request request_for(strategy how, const stream_options& options, const request_rows& rows, size_t stages) {
  stream_request r{.rows = rows.rows, .key = rows.key, .divisible = rows.divisible, .deadline = {}, .pinned = {}};
  if (options.micro_batch == 0 && rows.divisible)
    r.micro_batch = micro_batch_of(how, rows.rows, stages);
  return r;
}

std::string_view to_string(strategy how) {
  const std::string_view word = text_of(strategy_words, how);
  if (word.empty())
    fail(errc::invalid_argument, "there is no strategy {}", static_cast<int>(how));
  return word;
}

strategy parse_strategy(std::string_view name) {
  std::vector<strategy> all{strategy::standard, strategy::none, strategy::automatic};
  all.insert(all.end(), strategies.begin(), strategies.end());
  std::vector<std::string_view> known;
  for (const strategy s : all) {
    if (to_string(s) == name)
      return s;
    known.push_back(to_string(s));
  }
  fail(errc::invalid_argument, "there is no strategy '{}'; there are {}", name, fmt::join(known, ", "));
}

} // namespace troupe
