// The devices of the engine, as clients of newer versions see them: a device of hardware, and the provider for it.
#pragma once

#include "compat/onnxruntime/key_values.hpp"
#include "troupe/engine.hpp"

#include <deque>
#include <memory>
#include <string>
#include <vector>

struct OrtHardwareDevice {
  OrtHardwareDeviceType type;
  std::string vendor;
  OrtKeyValuePairs metadata; // what troupe says of it: name, description, memory
};

struct OrtEpDevice {
  std::string device; // troupe's name
  OrtKeyValuePairs metadata, options;
  const OrtHardwareDevice* hardware;
};

namespace troupe::ort {

/// All of an engine. Immutable; pointers into it are the client's as long as its environment lives.
struct ep_device_list {
  std::deque<OrtHardwareDevice> hardware;
  std::deque<OrtEpDevice> devices;
  std::vector<const OrtHardwareDevice*> hardware_pointers;
  std::vector<const OrtEpDevice*> pointers;
  std::shared_ptr<engine> on;
};

} // namespace troupe::ort
