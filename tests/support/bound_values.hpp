// Small models with state, and devices to keep it on: for tests of values that stay on their device.
#pragma once

#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/fault_device.hpp"
#include "support/gpu.hpp"
#include "support/reference_device.hpp"
#include "support/small_models.hpp"
#include "support/thrown.hpp"

namespace troupe::test {

/// next = state + x and y = −next; all of one shape.
inline graph summing_model(const shape& dims) {
  graph_builder b;
  const value_id x = b.input("x", to_symbolic(dims)), state = b.input("state", to_symbolic(dims));
  const value_id next = b.op("Add", {state, x}, {}, "next");
  b.g.outputs = {next, b.op("Neg", {next}, {}, "y")};
  return b.g;
}

inline tensor filled(const shape& dims, float value) {
  tensor t(dtype::float32, dims);
  std::fill_n(t.mutable_data<float>(), t.size(), value);
  return t;
}

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

inline bool same(const tensor& a, const tensor& b) {
  return a.type() == b.type() && a.dims() == b.dims() && std::ranges::equal(a.values<float>(), b.values<float>());
}

template <class F>
void refuses(F&& f, errc code, const std::string& words) {
  const error problem = thrown_by(f);
  INFO(problem.what());
  CHECK(problem.code() == code);
  CHECK(std::string(problem.what()).find(words) != std::string::npos);
}

} // namespace troupe::test
