#include "cli/strategy_options.hpp"

#include "plan/place/policies.hpp"
#include "strategy/replica_sets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::cli {

namespace {

void add_choice_options(CLI::App& command, model_options& options) {
  choice_options& choice = options.choice;
  command
      .add_option("--goal", choice.goal, "What `auto` is to be good at: latency (of one request; default), throughput")
      ->type_name("GOAL")
      ->transform(CLI::CheckedTransformer(words(objective_words)).description(""));
  command
      .add_option("--max-devices", choice.max_devices,
                  "The most devices that `auto` may take; those that help out where a GPU cannot do not count")
      ->check(CLI::PositiveNumber);
  command
      .add_option_function<std::string>(
          "--max-memory", [&choice](const std::string& text) { choice.max_memory = parse_bytes(text, "--max-memory"); },
          "The most memory that `auto` may take, of all devices together, e.g. 2GiB")
      ->type_name("BYTES");
  command
      .add_option_function<double>(
          "--max-latency",
          [&choice](double ms) { choice.max_latency = std::chrono::microseconds(static_cast<int64_t>(ms * 1e3)); },
          "The most milliseconds that one request may take by the prediction of `auto`")
      ->check(CLI::Range(1e-3, 1e9));
}

void add_joining_options(CLI::App& command, stream_options& stream) {
  command
      .add_option("--max-batch", stream.max_batch, "Rows up to which requests that wait are joined (default: never)")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option_function<double>(
          "--max-delay",
          [&stream](double ms) { stream.max_delay = std::chrono::microseconds(static_cast<int64_t>(ms * 1e3)); },
          "Milliseconds that a request waits for others to be joined with (default 0)")
      ->check(CLI::Range(0.0, 1e9));
}

} // namespace

void add_strategy_options(CLI::App& command, model_options& options) {
  command.option_defaults()->group("Strategy");
  stream_options& stream = options.stream;
  std::string known = "How devices share the work: standard (one plan for a run; what answers the most requests a "
                      "second for many), none (one plan), auto (chosen for the first request),";
  for (const strategy s : strategies)
    known += fmt::format(" {}", to_string(s));
  CLI::Option* how =
      command
          .add_option_function<std::string>(
              "--strategy", [&options](const std::string& name) { options.strategy = parse_strategy(name); }, known)
          ->type_name("STRATEGY");
  command
      .add_option_function<std::string>(
          "--strategy-plugin",
          [&options](const std::string& file) {
            options.strategy_plugin = file;
            options.strategy = strategy::plug_in;
          },
          "A strategy of your own: a shared library (troupe/strategy.hpp)")
      ->type_name("FILE")
      ->excludes(how);
  command.get_option("--load-plan")->excludes("--strategy", "--strategy-plugin"); // it says what runs where
  add_choice_options(command, options);
  const auto non_negative = CLI::NonNegativeNumber;
  command
      .add_option("--micro-batch", stream.micro_batch,
                  "Most rows of a piece that is cut from a batch (default: chosen)")
      ->check(non_negative);
  command
      .add_option("--depth", stream.depth, "Pieces in flight on a replica (default: 2, a pipeline's stages and one)")
      ->check(non_negative);
  command
      .add_option("--schedule", stream.schedule,
                  "When a pipeline takes the next micro-batch in: one-in-one-out (default), fill-drain")
      ->type_name("SCHEDULE")
      ->transform(CLI::CheckedTransformer(words(schedule_words)).description(""))
      ->needs(how);
  command
      .add_option("--shares", stream.shares,
                  "Data-parallel shares: adaptive (default), by measured speed; weighted, by predicted speed; equal")
      ->type_name("SHARES")
      ->transform(CLI::CheckedTransformer(words(share_words)).description(""))
      ->needs(how);
  add_joining_options(command, stream);
}

nlohmann::json to_json(const strategy_choice& c) {
  return {{"strategy", to_string(c.strategy)},  {"policy", to_string(c.policy)},  {"devices", c.devices},
          {"micro_batch", c.micro_batch},       {"possible", c.possible},         {"latency_ms", c.latency_ms},
          {"requests_per_s", c.requests_per_s}, {"memory_bytes", c.memory_bytes}, {"why", c.why}};
}

std::string choice_text(const std::optional<strategy_choice>& c) {
  if (!c)
    return {};
  return fmt::format("strategy auto: {} over {}; predicted {:.3f} ms, {:.1f} requests/s: {}\n", to_string(c->strategy),
                     fmt::join(c->devices, ", "), c->latency_ms, c->requests_per_s, c->why);
}

std::string replicas_text(const stream_stats& stats, double wall_ms) {
  std::string text;
  for (const replica_stats& r : stats.replicas)
    text +=
        fmt::format("{:24} {:8} pieces {:10} rows, at work {:5.1f} %, {:.3f} ms a row and {:.3f} ms a piece{}\n",
                    fmt::format("{}", fmt::join(r.devices, "+")), r.pieces, r.rows, 100 * r.busy_ms / wall_ms, r.row_ms,
                    r.piece_ms, r.why_not.empty() ? "" : (r.living ? "; rests: " : "; out: ") + r.why_not);
  if (stats.rows.empty() && !text.empty())
    text += fmt::format("requests run whole: {}\n", stats.whole_because);
  return text;
}

nlohmann::json replicas_json(const stream_stats& stats, double wall_ms) {
  nlohmann::json all = nlohmann::json::array();
  for (const replica_stats& r : stats.replicas)
    all.push_back({{"devices", r.devices},
                   {"living", r.living},
                   {"pieces", r.pieces},
                   {"rows", r.rows},
                   {"busy", r.busy_ms / wall_ms},
                   {"row_ms", r.row_ms},
                   {"piece_ms", r.piece_ms},
                   {"predicted_row_ms", r.predicted_row_ms}});
  return all;
}

} // namespace troupe::cli
