// Values between the caller and the devices, outside of runs.
#include "actors/host.hpp"
#include "actors/silence_watch.hpp"

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>

namespace troupe::actors {
namespace {

/// Asks a device for something and waits for the answer, of type `Answer`, however much work is queued before it.
/// Returns why none comes: the device is gone, or silent for `timeout`; empty if `answer` is filled.
template <class Answer, class Request>
std::string ask(caf::actor_system& system, const device_handle& device, Request request,
                std::chrono::milliseconds timeout, Answer& answer) {
  caf::scoped_actor self{system};
  self->monitor(device.actor);
  self->send(device.actor, std::move(request));
  silence_watch watch;
  std::optional<std::string> ending; // empty text: the answer has come
  const auto look = [&] {
    if (watch.is_silent(*device.health, true, silence_watch::clock::now(), timeout))
      ending = "it did not answer in time";
    else if (device.health->lost)
      ending = device.health->because("another user lost it"); // its actor may hang, and never end
  };
  look();
  while (!ending)
    self->receive(
        [&](Answer& given) {
          answer = std::move(given);
          ending = "";
        },
        [&](const caf::down_msg&) { ending = device.health->because("its actor has ended"); },
        caf::after(look_interval(timeout)) >> look);
  self->demonitor(device.actor.address()); // else the device's actor remembers each question
  return *ending;
}

[[noreturn]] void report_lost(const device_handle& device, std::string_view purpose, std::string_view why) {
  device.health->give_up();
  fail(errc::device_lost, "device '{}', which was to {}, is lost{}{}", device.info.name, purpose,
       why.empty() ? "" : ": ", why);
}

} // namespace

device_handle host::living(const std::string& name, std::optional<uint64_t> incarnation,
                           std::string_view purpose) const {
  const device_list all = devices();
  const device_handle* found = nullptr;
  for (const device_handle& d : *all)
    if (d.info.name == name && (!incarnation || d.info.incarnation == *incarnation) && (!found || !d.health->lost))
      found = &d;
  if (!found)
    fail(errc::invalid_argument, "the engine has no device '{}', which was to {}", name, purpose);
  if (found->health->lost)
    report_lost(*found, purpose, found->health->because(""));
  return *found;
}

tensor host::fetch(const device_tensor& value, std::chrono::milliseconds timeout) const {
  if (!value)
    fail(errc::invalid_argument, "a device tensor to fetch is null");
  if (value->host().defined())
    return value->host();
  const std::string purpose =
      fmt::format("give back a value of type {} and shape {}", to_string(value->type()), to_string(value->dims()));
  const device_handle device = living(value->device(), value->incarnation(), purpose);
  tensor_fetched answer;
  if (const std::string why = ask(system_, device, fetch_tensor{value, 0, {}}, timeout, answer); !why.empty())
    report_lost(device, purpose, why);
  fetch_result& result = answer.result;
  if (result.ok())
    return std::move(result.value);
  if (result.code == errc::device_lost)
    report_lost(device, purpose, result.message);
  fail(result.code, "device '{}' could not {}: {}", device.info.name, purpose, result.message);
}

device_tensor host::put(const tensor& value, const std::string& name, std::chrono::milliseconds timeout) const {
  if (!value.defined())
    fail(errc::invalid_argument, "what is to be put on device '{}' holds no tensor", name);
  const device_handle device = living(name, std::nullopt, "take a value");
  tensor_put answer;
  if (const std::string why = ask(system_, device, put_tensor{value}, timeout, answer); !why.empty())
    report_lost(device, "take a value", why);
  if (!answer.why.failed())
    return answer.value;
  if (answer.why.code == errc::device_lost)
    report_lost(device, "take a value", answer.why.message);
  fail(answer.why.code, "device '{}' could not take a value: {}", name, answer.why.message);
}

} // namespace troupe::actors
