#include "run.hpp"

#include "troupe/inspect.hpp"

#include <thread>

namespace troupe::python {
namespace {

constexpr auto signal_interval = std::chrono::milliseconds(50); // from Ctrl-C to its handler, at most
constexpr auto look_time = std::chrono::milliseconds(5);
constexpr unsigned cores_to_look = 8;

bool is_ready(const std::future<run_result>& future, std::chrono::milliseconds patience) {
  return future.wait_for(patience) == std::future_status::ready;
}

/// Waking a thread takes as long as a small run on a GPU: as `session::run` does, the thread looks for the end first.
void look_for(const std::future<run_result>& future) {
  const auto give_up = std::chrono::steady_clock::now() + look_time;
  while (!is_ready(future, std::chrono::milliseconds(0)) && std::chrono::steady_clock::now() < give_up)
    std::this_thread::yield();
}

bool overlaps(const memory_ranges& taken, const char* begin, const char* end) {
  return std::any_of(taken.begin(), taken.end(), [&](const auto& r) { return begin < r.second && r.first < end; });
}

} // namespace

run_request request_of(const py::dict& inputs, const shared_session& s, const std::set<std::string>& copied) {
  run_request request;
  for (const auto& [key, given] : inputs) {
    if (!py::isinstance<py::str>(key))
      throw py::type_error("names of inputs are str, not " + std::string(py::str(py::type::of(key).attr("__name__"))));
    const std::string name = utf8_of(key, "the name of an input");
    if (!py::isinstance<value>(given)) {
      request.tensors[name] = tensor_of(given, name, copied.contains(name));
      continue;
    }
    const auto& held = given.cast<const value&>();
    if (held.device && held.on == s.on())
      request.options.device_inputs[name] = held.device;
    else
      request.tensors[name] = copied.contains(name) ? copy_of(held.fetch()) : held.fetch();
  }
  take_loosely(request.tensors, s.inputs());
  return request;
}

memory_ranges ranges_of(const named_tensors& tensors) {
  memory_ranges ranges;
  ranges.reserve(tensors.size());
  for (const auto& [name, t] : tensors)
    if (t.type() != dtype::string && t.bytes() > 0)
      ranges.emplace_back(t.data<char>(), t.data<char>() + t.bytes());
  return ranges;
}

py::array hand_over::operator()(const std::string& name, const tensor& output) {
  if (output.type() == dtype::string || output.bytes() == 0)
    return array_of(output, name, false);
  const char* begin = output.data<char>();
  const char* end = begin + output.bytes();
  const bool copy = !to_copy || to_copy->contains(name) || overlaps(taken, begin, end);
  if (!copy)
    taken.emplace_back(begin, end);
  return array_of(output, name, copy);
}

run_result wait_for(std::future<run_result> future, std::stop_source& stop, bool answers_fast) {
  static const bool looks = std::thread::hardware_concurrency() >= cores_to_look;
  for (bool first = true;; first = false) {
    bool ready = false;
    {
      const py::gil_scoped_release unlocked;
      if (first && looks && answers_fast)
        look_for(future);
      ready = is_ready(future, signal_interval);
    }
    if (ready)
      break;
    if (PyErr_CheckSignals() == 0)
      continue;
    stop.request_stop();
    {
      const py::gil_scoped_release unlocked;
      future.wait();
    }
    throw py::error_already_set();
  }
  release_dropped();
  return future.get();
}

} // namespace troupe::python
