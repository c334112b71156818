// Tensors of strings.
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/status.hpp"
#include "compat/onnxruntime/value.hpp"

#include <cstring>
#include <numeric>

namespace troupe::ort {
namespace {

template <class Text, class Strings>
Text& string_at(const Strings& strings, size_t index) {
  if (index >= strings.size())
    reject("there is no string " + std::to_string(index) + ": the tensor has " + std::to_string(strings.size()));
  return strings[index];
}

size_t length_of(std::span<const std::string> strings) {
  return std::accumulate(strings.begin(), strings.end(), size_t{0}, [](size_t n, auto& s) { return n + s.size(); });
}

} // namespace

std::span<const std::string> strings_of(const OrtValue* value) {
  const tensor& t = tensor_of(value);
  if (t.type() != dtype::string)
    reject("the tensor has elements of type " + std::string(to_string(t.type())) + ", not strings");
  return t.values<std::string>();
}

std::span<std::string> strings_of(OrtValue* value) {
  const auto strings = strings_of(static_cast<const OrtValue*>(value));
  return {value->held.mutable_data<std::string>(), strings.size()};
}

OrtStatus* FillStringTensor(OrtValue* value, const char* const* texts, size_t count) noexcept {
  return guarded([&] {
    const auto strings = strings_of(value);
    if (count != strings.size())
      reject(std::to_string(count) + " strings for a tensor of " + std::to_string(strings.size()));
    for (size_t i = 0; i < count; ++i)
      strings[i] = &given((&given(texts, "the strings"))[i], "a string");
  });
}

OrtStatus* FillStringTensorElement(OrtValue* value, const char* text, size_t index) noexcept {
  return guarded([&] { string_at<std::string>(strings_of(value), index) = &given(text, "the string"); });
}

OrtStatus* GetResizedStringTensorElementBuffer(OrtValue* value, size_t index, size_t length, char** out) noexcept {
  return guarded([&] {
    std::string& text = string_at<std::string>(strings_of(value), index);
    text.resize(length);
    given(out, "the place for the buffer") = text.data();
  });
}

OrtStatus* GetStringTensorDataLength(const OrtValue* value, size_t* out) noexcept {
  return guarded([&] { given(out, "the place for the length") = length_of(strings_of(value)); });
}

OrtStatus* GetStringTensorContent(const OrtValue* value, void* text, size_t text_size, size_t* offsets,
                                  size_t count) noexcept {
  return guarded([&] {
    const auto strings = strings_of(value);
    if (count != strings.size())
      reject("room for " + std::to_string(count) + " offsets for " + std::to_string(strings.size()) + " strings");
    if (text_size < length_of(strings))
      reject("room for " + std::to_string(text_size) + " characters of " + std::to_string(length_of(strings)));
    size_t offset = 0;
    for (size_t i = 0; i < count; ++i) {
      (&given(offsets, "the place for the offsets"))[i] = offset;
      if (!strings[i].empty())
        std::memcpy(&given(static_cast<char*>(text), "the place for the characters") + offset, strings[i].data(),
                    strings[i].size());
      offset += strings[i].size();
    }
  });
}

OrtStatus* GetStringTensorElementLength(const OrtValue* value, size_t index, size_t* out) noexcept {
  return guarded(
      [&] { given(out, "the place for the length") = string_at<const std::string>(strings_of(value), index).size(); });
}

OrtStatus* GetStringTensorElement(const OrtValue* value, size_t size, size_t index, void* out) noexcept {
  return guarded([&] {
    const std::string& text = string_at<const std::string>(strings_of(value), index);
    if (size < text.size())
      reject("room for " + std::to_string(size) + " characters of " + std::to_string(text.size()));
    if (!text.empty())
      std::memcpy(&given(static_cast<char*>(out), "the place for the characters"), text.data(), text.size());
  });
}

} // namespace troupe::ort
