// Callbacks to objects that may be gone when the callback comes: links and hosts call as long as they live.
#pragma once

#include <memory>
#include <utility>

namespace troupe::remote {

/// Returns a function that calls `member` of the object, if that is still there, and keeps it meanwhile.
template <class Object, class... Arguments>
auto weakly(std::weak_ptr<Object> object, void (Object::*member)(Arguments...)) {
  return [object = std::move(object), member](Arguments... arguments) {
    if (const auto self = object.lock())
      (self.get()->*member)(std::forward<Arguments>(arguments)...);
  };
}

} // namespace troupe::remote
