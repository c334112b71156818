// A device whose calls may take long for a reason that it knows, such as weights on their way from another host: while
// it tells of progress, it is not silent.
#pragma once

#include <functional>

namespace troupe {

class tells_progress {
public:
  virtual ~tells_progress() = default;

  /// Calls `told` whenever there is progress within a call, on any thread. To be called once, before other calls.
  virtual void on_progress(std::function<void()> told) = 0;
};

} // namespace troupe
