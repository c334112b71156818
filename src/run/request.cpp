#include "run/request.hpp"

#include <atomic>

namespace troupe {
namespace {

uint64_t next_ticket() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

} // namespace

carried_value::carried_value(device_tensor handle) {
  if (handle->host().defined()) {
    value_ = std::make_shared<moved_value>(handle->host());
    on_host_ = std::move(handle);
  } else {
    value_ = std::make_shared<moved_value>(tensor(), std::move(handle));
  }
}

const device_tensor& carried_value::handle() const {
  return value_ && !on_host_ ? value_->resident() : on_host_;
}

const std::shared_ptr<const std::vector<carried_pair>>& carried_values::no_pairs() {
  static const auto none = std::make_shared<const std::vector<carried_pair>>();
  return none;
}

const carried_bundle& carried_values::no_values() {
  static const auto none = std::make_shared<const std::vector<carried_value>>();
  return none;
}

const device_tensor& carried_values::find(size_t input) const {
  static const device_tensor none;
  for (size_t i = 0; i < pairs->size(); ++i)
    if ((*pairs)[i].input == input)
      return (*given)[i].handle();
  return none;
}

run_request::run_request(named_tensors in, run_options how, carried_values across)
    : ticket(next_ticket()), inputs(std::move(in)), options(std::move(how)), carried(std::move(across)),
      started(std::chrono::steady_clock::now()) {}

std::optional<std::chrono::milliseconds> time_limit(std::chrono::milliseconds given, std::string_view name) {
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365 * 100);
  if (given.count() < 0)
    fail(errc::invalid_argument, "{} is {} ms: it must not be negative; zero means no limit", name, given.count());
  if (given.count() == 0 || given > longest)
    return std::nullopt;
  return given;
}

} // namespace troupe
