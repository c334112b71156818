#include "compat/onnxruntime/key_values.hpp"

#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"

namespace troupe::ort {

// These functions have no way to say that memory is short: as ONNX Runtime's, they end the process then (noexcept).

OrtKeyValuePairs* make_pairs(std::map<std::string, std::string> entries) {
  auto* made = make_handle<OrtKeyValuePairs>(std::move(entries));
  made->refresh();
  return made;
}

void CreateKeyValuePairs(OrtKeyValuePairs** out) noexcept {
  if (out)
    *out = make_pairs({});
}

void AddKeyValuePair(OrtKeyValuePairs* pairs, const char* key, const char* value) noexcept {
  if (!pairs || !key || !*key)
    return;
  pairs->entries[key] = value ? value : "";
  pairs->refresh();
}

const char* GetKeyValue(const OrtKeyValuePairs* pairs, const char* key) noexcept {
  if (!pairs || !key)
    return nullptr;
  const auto found = pairs->entries.find(key);
  return found == pairs->entries.end() ? nullptr : found->second.c_str();
}

void GetKeyValuePairs(const OrtKeyValuePairs* pairs, const char* const** keys, const char* const** values,
                      size_t* count) noexcept {
  if (!keys || !values || !count)
    return;
  *keys = pairs ? pairs->keys.data() : nullptr;
  *values = pairs ? pairs->values.data() : nullptr;
  *count = pairs ? pairs->keys.size() : 0;
}

void RemoveKeyValuePair(OrtKeyValuePairs* pairs, const char* key) noexcept {
  if (!pairs || !key)
    return;
  pairs->entries.erase(key);
  pairs->refresh();
}

void ReleaseKeyValuePairs(OrtKeyValuePairs* pairs) noexcept {
  release_handle(pairs, "ReleaseKeyValuePairs");
}

} // namespace troupe::ort
