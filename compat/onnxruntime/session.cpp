#include "compat/onnxruntime/session.hpp"

#include "compat/onnxruntime/elements.hpp"
#include "compat/onnxruntime/env.hpp"
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/memory.hpp"
#include "compat/onnxruntime/model_bytes.hpp"
#include "compat/onnxruntime/saved_model.hpp"
#include "compat/onnxruntime/session_options.hpp"
#include "compat/onnxruntime/status.hpp"
#include "compat/onnxruntime/type_info.hpp"
#include "troupe/inspect.hpp"

#include <algorithm>
#include <filesystem>

/// Weights in a packed form that sessions share; kept, and of no effect: sessions of one engine share weights anyway.
struct OrtPrepackedWeightsContainer {};

namespace troupe::ort {
namespace {

constexpr char external_folder[] = "session.model_external_initializers_file_folder_path";

std::shared_ptr<const log_sink> sink_of(const OrtEnv& env, const OrtSessionOptions& options) {
  auto sink = std::make_shared<log_sink>(*env.sink);
  if (options.log_function) {
    sink->function = options.log_function;
    sink->parameter = options.log_parameter;
  }
  if (!options.log_id.empty())
    sink->id = options.log_id;
  if (options.log_level)
    sink->level = *options.log_level;
  return sink;
}

/// Returns the process's engine for a session, which the environment keeps open as long as it lives.
std::shared_ptr<engine> engine_for(OrtEnv& env, const OrtSessionOptions& options) {
  const thread_counts &own = options.threads, &shared = env.threads;
  const thread_counts threads{own.inter_op > 0 ? own.inter_op : shared.inter_op,
                              own.intra_op > 0 ? own.intra_op : shared.intra_op};
  std::shared_ptr<engine> open = shared_engine(engine_options_of(options.entries, threads));
  const std::lock_guard lock(env.mutex);
  if (std::ranges::find(env.engines, open) == env.engines.end())
    env.engines.push_back(open);
  return open;
}

/// As with ONNX Runtime, dims that the model's inputs have not do not count: clients state those of several models.
session_options options_for(const OrtSessionOptions& options, const model_metadata& model, const log_sink& sink) {
  session_options how = session_options_of(options.entries);
  how.fuse = options.level > ORT_ENABLE_BASIC;
  for (const auto& [name, value] : options.dims)
    if (std::ranges::find(model.input_dims, name) != model.input_dims.end())
      how.dims.emplace(name, value);
    else
      sink.write(ORT_LOGGING_LEVEL_WARNING, "the model's inputs have no dim '" + name + "'");
  return how;
}

session load_model(engine& on, const model_source& from, const OrtSessionOptions& options, const session_options& how) {
  const bool changed = !options.initializers.empty() || !options.files.empty();
  if (!from.file.empty() && !changed && from.folder == from.file.parent_path())
    return on.load(from.file.string(), how);
  const model_content content(from);
  if (!changed)
    return on.load(parse_model(content.bytes(), from.folder), how);
  const std::string other =
      with_initializers(content.bytes(), options.initializers, options.spare_initializers, options.files);
  return on.load(parse_model(std::as_bytes(std::span(other)), from.folder), how);
}

/// Returns the name of the map whose keys and values two inputs of troupe's are; empty if they are none. The loader
/// gives both the dim NAME.0, which no file gives to inputs of such names.
std::string map_name(const value_info& keys, const value_info& values) {
  const std::string name = keys.name.substr(0, keys.name.rfind('.'));
  const symbolic_shape dims{dim::symbol(name + ".0")};
  const bool is_map = keys.name == name + ".keys" && values.name == name + ".values" && keys.dims == dims;
  return is_map && values.dims == dims ? name : "";
}

/// Makes the two inputs that troupe has for a map one.
void join_maps(OrtSession& s) {
  for (size_t i = 0; i + 1 < s.inputs.size(); ++i) {
    const std::string name = map_name(s.inputs[i], s.inputs[i + 1]);
    if (name.empty())
      continue;
    s.maps[name] = {.key = s.inputs[i].type, .value = s.inputs[i + 1].type};
    s.inputs[i] = {.name = name};
    s.inputs.erase(s.inputs.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

void state_dims(std::vector<value_info>& infos, const bindings& stated) {
  for (value_info& info : infos)
    if (info.dims)
      for (dim& d : *info.dims)
        if (const auto value = stated.find(d.symbol_name()); value != stated.end())
          d = value->second;
}

/// Tells the session's inputs from those for which the file has a value; `stated` are dims that the client states.
void describe(OrtSession& s, const bindings& stated) {
  s.overridable = optional_inputs(s.model);
  s.model_inputs = s.model.inputs();
  for (const value_info& input : s.model_inputs)
    if (std::ranges::find(s.overridable, input.name, &value_info::name) == s.overridable.end())
      s.inputs.push_back(input);
  join_maps(s);
  s.outputs = s.model.outputs();
  for (auto* list : {&s.inputs, &s.overridable, &s.outputs})
    state_dims(*list, stated);
  for (const auto* list : {&s.inputs, &s.overridable})
    for (const value_info& input : *list)
      s.input_types[input.name] = input.type;
}

void open_session(const OrtEnv* env, model_source from, const OrtSessionOptions* given_options, OrtSession** out) {
  OrtSession*& place = given(out, "the place for the session");
  OrtEnv& in = const_cast<OrtEnv&>(given(env, "the environment")); // it takes notes of what it opened
  static const OrtSessionOptions defaults;
  const OrtSessionOptions& options = given_options ? *given_options : defaults;
  if (options.cancel_load)
    throw api_error(ORT_MODEL_LOAD_CANCELED, "the options say that loading is cancelled");
  if (const auto folder = options.entries.find(external_folder); folder != options.entries.end())
    from.folder = folder->second;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto sink = sink_of(in, options);
  std::shared_ptr<engine> on = engine_for(in, options);
  model_metadata about = from.file.empty() ? parse_metadata(from.bytes) : read_metadata(from.file);
  session model = load_model(*on, from, options, options_for(options, about, *sink));
  zips_by_name zips = from.file.empty() ? zips_in(from.bytes) : zips_in(from.file);
  if (!options.saved_model.empty())
    save_model(from, options, *sink);
  place = make_handle<OrtSession>(std::move(on), std::move(model), sink, std::move(about));
  describe(*place, options.dims);
  place->zips = std::move(zips);
  if (options.profile_prefix)
    place->profile = std::make_unique<profile>(*options.profile_prefix);
  place->made_ns = static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

void open_file(const OrtEnv* env, const char* path, const OrtSessionOptions* options, OrtSession** out) {
  const std::filesystem::path file = &given(path, "the path");
  given(out, "the place for the session");
  given(env, "the environment");
  if (std::error_code why; !std::filesystem::exists(file, why))
    throw api_error(ORT_NO_SUCHFILE, "there is no file '" + file.string() + "'");
  open_session(env, {.file = file, .bytes = {}, .folder = file.parent_path()}, options, out);
}

void open_bytes(const OrtEnv* env, const void* data, size_t size, const OrtSessionOptions* options, OrtSession** out) {
  const auto* bytes = &given(static_cast<const std::byte*>(data), "the model");
  open_session(env, {.file = {}, .bytes = {bytes, size}, .folder = {}}, options, out);
}

using infos = std::vector<value_info> OrtSession::*;

const value_info& info_at(const OrtSession* session, infos list, size_t index) {
  const auto& all = living(session, "the session").*list;
  if (index >= all.size())
    reject("there is no value " + std::to_string(index) + " of this kind: the model has " + std::to_string(all.size()));
  return all[index];
}

OrtStatus* count_of(const OrtSession* session, infos list, size_t* out) noexcept {
  return guarded([&] { given(out, "the place for the count") = (living(session, "the session").*list).size(); });
}

OrtStatus* name_at(const OrtSession* session, infos list, size_t index, OrtAllocator* allocator, char** out) noexcept {
  return guarded(
      [&] { given(out, "the place for the name") = copy_text(allocator, info_at(session, list, index).name); });
}

OrtTypeInfo type_at(const OrtSession& session, const value_info& info) {
  if (const auto zip = session.zips.find(info.name); zip != session.zips.end())
    return type_of(zip->second);
  if (const auto map = session.maps.find(info.name); map != session.maps.end())
    return map_type(element_type_of(map->second.key), type_of({.name = {}, .type = map->second.value}));
  return type_of(info);
}

OrtStatus* type_at(const OrtSession* session, infos list, size_t index, OrtTypeInfo** out) noexcept {
  return guarded([&] {
    const value_info& info = info_at(session, list, index);
    given(out, "the place for the type") = make_handle<OrtTypeInfo>(type_at(*session, info));
  });
}

OrtStatus* memory_of(const OrtSession* session, infos list, const OrtMemoryInfo** out, size_t size) noexcept {
  return guarded([&] {
    if (size != (living(session, "the session").*list).size())
      reject("room for " + std::to_string(size) + " memory infos of " + std::to_string((session->*list).size()));
    for (size_t i = 0; i < size; ++i)
      (&given(out, "the place for the memory infos"))[i] = &host_memory();
  });
}

} // namespace

OrtStatus* CreateSession(const OrtEnv* env, const char* path, const OrtSessionOptions* options,
                         OrtSession** out) noexcept {
  return guarded([&] { open_file(env, path, options, out); });
}

OrtStatus* CreateSessionFromArray(const OrtEnv* env, const void* data, size_t size, const OrtSessionOptions* options,
                                  OrtSession** out) noexcept {
  return guarded([&] { open_bytes(env, data, size, options, out); });
}

OrtStatus* CreatePrepackedWeightsContainer(OrtPrepackedWeightsContainer** out) noexcept {
  return guarded([&] { given(out, "the place for the weights") = make_handle<OrtPrepackedWeightsContainer>(); });
}

void ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer* weights) noexcept {
  release_handle(weights, "ReleasePrepackedWeightsContainer");
}

OrtStatus* CreateSessionWithPrepackedWeightsContainer(const OrtEnv* env, const char* path,
                                                      const OrtSessionOptions* options,
                                                      OrtPrepackedWeightsContainer* /*weights*/,
                                                      OrtSession** out) noexcept {
  return CreateSession(env, path, options, out);
}

OrtStatus* CreateSessionFromArrayWithPrepackedWeightsContainer(const OrtEnv* env, const void* data, size_t size,
                                                               const OrtSessionOptions* options,
                                                               OrtPrepackedWeightsContainer* /*weights*/,
                                                               OrtSession** out) noexcept {
  return CreateSessionFromArray(env, data, size, options, out);
}

void ReleaseSession(OrtSession* session) noexcept {
  release_handle(session, "ReleaseSession");
}

OrtStatus* SessionGetInputCount(const OrtSession* session, size_t* out) noexcept {
  return count_of(session, &OrtSession::inputs, out);
}

OrtStatus* SessionGetOutputCount(const OrtSession* session, size_t* out) noexcept {
  return count_of(session, &OrtSession::outputs, out);
}

OrtStatus* SessionGetOverridableInitializerCount(const OrtSession* session, size_t* out) noexcept {
  return count_of(session, &OrtSession::overridable, out);
}

OrtStatus* SessionGetInputName(const OrtSession* session, size_t index, OrtAllocator* allocator, char** out) noexcept {
  return name_at(session, &OrtSession::inputs, index, allocator, out);
}

OrtStatus* SessionGetOutputName(const OrtSession* session, size_t index, OrtAllocator* allocator, char** out) noexcept {
  return name_at(session, &OrtSession::outputs, index, allocator, out);
}

OrtStatus* SessionGetOverridableInitializerName(const OrtSession* session, size_t index, OrtAllocator* allocator,
                                                char** out) noexcept {
  return name_at(session, &OrtSession::overridable, index, allocator, out);
}

OrtStatus* SessionGetInputTypeInfo(const OrtSession* session, size_t index, OrtTypeInfo** out) noexcept {
  return type_at(session, &OrtSession::inputs, index, out);
}

OrtStatus* SessionGetOutputTypeInfo(const OrtSession* session, size_t index, OrtTypeInfo** out) noexcept {
  return type_at(session, &OrtSession::outputs, index, out);
}

OrtStatus* SessionGetOverridableInitializerTypeInfo(const OrtSession* session, size_t index,
                                                    OrtTypeInfo** out) noexcept {
  return type_at(session, &OrtSession::overridable, index, out);
}

OrtStatus* SessionGetMemoryInfoForInputs(const OrtSession* session, const OrtMemoryInfo** out, size_t size) noexcept {
  return memory_of(session, &OrtSession::inputs, out, size);
}

OrtStatus* SessionGetMemoryInfoForOutputs(const OrtSession* session, const OrtMemoryInfo** out, size_t size) noexcept {
  return memory_of(session, &OrtSession::outputs, out, size);
}

OrtStatus* SessionEndProfiling(OrtSession* session, OrtAllocator* allocator, char** out) noexcept {
  return guarded([&] {
    const auto& profile = living(session, "the session").profile;
    given(out, "the place for the file's name") = copy_text(allocator, profile ? profile->write() : "");
  });
}

OrtStatus* SessionGetProfilingStartTimeNs(const OrtSession* session, uint64_t* out) noexcept {
  return guarded([&] { given(out, "the place for the time") = living(session, "the session").made_ns; });
}

} // namespace troupe::ort
