#include "compat/onnxruntime/profile.hpp"

#include "troupe/error.hpp"

#include <nlohmann/json.hpp>

#include <atomic>
#include <ctime>
#include <fstream>

namespace troupe::ort {
namespace {

/// A profile that is never ended may not fill the memory: the events of runs beyond this number are dropped.
constexpr size_t most_events = 1'000'000;

/// Returns e.g. "2026-11-29_20-15-03_2": the second, and which file of this process it is, so that no two are one.
std::string unique_end() {
  static std::atomic<unsigned> files = 0;
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d_%H-%M-%S", &parts);
  return std::string(text) + "_" + std::to_string(++files);
}

} // namespace

profile::profile(std::string prefix) : prefix_(std::move(prefix)) {}

void profile::add(const run_trace& trace, std::chrono::steady_clock::time_point begin) {
  const double offset = std::chrono::duration<double, std::micro>(begin - begin_).count();
  nlohmann::json whole = nlohmann::json::parse(to_chrome_json(trace));
  std::vector<std::string> events;
  for (nlohmann::json& event : whole.at("traceEvents")) {
    if (event.contains("ts"))
      event["ts"] = event["ts"].get<double>() + offset;
    events.push_back(event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  const std::lock_guard lock(mutex_);
  if (events_.size() >= most_events)
    return;
  events_.insert(events_.end(), std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
}

std::string profile::write() {
  std::string name = prefix_ + "_" + unique_end() + ".json";
  std::ofstream file(name);
  const std::lock_guard lock(mutex_);
  file << "[\n";
  for (size_t i = 0; i < events_.size(); ++i)
    file << events_[i] << (i + 1 < events_.size() ? ",\n" : "\n");
  file << "]\n";
  if (!file.flush())
    throw error(errc::io, "'" + name + "' cannot be written");
  events_.clear();
  return name;
}

} // namespace troupe::ort
