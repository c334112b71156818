#include "compat/onnxruntime/session.hpp"

#include "compat/onnxruntime/env.hpp"
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/memory.hpp"
#include "compat/onnxruntime/model_bytes.hpp"
#include "compat/onnxruntime/session_options.hpp"
#include "compat/onnxruntime/status.hpp"
#include "compat/onnxruntime/type_info.hpp"
#include "troupe/inspect.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

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

session_options options_for(const OrtSessionOptions& options) {
  session_options how = session_options_of(options.entries);
  how.fuse = options.level > ORT_ENABLE_BASIC;
  how.dims = options.dims;
  return how;
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    throw error(errc::io, "'" + path.string() + "' cannot be opened");
  std::vector<std::byte> bytes(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
    throw error(errc::io, "'" + path.string() + "' cannot be read");
  return bytes;
}

/// Where a model comes from: a file, or bytes and the folder of its external data.
struct model_source {
  std::filesystem::path file;
  std::span<const std::byte> bytes;
  std::filesystem::path folder;
};

session load_model(engine& on, const model_source& from, const OrtSessionOptions& options) {
  const session_options how = options_for(options);
  const bool changed = !options.initializers.empty() || !options.files.empty();
  if (!from.file.empty() && !changed && from.folder == from.file.parent_path())
    return on.load(from.file.string(), how);
  std::vector<std::byte> read;
  std::span<const std::byte> bytes = from.bytes;
  if (!from.file.empty())
    bytes = read = read_file(from.file);
  if (!changed)
    return on.load(parse_model(bytes, from.folder), how);
  const std::string other = with_initializers(bytes, options.initializers, options.files);
  return on.load(parse_model(std::as_bytes(std::span(other)), from.folder), how);
}

/// Tells the session's inputs from those for which the file has a value.
void describe(OrtSession& s) {
  s.overridable = optional_inputs(s.model);
  for (const value_info& input : s.model.inputs())
    if (std::ranges::find(s.overridable, input.name, &value_info::name) == s.overridable.end())
      s.inputs.push_back(input);
  s.outputs = s.model.outputs();
  for (const auto* list : {&s.inputs, &s.overridable})
    for (const value_info& input : *list) {
      s.input_types[input.name] = input.type;
      if (!holds_objects(input.type) && input.dims && input.dims->empty())
        s.scalars.insert(input.name);
    }
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
  std::shared_ptr<engine> on = engine_for(in, options);
  session model = load_model(*on, from, options);
  model_metadata about = from.file.empty() ? parse_metadata(from.bytes) : read_metadata(from.file);
  place = make_handle<OrtSession>(std::move(on), std::move(model), sink_of(in, options), std::move(about));
  describe(*place);
  place->zips = from.file.empty() ? zips_in(from.bytes) : zips_in(from.file);
  if (options.profile_prefix)
    place->profile = std::make_unique<profile>(*options.profile_prefix);
  place->made_ns = static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

void open_file(const OrtEnv* env, const char* path, const OrtSessionOptions* options, OrtSession** out) {
  const std::filesystem::path file = &given(path, "the path");
  if (file.empty())
    throw api_error(ORT_NO_SUCHFILE, "the path is empty");
  open_session(env, {.file = file, .bytes = {}, .folder = file.parent_path()}, options, out);
}

void open_bytes(const OrtEnv* env, const void* data, size_t size, const OrtSessionOptions* options, OrtSession** out) {
  const auto* bytes = &given(static_cast<const std::byte*>(data), "the model");
  open_session(env, {.file = {}, .bytes = {bytes, size}, .folder = {}}, options, out);
}

using infos = std::vector<value_info> OrtSession::*;

const value_info& info_at(const OrtSession* session, infos list, size_t index) {
  const auto& all = given(session, "the session").*list;
  if (index >= all.size())
    reject("there is no value " + std::to_string(index) + " of this kind: the model has " + std::to_string(all.size()));
  return all[index];
}

OrtStatus* count_of(const OrtSession* session, infos list, size_t* out) noexcept {
  return guarded([&] { given(out, "the place for the count") = (given(session, "the session").*list).size(); });
}

OrtStatus* name_at(const OrtSession* session, infos list, size_t index, OrtAllocator* allocator, char** out) noexcept {
  return guarded(
      [&] { given(out, "the place for the name") = copy_text(allocator, info_at(session, list, index).name); });
}

OrtStatus* type_at(const OrtSession* session, infos list, size_t index, OrtTypeInfo** out) noexcept {
  return guarded([&] {
    const value_info& info = info_at(session, list, index);
    const auto zip = session->zips.find(info.name);
    given(out, "the place for the type") =
        make_handle<OrtTypeInfo>(zip == session->zips.end() ? type_of(info) : type_of(zip->second));
  });
}

OrtStatus* memory_of(const OrtSession* session, infos list, const OrtMemoryInfo** out, size_t size) noexcept {
  return guarded([&] {
    if (size != (given(session, "the session").*list).size())
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
    const auto& profile = given(session, "the session").profile;
    given(out, "the place for the file's name") = copy_text(allocator, profile ? profile->write() : "");
  });
}

OrtStatus* SessionGetProfilingStartTimeNs(const OrtSession* session, uint64_t* out) noexcept {
  return guarded([&] { given(out, "the place for the time") = given(session, "the session").made_ns; });
}

} // namespace troupe::ort
