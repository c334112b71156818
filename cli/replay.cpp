// troupe replay: does again what --record has kept of a session, without its devices, and compares what the session
// asks for.
#include "cli/command.hpp"

#include "base/hash_file.hpp"
#include "base/printable.hpp"
#include "cost/node_times.hpp"
#include "cost/profile_file.hpp"
#include "loader/onnx_loader.hpp"
#include "recording/replay.hpp"

#include <fmt/format.h>

namespace troupe::cli {
namespace {

struct replay_arguments {
  std::filesystem::path file, model, profile;
  std::string policy_plugin;
  bool print = false;
  bool json = false;
};

/// Returns the file of the recorded session's model. Throws `errc::invalid_argument` if it is not as it was.
std::filesystem::path model_of(const recording::session_facts& session, const std::filesystem::path& given) {
  if (given.empty() && session.model_file.empty())
    fail(errc::invalid_argument, "the session's model was built in code; give it as a file, with --model");
  const std::filesystem::path file = model_file(given.empty() ? std::filesystem::path(session.model_file) : given);
  if (!std::filesystem::is_regular_file(file))
    fail(errc::io, "the model '{}' is not there; give its file with --model", file.string());
  if (const auto found = hash_file(file);
      found && session.model_bytes > 0 && (found->bytes != session.model_bytes || found->hash != session.model_hash))
    fail(errc::invalid_argument,
         "'{}' is not the model that the session ran, or it has changed since; give that one "
         "with --model",
         file.string());
  return file;
}

/// Returns what gives devices the measured times that the session's plans counted on.
recording::measure_device measured_by(const std::filesystem::path& profile) {
  return [profile, known = load_profiles(profile)](recording::device_facts& d) {
    if (d.measured == hash128())
      return;
    for (const measured_profile& m : known.devices)
      if (m.device == key_of(d.info))
        d.info.profile.measured = std::make_shared<const node_times>(m.nodes);
    if (!d.info.profile.measured || d.info.profile.measured->key() != d.measured)
      fail(errc::invalid_argument,
           "the session counted on measured times of device '{}' that '{}' does not hold; give the file that it read "
           "with --profile",
           d.info.name, profile.string());
  };
}

void print_records(const recording::recorded_session& recorded) {
  recording::for_each_text(
      recorded, [](uint64_t number, const std::string& text) { fmt::print("{:8} {}\n", number, printable(text)); });
}

void run_replay(const replay_arguments& args) {
  const recording::recorded_session recorded = recording::read_recording(args.file);
  const recording::session_facts& session = recorded.session;
  if (args.print)
    return print_records(recorded);
  const std::filesystem::path profile =
      args.profile.empty() ? std::filesystem::path(session.profile_file) : args.profile;
  const recording::replay_result done =
      recording::replay(recorded, load_model(model_of(session, args.model)), measured_by(profile), args.policy_plugin);
  if (args.json)
    write_json(nlohmann::ordered_json{{"events", done.events},
                                      {"commands", done.commands},
                                      {"runs", done.runs},
                                      {"difference", done.difference},
                                      {"ended", done.ended},
                                      {"version", session.version}});
  else
    fmt::print("{} events, {} commands, {} runs: {}\n", done.events, done.commands, done.runs,
               done.difference.empty() ? "no difference" : printable(done.difference));
  if (!args.json && !done.ended.empty())
    fmt::print("the recording ends before the session did: {}\n", printable(done.ended));
  if (!args.json && !done.difference.empty() && session.version != TROUPE_VERSION)
    fmt::print("it was made by troupe {}; this is {}\n", printable(session.version), TROUPE_VERSION);
  if (!done.difference.empty())
    throw CLI::RuntimeError(1);
}

} // namespace

void add_replay(CLI::App& app) {
  const auto args = std::make_shared<replay_arguments>();
  CLI::App* command = app.add_subcommand(
      "replay", "Do again what --record has kept of a session, without its devices; exit with 1 if it acts otherwise");
  command->add_option("file", args->file, "A recording")->type_name("FILE")->required();
  command->add_option("--model", args->model, "The session's model, if it is in another place now")->type_name("FILE");
  command->add_option("--profile", args->profile, "Measured profiles, if they are in another place now")
      ->type_name("FILE");
  command
      ->add_option("--policy-plugin", args->policy_plugin,
                   "The session's placement policy, if that was one of your own: a shared library")
      ->type_name("FILE");
  CLI::Option* print = command->add_flag("--print", args->print, "Print the records instead, one a line");
  command->add_flag("--json", args->json, "Print JSON")->excludes(print);
  command->callback([args] { run_replay(*args); });
}

} // namespace troupe::cli
