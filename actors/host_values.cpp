// Values between the caller and the devices, outside of runs.
#include "actors/host.hpp"

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>

namespace troupe::actors {
namespace {

/// A time of zero means no limit elsewhere; here a caller blocks, so there is one.
std::chrono::milliseconds limit_of(std::chrono::milliseconds timeout) {
  return timeout.count() > 0 ? timeout : std::chrono::minutes(10);
}

[[noreturn]] void report_lost(const device_handle& device, std::string_view purpose, std::string_view why) {
  device.health->lost = true;
  fail(errc::device_lost, "device '{}', which was to {}, is lost{}{}", device.info.name, purpose,
       why.empty() ? "" : ": ", why);
}

} // namespace

const device_handle& host::living(const std::string& name, std::string_view purpose) const {
  const auto found =
      std::find_if(devices_.begin(), devices_.end(), [&](const device_handle& d) { return d.info.name == name; });
  if (found == devices_.end())
    fail(errc::invalid_argument, "the engine has no device '{}', which was to {}", name, purpose);
  if (found->health->lost)
    report_lost(*found, purpose, "");
  return *found;
}

tensor host::fetch(const device_tensor& value, std::chrono::milliseconds timeout) const {
  if (!value)
    fail(errc::invalid_argument, "a device tensor to fetch is null");
  if (value->host().defined())
    return value->host();
  const std::string purpose =
      fmt::format("give back a value of type {} and shape {}", to_string(value->type()), to_string(value->dims()));
  const device_handle& device = living(value->device(), purpose);
  caf::scoped_actor self{system_};
  self->monitor(device.actor);
  self->send(device.actor, fetch_tensor{value, 0, {}});
  fetch_result result{.code = errc::device_lost, .message = "it did not answer in time"};
  uint64_t seen_progress = device.health->progress;
  bool waits = true;
  const auto end = [&] { waits = false; };
  while (waits)
    self->receive(
        [&](tensor_fetched& answer) {
          result = std::move(answer.result);
          end();
        },
        [&](const caf::down_msg&) {
          result.message = "its actor has ended";
          end();
        },
        caf::after(limit_of(timeout)) >> [&] { // behind much work it is not silent
          if (std::exchange(seen_progress, device.health->progress) == seen_progress)
            end();
        });
  if (result.ok())
    return std::move(result.value);
  if (result.code == errc::device_lost)
    report_lost(device, purpose, result.message);
  fail(result.code, "device '{}' could not {}: {}", device.info.name, purpose, result.message);
}

device_tensor host::put(const tensor& value, const std::string& name, std::chrono::milliseconds timeout) const {
  if (!value.defined())
    fail(errc::invalid_argument, "what is to be put on device '{}' holds no tensor", name);
  const device_handle& device = living(name, "take a value");
  tensor_put answer{{}, {errc::device_lost, "it did not answer in time"}};
  caf::scoped_actor self{system_};
  self->request(device.actor, limit_of(timeout), put_tensor{value})
      .receive([&](tensor_put& given) { answer = std::move(given); }, [](const caf::error&) {});
  if (!answer.why.failed())
    return answer.value;
  if (answer.why.code == errc::device_lost)
    report_lost(device, "take a value", answer.why.message);
  fail(answer.why.code, "device '{}' could not take a value: {}", name, answer.why.message);
}

} // namespace troupe::actors
