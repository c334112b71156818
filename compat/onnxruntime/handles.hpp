// The handles that clients hold. Each is an object of ours, and the library knows which of them live: a handle that a
// client releases twice, or that was never one, is reported on stderr and left alone, so that it cannot damage what
// other code has at that address by now.
#pragma once

#include "compat/onnxruntime/status.hpp"

#include <memory>
#include <typeinfo>
#include <utility>

namespace troupe::ort {

/// Notes that a handle of this type lives.
void add_handle(const void* handle, const std::type_info& type);

/// Notes that it does no more. Returns false, after a line on stderr that names `function`, where no handle of this
/// type lives there.
bool remove_handle(const void* handle, const std::type_info& type, const char* function) noexcept;

/// Returns whether a handle of this type lives.
bool has_handle(const void* handle, const std::type_info& type);

/// As `given`; it throws the same for a handle that has been released, too. For those that clients keep for long.
template <class T>
T& living(T* handle, const char* name) {
  given(handle, name);
  if (!has_handle(handle, typeid(T)))
    reject(std::string(name) + " has been released, or never was one");
  return *handle;
}

/// Makes an object for a client to hold.
template <class T, class... Arguments>
T* make_handle(Arguments&&... arguments) {
  std::unique_ptr<T> made(new T{std::forward<Arguments>(arguments)...});
  add_handle(made.get(), typeid(T));
  return made.release();
}

/// Destroys one; null is fine. `function` is what the client called.
template <class T>
void release_handle(T* handle, const char* function) noexcept {
  if (handle && remove_handle(handle, typeid(T), function))
    delete handle;
}

} // namespace troupe::ort
