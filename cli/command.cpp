#include "cli/command.hpp"

#include "cli/progress.hpp"
#include "cli/progress_text.hpp"

#include "base/printable.hpp"
#include "base/write_file.hpp"
#include "graph/made_up_dims.hpp"
#include "loader/onnx_loader.hpp"
#include "plan/place/policies.hpp"
#include "plan/place/policy_library.hpp"
#include "schedules/task_model.hpp"
#include "troupe/inspect.hpp"
#include "troupe/tensor_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <iostream>
#include <random>
#include <sys/resource.h>

namespace troupe::cli {
namespace {

/// Splits "name=value" at the first '=', or at `where`; throws if there is none.
std::pair<std::string, std::string> split_assignment(const std::string& text, const char* option,
                                                     std::optional<size_t> where = std::nullopt) {
  const auto at = where.value_or(text.find('='));
  if (at == std::string::npos || at == 0)
    fail(errc::invalid_argument, "{} '{}': expected NAME=VALUE", option, text);
  return {text.substr(0, at), text.substr(at + 1)};
}

/// Returns the type of the input called `name`, undefined if there is none.
dtype type_of(const std::string& name, const std::vector<value_info>& declared) {
  const auto found = std::ranges::find(declared, name, &value_info::name);
  return found == declared.end() ? dtype::undefined : found->type;
}

tensor read_tensor(const std::filesystem::path& file, dtype expected) {
  const std::string extension = file.extension().string();
  if (extension == ".npy")
    return read_npy(file);
  if (extension == ".pb")
    return read_pb(file, expected).value;
  fail(errc::invalid_argument, "input file '{}': expected .npy, .npz or .pb", file.string());
}

template <class T>
void fill(tensor& t, std::mt19937_64& random) {
  T* out = t.mutable_data<T>();
  for (int64_t i = 0; i < t.size(); ++i)
    if constexpr (std::is_integral_v<T>)
      out[i] = static_cast<T>(random() & 1);
    else
      out[i] = static_cast<T>(static_cast<float>(static_cast<int64_t>(random() >> 11)) * 0x1p-52f - 1.0f);
}

tensor make_up(dtype type, shape dims, std::mt19937_64& random) {
  tensor t(type, std::move(dims));
  if (type == dtype::boolean)
    fill<uint8_t>(t, random);
  else
    visit_numeric(type, [&]<class T>(type_tag<T>) { fill<T>(t, random); });
  return t;
}

/// Takes over the symbols' values that a given tensor implies.
void bind_from(const value_info& declared, const tensor& given, bindings& dims) {
  if (!declared.dims || declared.dims->size() != given.dims().size())
    return; // the session reports a wrong rank better
  for (size_t i = 0; i < given.dims().size(); ++i)
    if (const std::string symbol = (*declared.dims)[i].symbol_name(); !symbol.empty())
      dims.try_emplace(symbol, given.dims()[i]);
}

shape made_up_dims(const value_info& declared, bindings& dims) {
  if (!declared.dims)
    fail(errc::invalid_input, "input '{}' has no shape in the model: give it with --input", declared.name);
  return dims_or_ones(*declared.dims, dims);
}

/// Returns what e.g. "logits=1:-1:" says: dim 1, from the last index on.
output_slice read_slice(const std::string& text) {
  constexpr const char* option = "--output-slice";
  const auto [output, part] = split_assignment(text, option, text.rfind('=')); // names may hold one
  output_slice slice{.output = output};
  int64_t* const numbers[] = {&slice.axis, &slice.start, &slice.end};
  const char *at = part.data(), *const last = at + part.size();
  for (size_t i = 0; i < std::size(numbers); ++i) {
    if (i > 0 && (at == last || *at++ != ':'))
      fail(errc::invalid_argument, "{} '{}': OUTPUT=DIM:START:END is expected, e.g. logits=1:-1:", option, text);
    const auto [end, status] = std::from_chars(at, last, *numbers[i]);
    if (status == std::errc::result_out_of_range || (i == 0 && end == at))
      fail(errc::invalid_argument, "{} '{}': '{}' is not a number", option, text, part);
    at = end;
  }
  if (at != last)
    fail(errc::invalid_argument, "{} '{}': '{}' is not expected after DIM:START:END", option, text, at);
  return slice;
}

/// Output names may hold '/' and the like.
std::string file_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\\' || c == '\0'; }, '_');
  return name.empty() || name[0] == '.' ? "_" + name : name;
}

} // namespace

void write_and_tell(const std::filesystem::path& file, std::string_view text, std::string_view what) {
  write_file(file, text);
  fmt::print(stderr, "{} written to {}\n", what, printable(file.string()));
}

void write_outputs(const std::filesystem::path& folder, const named_tensors& outputs) {
  for (const auto& [name, value] : outputs)
    if (holds_objects(value.type())) // NumPy has no sequences, and no strings but Python's
      write_pb(folder / (file_name(name) + ".pb"), name, value);
    else
      write_npy(folder / (file_name(name) + ".npy"), value);
}

bindings read_sizes(const std::vector<std::string>& texts, const char* option) {
  bindings values;
  for (const auto& text : texts) {
    const auto [name, number] = split_assignment(text, option, text.rfind('=')); // names may hold one
    int64_t value = -1;
    const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (status != std::errc{} || end != number.data() + number.size() || value < 0)
      fail(errc::invalid_argument, "{} '{}': '{}' is not a size", option, text, number);
    values[name] = value;
  }
  return values;
}

void check_dims(const bindings& sizes, const std::vector<value_info>& inputs, const char* option) {
  std::vector<std::string> known;
  for (const value_info& input : inputs)
    if (input.dims)
      for (const dim& d : *input.dims)
        d.collect_symbols(known);
  for (const auto& [name, size] : sizes)
    if (std::ranges::find(known, name) == known.end())
      fail(errc::invalid_argument, "{} '{}={}': the model's inputs have no dim '{}'; {}", option, name, size, name,
           known.empty() ? "all their dims are fixed" : fmt::format("they have: {}", fmt::join(known, ", ")));
}

bindings model_options::dim_values() const {
  return read_sizes(dims, "--dim");
}

engine_options model_options::engine() const {
  engine_options options;
  options.devices = devices;
  options.hosts = hosts;
  options.credentials = credentials;
  options.kernels = kernels;
  options.cpu_threads = threads;
  options.recorder.folder = record;
  if (!record_memory.empty())
    options.recorder.memory = static_cast<size_t>(parse_bytes(record_memory, "--record-memory"));
  for (const auto& text : memory) {
    const auto [name, bytes] = split_assignment(text, "--memory");
    options.memory[name] = parse_bytes(bytes, "--memory");
  }
  return options;
}

placement_policy model_options::chosen_policy() const {
  if (policy_plugin.empty())
    return policy.empty() ? placement_policy::single : parse_policy(policy);
  const auto plugin = policy_library::open(policy_plugin);
  if (!policy.empty() && policy != plugin->name())
    fail(errc::invalid_argument, "--policy {} is not what --policy-plugin gives, {}; leave one of them out", policy,
         plugin->description());
  return placement_policy::plug_in;
}

std::string model_options::policy_name() const {
  const placement_policy chosen = chosen_policy();
  return chosen == placement_policy::plug_in ? policy_library::open(policy_plugin)->name()
                                             : std::string(to_string(chosen));
}

session_options model_options::session() const {
  session_options options;
  options.policy = chosen_policy();
  options.policy_plugin = policy_plugin;
  if (split_along && options.policy != placement_policy::split)
    throw CLI::RequiresError("--split-along", "--policy split");
  options.split_along = split_along;
  options.strategy = strategy;
  options.strategy_plugin = strategy_plugin;
  if (has_one_plan() && stream.micro_batch > 0)
    throw CLI::RequiresError("--micro-batch", "--strategy or --strategy-plugin");
  options.stream = stream;
  options.choice = choice;
  for (const auto& text : pins) {
    auto [pattern, device] = split_assignment(text, "--pin", text.rfind('=')); // node names may hold one
    options.pins.push_back({std::move(pattern), std::move(device)});
  }
  options.plan_file = plan_file;
  options.fuse = !no_fuse;
  options.precision = value_of(precision_words, "precision", precision);
  for (const std::string& text : output_slices)
    options.output_slices.push_back(read_slice(text));
  // Replicas of a strategy get parts of these, and requests that are joined have more rows: then the inputs say them.
  if (has_one_plan() && stream.max_batch == 0)
    options.dims = dim_values();
  return options;
}

session open_model(engine& devices, const model_options& options, const session_options& how) {
  const std::filesystem::path file = model_file(options.model);
  const progress line("loading " + printable(file.string()), options.shows_progress());
  return devices.load(file.string(), how);
}

std::function<std::string(double)> loads_of(const engine& devices) {
  return [&devices](double seconds) { return load_text(devices.hosts(), seconds); };
}

std::filesystem::path model_file(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) ? path / "model.onnx" : path;
}

built_model load_or_make(const std::filesystem::path& name) {
  return names_task_graph(name.string()) ? to_model(read_task_graph(name.string())) : load_model(model_file(name));
}

named_tensors read_inputs(const std::vector<std::string>& specs, const std::vector<value_info>& declared) {
  named_tensors inputs;
  for (const auto& spec : specs) {
    if (spec.find('=') == std::string::npos && spec.ends_with(".npz")) {
      for (auto& [name, value] : read_npz(spec))
        inputs[name] = std::move(value);
      continue;
    }
    const auto [name, file] = split_assignment(spec, "--input");
    if (file.ends_with(".npz")) {
      auto arrays = read_npz(file);
      if (!arrays.contains(name))
        fail(errc::invalid_input, "--input '{}': the archive holds no array '{}'", spec, name);
      inputs[name] = arrays.at(name);
    } else {
      inputs[name] = read_tensor(file, type_of(name, declared));
    }
  }
  return inputs;
}

named_tensors complete_inputs(const std::vector<value_info>& declared, named_tensors given, bindings dims,
                              uint64_t seed) {
  for (const auto& info : declared)
    if (given.contains(info.name))
      bind_from(info, given.at(info.name), dims);
  std::mt19937_64 random(seed);
  for (const auto& info : declared)
    if (is_container(info.type) && !given.contains(info.name))
      fail(errc::invalid_input, "input '{}' is {}, which is not made up: give a .pb file with --input", info.name,
           to_string(info.type));
    else if (!given.contains(info.name))
      given.emplace(info.name, make_up(info.type, made_up_dims(info, dims), random));
  return given;
}

void warm_up(const session& model, const named_tensors& inputs, double seconds, const std::stop_token& stop) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  do
    model.run(inputs, {.cancel = stop, .trace = true});
  while (std::chrono::steady_clock::now() < end);
}

named_tensors read_data_set(const std::filesystem::path& folder, const std::vector<value_info>& declared) {
  named_tensors inputs;
  for (size_t i = 0; i < declared.size(); ++i) {
    const auto file = folder / fmt::format("input_{}.pb", i);
    if (!std::filesystem::exists(file))
      fail(errc::io, "'{}' is missing: the model has {} inputs", file.string(), declared.size());
    inputs.emplace(declared[i].name, read_pb(file, declared[i].type).value);
  }
  return inputs;
}

named_tensors given_inputs(const session& model, const model_options& options) {
  const auto set = options.model / "test_data_set_0";
  if (!options.inputs.empty() || !std::filesystem::is_directory(set))
    return read_inputs(options.inputs, model.inputs());
  named_tensors inputs = read_data_set(set, model.inputs());
  bindings of_set;
  for (const value_info& info : model.inputs())
    bind_from(info, inputs.at(info.name), of_set);
  for (const auto& [name, size] : options.dim_values())
    if (const auto found = of_set.find(name); found != of_set.end() && found->second != size) {
      fmt::print(stderr, "{} is not used: its '{}' is {}, and --dim says {}; inputs are made up\n",
                 printable(set.string()), printable(name), found->second, size);
      return {};
    }
  return inputs;
}

void write_json(const nlohmann::json& j) {
  std::cout << j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

void write_json(const nlohmann::ordered_json& j) {
  std::cout << j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

std::string describe(const tensor& t) {
  return fmt::format("{} {}", to_string(t.type()), to_string(t.dims()));
}

int64_t parse_bytes(std::string_view text, std::string_view option) {
  static constexpr auto units = std::to_array<std::pair<std::string_view, double>>({
      {"", 1},
      {"B", 1},
      {"KB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
      {"KiB", 0x1p10},
      {"MiB", 0x1p20},
      {"GiB", 0x1p30},
      {"TiB", 0x1p40},
      {"K", 0x1p10},
      {"M", 0x1p20},
      {"G", 0x1p30},
      {"T", 0x1p40},
  });
  double number = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const auto row = std::find_if(units.begin(), units.end(), [&](const auto& u) { return u.first == unit; });
  if (status != std::errc{} || row == units.end() || !(number >= 0 && number * row->second < 0x1p62))
    fail(errc::invalid_argument, "{} '{}': expected bytes, e.g. 4096, 500MB or 2GiB", option, text);
  return static_cast<int64_t>(number * row->second);
}

void print_warnings(const session& model, const named_tensors& inputs) {
  for (const std::string& line : warnings_of(model, inputs))
    fmt::print(stderr, "troupe: warning: {}\n", printable(line));
}

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

bool has_settled(const engine& devices) {
  return std::ranges::all_of(devices.stats(), [](const device_stats& d) { return d.pending_kernels == 0; });
}

} // namespace troupe::cli
