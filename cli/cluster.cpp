// troupe cluster: writes a cluster file of what is here, and shows what one says.
#include "cli/command.hpp"

#include "base/write_file.hpp"
#include "cost/profile_file.hpp"
#include "sim/cluster.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iostream>

namespace troupe::cli {
namespace {

struct cluster_arguments : model_options {
  std::string capture, show;
  std::filesystem::path profile;
};

void capture(const cluster_arguments& args) {
  const engine devices(args.engine());
  const std::string text = sim::write_cluster(sim::captured(device_infos(devices)));
  if (args.capture == "-") {
    std::cout << text;
    return;
  }
  write_file(args.capture, text);
}

void show(const cluster_arguments& args) {
  const loaded_profiles known = load_profiles(args.profile.empty() ? profile_path() : args.profile);
  const sim::cluster c = sim::read_cluster(args.show, known.devices);
  if (args.json) {
    std::cout << sim::write_cluster(c);
    return;
  }
  fmt::print("{:<28} {:<7} {:>6} {:>10} {:>14} {:>12}  {}\n", "device", "kind", "units", "memory MiB", "float32 GF/s",
             "memory GB/s", "description");
  for (const device_info& d : c.devices)
    fmt::print("{:<28} {:<7} {:>6} {:>10.0f} {:>14.1f} {:>12.1f}  {}\n", d.name, to_string(d.kind), d.units,
               static_cast<double>(d.memory_bytes) / (1 << 20), d.profile.flops_per_s[1] / 1e9,
               d.profile.memory_bytes_per_s / 1e9, d.description);
  if (std::isfinite(c.network.out_bytes_per_s) || std::isfinite(c.network.in_bytes_per_s))
    fmt::print("this host: {:.2f} GB/s to all others together, {:.2f} GB/s from them\n",
               c.network.out_bytes_per_s / 1e9, c.network.in_bytes_per_s / 1e9);
  for (const sim::shared_link& l : c.links)
    fmt::print("link {}: {:.2f} GB/s{}, {} devices, {} hosts\n", l.name, l.bytes_per_s / 1e9,
               l.half_duplex ? " in both directions together" : " each way", l.devices.size(), l.hosts.size());
}

} // namespace

void add_cluster(CLI::App& app) {
  auto args = std::make_shared<cluster_arguments>();
  CLI::App* command = app.add_subcommand("cluster", "Write a cluster file for `troupe simulate`, or show one");
  CLI::Option* to = command
                        ->add_option("--capture", args->capture,
                                     "File for the devices here and on --hosts as they are; -: standard output")
                        ->type_name("FILE");
  CLI::Option* from =
      command->add_option("--show", args->show, "Cluster file to check and print")->type_name("FILE")->excludes(to);
  command->add_option("--devices", args->devices, "Devices to capture (default: all)")
      ->type_name("DEVICES")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_host_options(*command, *args);
  command->option_defaults()->group("Options");
  command->add_option("--profile", args->profile, "Measured profiles (default: those of this user)")->type_name("FILE");
  command->add_flag("--json", args->json, "Print the whole cluster as JSON");
  command->callback([args, to, from] {
    if (to->count() + from->count() == 0)
      throw CLI::RequiredError("--capture or --show");
    to->count() > 0 ? capture(*args) : show(*args);
  });
}

} // namespace troupe::cli
