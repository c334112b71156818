#include "keep_alive.hpp"

#include "troupe/error.hpp"

#include <atomic>
#include <mutex>
#include <pthread.h>
#include <vector>

namespace troupe::python {
namespace {

struct dropped_objects {
  std::mutex mutex;
  std::vector<PyObject*> objects;
};

/// Never destroyed: devices' threads may drop objects as long as the process lives.
dropped_objects& dropped() {
  static auto* const all = new dropped_objects;
  return *all;
}

std::atomic<bool> any_dropped{false};
std::atomic<bool> engine_opened{false};
std::atomic<bool> forked{false};

int release_when_idle(void*) {
  release_dropped();
  return 0;
}

void drop(PyObject* object) {
  {
    const std::lock_guard lock(dropped().mutex);
    dropped().objects.push_back(object);
  }
  if (!any_dropped.exchange(true)) // one call for all; if Python's list of calls is full, the next run releases them
    Py_AddPendingCall(release_when_idle, nullptr);
}

} // namespace

std::shared_ptr<const void> keep_alive(py::object object) {
  PyObject* raw = object.release().ptr();
  return {raw, [](const void* kept) { drop(static_cast<PyObject*>(const_cast<void*>(kept))); }};
}

void release_dropped() {
  if (!any_dropped.exchange(false))
    return;
  std::vector<PyObject*> objects;
  {
    const std::lock_guard lock(dropped().mutex);
    objects.swap(dropped().objects);
  }
  for (PyObject* object : objects)
    Py_DECREF(object);
}

void note_engine() {
  static const int watches = pthread_atfork(nullptr, nullptr, [] { forked = engine_opened.load(); });
  if (watches != 0)
    throw error(errc::internal, "forks cannot be watched");
  engine_opened = true;
}

bool is_forked() {
  return forked;
}

void check_not_forked() {
  if (forked)
    throw error(errc::device_lost,
                "this process was forked after troupe opened its devices, whose threads are in the other process: open "
                "engines and sessions after the fork, or start processes anew (multiprocessing: the 'spawn' method)");
}

} // namespace troupe::python
