// Tensors with their elements, and attributes, as bytes.
#pragma once

#include "graph/graph.hpp"
#include "wire/archive.hpp"

namespace troupe::wire {

template <>
constexpr bool is_enumerator(dtype type) {
  const auto number = static_cast<uint8_t>(type);
  return number <= static_cast<uint8_t>(dtype::int2) && number != 14 &&
         number != 15; // complex numbers are ONNX's, not ours
}

/// Throws `errc::invalid_input` unless these can be a tensor's: as many bytes, with no dim counted as less than one, as
/// fit any memory.
void check_dims(const reader& r, dtype type, const shape& dims);

void put_elements(writer& w, const tensor& t);
/// Reads the elements of a tensor of this type and of dims that `check_dims` has passed.
tensor get_elements(reader& r, dtype type, shape dims);

/// Of a control-flow node's body only how many values it captures: where bodies run, they are plans of their own.
std::shared_ptr<const graph> stand_in(uint32_t captures);

/// An undefined tensor too.
template <class Archive>
void visit(Archive& a, tensor& t) {
  if constexpr (Archive::reads) {
    dtype type{};
    shape dims;
    a(type, dims);
    if (type == dtype::undefined)
      t = {};
    else
      t = get_elements(a, type, std::move(dims));
  } else {
    a(t.type(), t.dims());
    if (t.defined())
      put_elements(a, t);
  }
}

template <class Archive>
void visit(Archive& a, std::shared_ptr<const graph>& body) {
  uint32_t captures = body ? static_cast<uint32_t>(body->captured.size()) : 0;
  a(captures);
  if constexpr (Archive::reads)
    body = stand_in(captures);
}

template <class Archive>
void visit(Archive& a, attributes& attrs) {
  if constexpr (Archive::reads) {
    std::map<std::string, attribute, std::less<>> all;
    a(all);
    for (auto& [name, value] : all)
      attrs.set(name, std::move(value));
  } else {
    a(attrs.all());
  }
}

} // namespace troupe::wire
