// Environments: where messages go, and how many threads send work to devices.
#pragma once

#include "compat/onnxruntime/ep_devices.hpp"
#include "compat/onnxruntime/log.hpp"
#include "compat/onnxruntime/settings.hpp"

#include <memory>
#include <mutex>

/// Sizes of thread pools that several sessions share.
struct OrtThreadingOptions {
  troupe::ort::thread_counts threads;
};

/// An environment. Sessions share what they need of it, so it may be released before them.
struct OrtEnv {
  std::shared_ptr<troupe::ort::log_sink> sink;
  troupe::ort::thread_counts threads;
  std::mutex mutex;                                     // guards all below
  std::unique_ptr<troupe::ort::ep_device_list> devices; // made when a client asks for it
  std::vector<std::shared_ptr<troupe::engine>> engines; // that its sessions opened: they stay open as long as it lives
};
