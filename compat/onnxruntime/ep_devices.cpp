#include "compat/onnxruntime/env.hpp"
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/memory.hpp"
#include "compat/onnxruntime/session.hpp"
#include "compat/onnxruntime/session_options.hpp"
#include "compat/onnxruntime/settings.hpp"
#include "compat/onnxruntime/status.hpp"

#include <algorithm>

namespace troupe::ort {
namespace {

constexpr char provider[] = "TroupeExecutionProvider";

OrtKeyValuePairs pairs_of(std::map<std::string, std::string> entries) {
  OrtKeyValuePairs pairs;
  pairs.entries = std::move(entries);
  return pairs;
}

std::unique_ptr<ep_device_list> list_devices(const thread_counts& threads) {
  auto list = std::make_unique<ep_device_list>();
  list->on = shared_engine(engine_options_of({}, threads));
  for (const device_summary& d : list->on->devices()) {
    const std::map<std::string, std::string> facts{
        {"troupe.name", d.name}, {"Description", d.description}, {"troupe.memory", std::to_string(d.memory_bytes)}};
    const auto type = d.kind == "vulkan" ? OrtHardwareDeviceType_GPU : OrtHardwareDeviceType_CPU;
    OrtHardwareDevice& hardware = list->hardware.emplace_back(OrtHardwareDevice{type, d.description, pairs_of(facts)});
    hardware.metadata.refresh();
    OrtEpDevice& device =
        list->devices.emplace_back(OrtEpDevice{d.name, pairs_of(facts), pairs_of({{"devices", d.name}}), &hardware});
    device.metadata.refresh();
    device.options.refresh();
    list->hardware_pointers.push_back(&hardware);
    list->pointers.push_back(&device);
  }
  return list;
}

const ep_device_list& devices_of(const OrtEnv* env) {
  OrtEnv& e = const_cast<OrtEnv&>(given(env, "the environment")); // the list is made once, when it is asked for
  const std::lock_guard lock(e.mutex);
  if (!e.devices)
    e.devices = list_devices(e.threads);
  return *e.devices;
}

/// No input or output belongs to one provider: each device takes what its plan says, from the host.
OrtStatus* no_device(const OrtSession* session, std::vector<value_info> OrtSession::*list, const OrtEpDevice** out,
                     size_t size) noexcept {
  return guarded([&] {
    if (size != (living(session, "the session").*list).size())
      reject("room for " + std::to_string(size) + " devices of " + std::to_string((session->*list).size()));
    for (size_t i = 0; i < size; ++i)
      (&given(out, "the place for the devices"))[i] = nullptr;
  });
}

} // namespace

OrtStatus* GetEpDevices(const OrtEnv* env, const OrtEpDevice* const** out, size_t* count) noexcept {
  return guarded([&] {
    const ep_device_list& list = devices_of(env);
    given(out, "the place for the devices") = list.pointers.data();
    given(count, "the place for their number") = list.pointers.size();
  });
}

OrtStatus* GetNumHardwareDevices(const OrtEnv* env, size_t* out) noexcept {
  return guarded([&] { given(out, "the place for the number") = devices_of(env).hardware_pointers.size(); });
}

OrtStatus* GetHardwareDevices(const OrtEnv* env, const OrtHardwareDevice** out, size_t size) noexcept {
  return guarded([&] {
    const auto& all = devices_of(env).hardware_pointers;
    if (size < all.size())
      reject("room for " + std::to_string(size) + " devices of " + std::to_string(all.size()));
    std::ranges::copy(all, &given(out, "the place for the devices"));
  });
}

OrtStatus* SessionOptionsAppendExecutionProvider_V2(OrtSessionOptions* options, OrtEnv* env,
                                                    const OrtEpDevice* const* devices, size_t count,
                                                    const char* const* keys, const char* const* values,
                                                    size_t pairs) noexcept {
  return guarded([&] {
    OrtSessionOptions& o = given(options, "the session options");
    given(env, "the environment");
    if (count == 0)
      reject("no device is given");
    std::string names;
    for (size_t i = 0; i < count; ++i)
      names.append(names.empty() ? "" : ",").append(given((&given(devices, "the devices"))[i], "a device").device);
    for (size_t i = 0; i < pairs; ++i) {
      const std::string key = std::string("troupe.") + &given((&given(keys, "the keys"))[i], "a key");
      const std::string value = &given((&given(values, "the values"))[i], "a value");
      check_entry(key, value);
      o.entries[key] = value;
    }
    o.entries["troupe.devices"] = names;
  });
}

OrtHardwareDeviceType HardwareDevice_Type(const OrtHardwareDevice* device) noexcept {
  return device ? device->type : OrtHardwareDeviceType_CPU;
}

/// The numbers of a bus are not known: devices of other hosts have none.
uint32_t HardwareDevice_VendorId(const OrtHardwareDevice* /*device*/) noexcept {
  return 0;
}

const char* HardwareDevice_Vendor(const OrtHardwareDevice* device) noexcept {
  return device ? device->vendor.c_str() : "";
}

uint32_t HardwareDevice_DeviceId(const OrtHardwareDevice* /*device*/) noexcept {
  return 0;
}

const OrtKeyValuePairs* HardwareDevice_Metadata(const OrtHardwareDevice* device) noexcept {
  return device ? &device->metadata : nullptr;
}

const char* EpDevice_EpName(const OrtEpDevice* /*device*/) noexcept {
  return provider;
}

const char* EpDevice_EpVendor(const OrtEpDevice* /*device*/) noexcept {
  return "troupe";
}

const OrtKeyValuePairs* EpDevice_EpMetadata(const OrtEpDevice* device) noexcept {
  return device ? &device->metadata : nullptr;
}

const OrtKeyValuePairs* EpDevice_EpOptions(const OrtEpDevice* device) noexcept {
  return device ? &device->options : nullptr;
}

const OrtHardwareDevice* EpDevice_Device(const OrtEpDevice* device) noexcept {
  return device ? device->hardware : nullptr;
}

const OrtMemoryInfo* EpDevice_MemoryInfo(const OrtEpDevice* /*device*/, OrtDeviceMemoryType /*type*/) noexcept {
  return &host_memory();
}

OrtStatus* SessionGetEpDeviceForInputs(const OrtSession* session, const OrtEpDevice** out, size_t size) noexcept {
  return no_device(session, &OrtSession::inputs, out, size);
}

OrtStatus* SessionGetEpDeviceForOutputs(const OrtSession* session, const OrtEpDevice** out, size_t size) noexcept {
  return no_device(session, &OrtSession::outputs, out, size);
}

/// Models that were compiled for a provider are not for ours.
OrtStatus* GetModelCompatibilityForEpDevices(const OrtEpDevice* const* /*devices*/, size_t /*count*/,
                                             const char* /*info*/, OrtCompiledModelCompatibility* out) noexcept {
  return guarded([&] { given(out, "the place for the answer") = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE; });
}

} // namespace troupe::ort
