// What the subcommands of `troupe` share: options, inputs, printing. One file a subcommand; main.cpp lists them.
//
// Exit status: 0, 1 (the work failed; the message on stderr says what, where and what to do), 2 (a wrong call).
#pragma once

#include "actors/engine_access.hpp"
#include "troupe/built_model.hpp"
#include "troupe/option_words.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>

namespace troupe::cli {

/// Returns an option's words as CLI11 takes them.
template <class T, size_t Size>
std::map<std::string, T> words(const option_word<T> (&known)[Size]) {
  std::map<std::string, T> made;
  for (const option_word<T>& word : known)
    made.emplace(word.text, word.value);
  return made;
}

/// Options of every subcommand that runs a model.
struct model_options {
  std::filesystem::path model;
  std::vector<std::string> devices = {"all"};
  std::vector<std::string> hosts; // "NAME=HOST:PORT"
  host_credentials credentials;
  std::string policy; // empty: that of the plug-in, else single
  std::string policy_plugin;
  std::optional<int> split_along;
  troupe::strategy strategy = troupe::strategy::standard;
  std::string strategy_plugin; // then `strategy` is `plug_in`
  stream_options stream;
  choice_options choice;
  std::vector<std::string> pins;   // "conv*=vulkan:0"
  std::vector<std::string> memory; // "vulkan:0=2GiB"
  kernel_time kernels = kernel_time::later;
  unsigned threads = 0; // of the CPU; 0: one a core
  std::string plan_file;
  std::string precision = "fp32";
  std::vector<std::string> dims;          // "batch=8"
  std::vector<std::string> inputs;        // "name=file"
  std::vector<std::string> output_slices; // "logits=1:-1:"
  bool no_fuse = false;
  uint64_t seed = 0;
  std::string record;        // a folder; empty: nothing is recorded
  std::string record_memory; // "64MiB"; empty: recordings go to files
  bool json = false;
  bool quiet = false;
  bool gpu_validation = false;

  /// Whether a single run is by one plan.
  bool has_one_plan() const { return strategy == troupe::strategy::none || strategy == troupe::strategy::standard; }
  /// Whether long work may show its progress.
  bool shows_progress() const { return !json && !quiet; }

  engine_options engine() const;
  /// Returns what `--policy` and `--policy-plugin` say. Throws as loading a model with them would.
  placement_policy chosen_policy() const;
  std::string policy_name() const;
  session_options session() const;
  bindings dim_values() const;
};

/// Returns what e.g. "batch=8" says, of `option`.
bindings read_sizes(const std::vector<std::string>& texts, const char* option);

/// Throws `errc::invalid_argument` if one of the sizes that `option` states is of no symbolic dim of the model's
/// inputs.
void check_dims(const bindings& sizes, const std::vector<value_info>& inputs, const char* option);

/// Adds `--tls-cert`, `--tls-key`, `--tls-ca` and `--insecure`.
void add_credential_options(CLI::App& command, host_credentials& who);

/// Adds `--hosts` and the credentials.
void add_host_options(CLI::App& command, model_options& options);

/// Adds `--policy`, `--policy-plugin`, `--pin`, `--load`, `--precision`, `--no-fuse`, `--json`, `--quiet`.
void add_placement_options(CLI::App& command, model_options& options);

/// Adds `--devices`, `--memory`, `--kernels`, `--record`, `--hosts` and credentials, and those of placement.
void add_threads_option(CLI::App& command, unsigned& threads);
void add_engine_options(CLI::App& command, model_options& options);

/// Adds `--trace`, which sets `file`.
void add_trace_option(CLI::App& command, std::filesystem::path& file);

/// Writes a run's trace of `model` if `file` is not empty and says so on stderr: a page if it is called …html, else
/// JSON. Throws `errc::io`.
void write_trace(const std::filesystem::path& file, const run_trace& trace, const std::filesystem::path& model);
/// Writes a file whole and says so on stderr: "trace written to …". Throws `errc::io`.
void write_and_tell(const std::filesystem::path& file, std::string_view text, std::string_view what);

/// Adds the model argument, `--dim`, `--input`, `--seed`, `--output-slice`.
void add_input_options(CLI::App& command, model_options& options);

/// Adds those, and the engine options.
void add_model_options(CLI::App& command, model_options& options);

/// Loads the model of `options`, showing how long that takes so far if it takes long.
session open_model(engine& devices, const model_options& options, const session_options& how);
inline session open_model(engine& devices, const model_options& options) {
  return open_model(devices, options, options.session());
}

/// What a progress line may watch while a model runs (`progress::watch`): weights on their way to other hosts.
std::function<std::string(double)> loads_of(const engine& devices);

/// Returns whether no device is compiling kernels with which runs would take less time.
bool has_settled(const engine& devices);

/// Returns the model file that `path` names: itself, or model.onnx in it where it is a folder.
std::filesystem::path model_file(const std::filesystem::path& path);

/// Returns the model that `name` names: a made-up graph ("graph:…", schedules/task_model.hpp), or one of a file.
built_model load_or_make(const std::filesystem::path& name);

/// Returns the tensors of `--input` by input name; `.npz` without a name gives all its arrays. Files of sequences and
/// optionals are read as the model's inputs declare them.
named_tensors read_inputs(const std::vector<std::string>& specs, const std::vector<value_info>& declared);

/// Returns `given` completed with made-up tensors: floats uniform in [-1, 1), integers 0 or 1, booleans either.
/// Symbolic dims take their value from `dims`, from the given tensors, else 1. Equal seeds give equal tensors.
named_tensors complete_inputs(const std::vector<value_info>& declared, named_tensors given, bindings dims,
                              uint64_t seed);

/// Runs a model once and then until `seconds` have passed: kernels are compiled, and GPUs raise their clocks under
/// load. Throws `errc::cancelled` if `stop` asks for it.
void warm_up(const session& model, const named_tensors& inputs, double seconds = 1, const std::stop_token& stop = {});

/// Returns the tensors of a test-data-set folder's input_N.pb, named after the model's inputs in order.
named_tensors read_data_set(const std::filesystem::path& folder, const std::vector<value_info>& declared);

/// Returns the tensors of `--input`; if there are none and the model argument is the folder of a test case, its first
/// data set's, unless `--dim` asks for other sizes: then none, and a line on stderr says so.
named_tensors given_inputs(const session& model, const model_options& options);

/// Returns the bytes that e.g. "2GiB", "500MB" or "4096" says; throws `errc::invalid_argument`, naming `option`.
int64_t parse_bytes(std::string_view text, std::string_view option);

/// Writes each output to NAME.npy, strings, sequences and optionals to NAME.pb, in a folder that is there. Throws
/// `errc::io`.
void write_outputs(const std::filesystem::path& folder, const named_tensors& outputs);

/// Prints JSON on stdout, a line after it; bytes of names that are not UTF-8 are replaced.
void write_json(const nlohmann::json& j);
void write_json(const nlohmann::ordered_json& j);

/// Returns e.g. "float32 [1, 3, 224, 224]".
std::string describe(const tensor& t);

/// Prints on stderr what `warnings_of` says of a run with these inputs.
void print_warnings(const session& model, const named_tensors& inputs);

/// Returns the one of `names` that `given` is a slip of: at most two letters wrong, missing or too many; empty if none
/// is.
std::string nearest_name(const std::vector<std::string>& names, std::string_view given);

/// Returns the most host memory this process has had resident, in bytes.
int64_t peak_memory_bytes();

/// Sets how help looks, and what asks for it, of an application without subcommands; those that are added take it over.
void arrange_help(CLI::App& app);

/// The subcommands: each adds itself to the application and runs when it is chosen.
void add_run(CLI::App& app);
void add_test(CLI::App& app);
void add_bench(CLI::App& app);
void add_plan(CLI::App& app);
void add_inspect(CLI::App& app);
void add_diff(CLI::App& app);
void add_verify(CLI::App& app);
void add_prepare(CLI::App& app);
void add_profile(CLI::App& app);
void add_devices(CLI::App& app);
void add_worker(CLI::App& app);
void add_keys(CLI::App& app);
void add_operators(CLI::App& app);
void add_exec(CLI::App& app);
void add_simulate(CLI::App& app);
void add_cluster(CLI::App& app);
void add_compare(CLI::App& app);
void add_trace(CLI::App& app);
void add_replay(CLI::App& app);
void add_completion(CLI::App& app);

} // namespace troupe::cli
