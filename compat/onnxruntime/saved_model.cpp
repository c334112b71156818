#include "compat/onnxruntime/saved_model.hpp"

#include "compat/onnxruntime/model_bytes.hpp"
#include "compat/onnxruntime/status.hpp"

#include <fstream>

namespace troupe::ort {
namespace {

constexpr size_t most_bytes = size_t{1} << 31; // that Protocol Buffers read

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

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return std::filesystem::weakly_canonical(std::filesystem::absolute(file).parent_path());
}

/// Returns the bytes of external data that the model would not find beside the new file, by name.
std::map<std::string, std::vector<std::byte>>
files_left_behind(const model_source& from, std::span<const std::byte> model, const OrtSessionOptions& options) {
  std::map<std::string, std::vector<std::byte>> files;
  if (folder_of(from.folder / "x") != folder_of(options.saved_model))
    for (const std::string& name : external_files(model, options.initializers))
      if (!options.files.contains(name))
        files[name] = read_file(from.folder / name);
  return files;
}

} // namespace

model_content::model_content(const model_source& from) : bytes_(from.bytes) {
  if (!from.file.empty())
    bytes_ = read_ = read_file(from.file);
}

void save_model(const model_source& from, const OrtSessionOptions& options, const log_sink& sink) {
  const std::filesystem::path& to = options.saved_model;
  if (to.extension() == ".ort")
    throw api_error(ORT_NOT_IMPLEMENTED, "'" + to.string() + "': models are saved as ONNX, not in the format .ort");
  const model_content model(from);
  const auto left = files_left_behind(from, model.bytes(), options);
  std::map<std::string, std::span<const std::byte>> files(left.begin(), left.end());
  files.insert(options.files.begin(), options.files.end());
  const std::string whole = with_initializers(model.bytes(), options.initializers, options.spare_initializers, files);
  if (whole.size() >= most_bytes)
    throw api_error(ORT_FAIL, "'" + to.string() + "' would have " + std::to_string(whole.size()) +
                                  " bytes, more than a file of Protocol Buffers may have");
  std::ofstream file(to, std::ios::binary);
  if (!file.write(whole.data(), static_cast<std::streamsize>(whole.size())).flush())
    throw error(errc::io, "'" + to.string() + "' cannot be written");
  sink.write(ORT_LOGGING_LEVEL_WARNING, "'" + to.string() +
                                            "' has the model as it was given: troupe rewrites it for "
                                            "its devices when it loads it");
}

} // namespace troupe::ort
