// The options that subcommands share. An option's type name says what its values are: help, man pages and completion
// show it. Options that are added after a group was set are of that group.
#include "cli/command.hpp"

#include "plan/place/policies.hpp"

#include <fmt/format.h>

namespace troupe::cli {

void add_credential_options(CLI::App& command, host_credentials& who) {
  CLI::Option* plain =
      command.add_flag("--insecure", who.insecure, "Plain TCP without credentials, if both sides ask for it");
  command.add_option("--tls-cert", who.certificate, "This host's certificate (`troupe keys`)")
      ->type_name("FILE")
      ->excludes(plain);
  command.add_option("--tls-key", who.key, "Its private key")->type_name("FILE")->excludes(plain);
  command.add_option("--tls-ca", who.ca, "The cluster's CA certificate")->type_name("FILE")->excludes(plain);
}

void add_host_options(CLI::App& command, model_options& options) {
  command.option_defaults()->group("Other hosts");
  command
      .add_option(
          "--hosts", options.hosts,
          "Hosts that run `troupe worker`: [NAME=]HOST:PORT, or @FILE with one a line; their devices are NAME/cpu …")
      ->type_name("HOSTS")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_credential_options(command, options.credentials);
}

void add_threads_option(CLI::App& command, unsigned& threads) {
  constexpr unsigned most = 4096;
  command
      .add_option("--threads", threads,
                  "Threads of the CPU's kernels (default: one for each core that the process may use, or "
                  "OMP_NUM_THREADS if that is less)")
      ->type_name("COUNT")
      ->check(CLI::Range(1u, most));
}

void add_engine_options(CLI::App& command, model_options& options) {
  command.option_defaults()->group("Devices");
  command
      .add_option("--devices", options.devices,
                  "Devices, e.g. cpu, vulkan:0, cpu*2, null; all (default): every GPU, and the CPU")
      ->type_name("DEVICES")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--memory", options.memory, "Bytes that a device may use, e.g. vulkan:0=2GiB")
      ->type_name("DEVICE=BYTES")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option(
          "--kernels", options.kernels,
          "When a GPU's driver compiles kernels for dims that are new. later: beside the runs, which take others "
          "meanwhile; now (the default of profile and verify): before the run, so that equal runs have equal "
          "outputs, bit by bit")
      ->type_name("TIME")
      ->transform(CLI::CheckedTransformer(words(kernel_words)).description(""));
  add_threads_option(command, options.threads);
  CLI::Option* record =
      command
          .add_option("--record", options.record,
                      "Folder in which to keep what happens to the sessions, one file each, for `troupe replay`")
          ->type_name("DIR");
  command
      .add_option("--record-memory", options.record_memory,
                  "Keep that many bytes of each session's last events in memory, and write them when a run fails")
      ->type_name("BYTES")
      ->needs(record);
  add_host_options(command, options);
  add_placement_options(command, options);
}

void add_placement_options(CLI::App& command, model_options& options) {
  command.option_defaults()->group("Plan");
  std::string known = "Placement of nodes (default single).";
  for (const policy_row& row : policies())
    known += fmt::format(" {}: {}.", row.name, row.what);
  command.add_option("--policy", options.policy, known)->type_name("POLICY");
  command
      .add_option("--policy-plugin", options.policy_plugin,
                  "A policy of your own, which is then the policy: a shared library as troupe/policy.hpp says")
      ->type_name("FILE");
  command
      .add_option("--split-along", options.split_along,
                  "With --policy split: the dim of results along which nodes are cut; -1: their longest axes. Default: "
                  "what is predicted to be fastest")
      ->type_name("DIM");
  command.add_option("--pin", options.pins, "Node on a device, whatever the policy: 'NAME=DEVICE', * and ? in NAME")
      ->type_name("NAME=DEVICE")
      ->allow_extra_args(false);
  command
      .add_option("--load-plan,--load", options.plan_file,
                  "Place and cut as a saved plan says (`troupe plan --json`, perhaps edited)")
      ->type_name("FILE");
  command
      .add_option("--precision", options.precision,
                  "fp32 (default), auto: float types as in the file; fp16: compute float32 in float16")
      ->type_name("PRECISION");
  command.add_flag("--no-fuse", options.no_fuse, "Run the model's own operators, nothing fused");
  command.option_defaults()->group("Output");
  command.add_flag("--json", options.json, "Print JSON");
  command.add_flag("--quiet", options.quiet, "Show no progress");
}

void add_model_options(CLI::App& command, model_options& options) {
  add_input_options(command, options);
  add_engine_options(command, options);
}

void add_input_options(CLI::App& command, model_options& options) {
  command.add_option("model", options.model, "An .onnx file, or a folder that holds model.onnx")
      ->type_name("FILE")
      ->required();
  command.option_defaults()->group("Inputs");
  command.add_option("--input", options.inputs, "NAME=FILE.npy, NAME=FILE.pb or FILE.npz; others are made up")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  command.add_option("--dim", options.dims, "Value of a symbolic dim, e.g. batch=8 (default 1)")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
  command.add_option("--seed", options.seed, "Seed of made-up inputs");
  command.option_defaults()->group("Output");
  command
      .add_option("--output-slice", options.output_slices,
                  "OUTPUT=DIM:START:END: only these indices of an output along a dim, e.g. logits=1:-1: for the last; "
                  "what only the others need is not computed")
      ->type_name("OUTPUT=DIM:START:END")
      ->allow_extra_args(false);
}

} // namespace troupe::cli
