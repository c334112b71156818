// How a session is made, as the client says.
#pragma once

#include "compat/onnxruntime/log.hpp"
#include "compat/onnxruntime/settings.hpp"

#include <filesystem>
#include <optional>
#include <set>
#include <span>

/// Plain data; copies share the tensors.
struct OrtSessionOptions {
  troupe::ort::config_entries entries;
  troupe::bindings dims; // symbolic dims, by name
  GraphOptimizationLevel level = ORT_ENABLE_ALL;
  ExecutionMode mode = ORT_SEQUENTIAL;
  bool memory_pattern = true;
  troupe::ort::thread_counts threads; // 0: what the environment says
  std::optional<std::string> profile_prefix;
  std::filesystem::path saved_model; // where the model is to be written when it is loaded; empty for nowhere
  std::string log_id;
  std::optional<OrtLoggingLevel> log_level;
  OrtLoggingFunction log_function = nullptr; // null: the environment's
  void* log_parameter = nullptr;
  bool cancel_load = false;

  // Values in place of those of the file, by the initializer's name, over the client's memory, and those of them that a
  // model need not have; and bytes of files of external data by their names.
  troupe::named_tensors initializers;
  std::set<std::string> spare_initializers;
  std::map<std::string, std::span<const std::byte>> files;
};
