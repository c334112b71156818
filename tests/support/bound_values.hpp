// Small models with state, and devices to keep it on: for tests of values that stay on their device.
#pragma once

#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/fault_device.hpp"
#include "support/gpu.hpp"
#include "support/reference_device.hpp"
#include "support/small_models.hpp"
#include "support/summing_models.hpp"
#include "support/thrown.hpp"

namespace troupe::test {

inline device_factory reference(const std::string& name, fault_script script = {}) {
  return [=] { return std::make_unique<fault_device>(std::make_unique<reference_device>(name), script); };
}

inline device_factory gpu(const std::string& name, const vulkan::vulkan_device_options& options = {}) {
  return [=] { return open_gpu(options, name); };
}

inline engine engine_of(std::vector<device_factory> devices,
                        std::chrono::milliseconds timeout = std::chrono::minutes(1)) {
  return make_engine({.devices = {}, .device_timeout = timeout}, {.custom_devices = std::move(devices)});
}

template <class F>
void refuses(F&& f, errc code, const std::string& words) {
  const error problem = thrown_by(f);
  INFO(problem.what());
  CHECK(problem.code() == code);
  CHECK(std::string(problem.what()).find(words) != std::string::npos);
}

} // namespace troupe::test
