// troupe worker: lends this machine's devices to sessions of other hosts.
#include "actors/worker.hpp"
#include "actors/host_names.hpp"
#include "cli/command.hpp"
#include "cli/progress.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <csignal>
#include <iostream>
#include <malloc.h>

namespace troupe::cli {
namespace {

struct worker_arguments : model_options {
  std::string listen = "127.0.0.1:4242";
  std::filesystem::path weights, models;
  size_t sessions = 64, sessions_per_host = 16;
  std::vector<std::string> allowed;
  uint32_t drain_s = 30;
};

/// One line an event, to be read by people and by programs: JSON.
void log_event(const std::string& event, const remote::service_options::facts& facts) {
  nlohmann::ordered_json line;
  line["time"] = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  line["event"] = event;
  for (const auto& [name, value] : facts)
    line[name] = value;
  fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::fflush(stdout);
}

/// What a session has used goes back to the system when it leaves; else the C library keeps up to 64 MiB for each of
/// many threads.
void keep_little_memory() {
  mallopt(M_ARENA_MAX, 4);
  mallopt(M_MMAP_THRESHOLD, 4 << 20); // pieces are below it, so they are not cleared anew each time
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

/// Lets the sessions end what they have in hand; returns after that, or at the limit, or at a second signal.
void leave(actors::worker& lends, const sigset_t& ends, std::chrono::seconds limit) {
  log_event("draining",
            {{"sessions", std::to_string(lends.sessions())}, {"limit", fmt::format("{} s", limit.count())}});
  constexpr std::chrono::milliseconds slice(50);
  const timespec none{};
  const auto end = std::chrono::steady_clock::now() + limit;
  std::string because;
  while (because.empty())
    if (lends.drain(slice))
      because = "all sessions have left";
    else if (sigtimedwait(&ends, nullptr, &none) > 0)
      because = "a second signal";
    else if (std::chrono::steady_clock::now() >= end)
      because = fmt::format("the limit of {} s", limit.count());
  log_event("ended", {{"sessions", std::to_string(lends.sessions())}, {"because", because}});
}

void work(const worker_arguments& args) {
  keep_little_memory();
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr); // before the first thread, so that all of them leave the signals to us
  const actors::host_address at = actors::parse_endpoint(args.listen);
  actors::worker_options options{.devices = args.engine(), .host = at.host, .port = at.port};
  options.who = args.credentials;
  options.service.sessions = args.sessions;
  options.service.sessions_per_host = args.sessions_per_host;
  options.service.allowed = args.allowed;
  options.service.weights = args.weights.empty() ? remote::default_weight_folder() : args.weights;
  options.service.models = args.models;
  options.service.log = log_event;
  actors::worker lends(std::move(options));
  std::string names;
  for (const device_info& d : lends.devices())
    names += (names.empty() ? "" : ", ") + d.name;
  log_event("listening", {{"at", fmt::format("{}:{}", at.host, lends.port())},
                          {"devices", names},
                          {"security", args.credentials.insecure ? "none" : "TLS"}});
  if (lends.is_exposed())
    std::cerr << "troupe: warning: --insecure on an address that others reach: everybody may use these devices and "
                 "read what they compute\n";
  int signal = 0;
  sigwait(&ends, &signal);
  leave(lends, ends, std::chrono::seconds(args.drain_s));
}

} // namespace

void add_worker(CLI::App& app) {
  auto args = std::make_shared<worker_arguments>();
  CLI::App* command = app.add_subcommand("worker", "Lend this machine's devices to other hosts (`--hosts`)");
  command
      ->add_option("--listen", args->listen,
                   "HOST:PORT to listen at (default 127.0.0.1:4242); 0.0.0.0 for all addresses, port 0 for any")
      ->type_name("HOST:PORT");
  command->add_option("--devices", args->devices, "Devices to lend (default all)")
      ->type_name("DEVICES")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--memory", args->memory, "Bytes that sessions may use on a device, e.g. vulkan:0=2GiB")
      ->type_name("DEVICE=BYTES")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_threads_option(*command, args->threads);
  command->option_defaults()->group("Credentials");
  add_credential_options(*command, args->credentials);
  command->option_defaults()->group("Options");
  command
      ->add_option("--weights", args->weights,
                   "Folder that keeps weights between sessions (default: in the user's cache folder)")
      ->type_name("FOLDER");
  command->add_option("--models", args->models, "Folder of models that are here: their weights need not be sent")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  command->add_option("--sessions", args->sessions, "How many sessions may connect at once (default 64)");
  command->add_option("--sessions-per-host", args->sessions_per_host,
                      "How many of them may be of one host: of one certificate's name, or with --insecure, of one "
                      "address (default 16)");
  command->add_option("--allow", args->allowed, "Hosts that may open sessions, by that name (default all members)")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--drain", args->drain_s,
                      "Seconds that runs in flight have to end after SIGTERM (default 30); a second signal ends them");
  command->callback([args] { work(*args); });
}

} // namespace troupe::cli
