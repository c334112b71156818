// Environments: where messages go, and how many threads send work to devices.
#pragma once

#include "compat/onnxruntime/ep_devices.hpp"
#include "compat/onnxruntime/log.hpp"

#include <memory>
#include <mutex>

/// Sizes of thread pools that several sessions share.
struct OrtThreadingOptions {
  int inter_op_threads = 0; // 0: as troupe likes
};

/// An environment. Sessions share what they need of it, so it may be released before them.
struct OrtEnv {
  std::shared_ptr<troupe::ort::log_sink> sink;
  int inter_op_threads = 0;
  std::mutex mutex;                                     // guards all below
  std::unique_ptr<troupe::ort::ep_device_list> devices; // made when a client asks for it
  std::vector<std::shared_ptr<troupe::engine>> engines; // that its sessions opened: they stay open as long as it lives
};
