// The two messages have the same fields: 1 the name, 2 what they hold, 3 tensors, 4 sparse tensors, 5 sequences, 6
// maps, 7 optionals. A walk over the fields copies no tensor before its own reader does.
#include "loader/container_proto.hpp"

#include "base/error.hpp"
#include "base/limits.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace troupe {
namespace {

constexpr uint32_t name_field = 1, kind_field = 2, tensor_field = 3, sequence_field = 5;
constexpr uint32_t varint = 0, length_delimited = 2; // wire types

/// Values of field 2.
constexpr uint32_t tensor_kind = 1, sequence_kind = 3;

constexpr uint32_t tag_of(uint32_t field, uint32_t wire_type) {
  return field << 3 | wire_type;
}

/// A field that is not a number.
struct field {
  uint32_t number = 0;
  std::span<const std::byte> content;
};

[[noreturn]] void refuse(dtype type) {
  fail(errc::invalid_model, "it is not a serialized {}", to_string(type));
}

std::vector<field> fields_of(std::span<const std::byte> bytes, dtype type) {
  if (bytes.size() > INT32_MAX)
    fail(errc::unsupported, "{} bytes are too many for a .pb file", bytes.size());
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  std::vector<field> fields;
  while (const uint32_t tag = in.ReadTag()) {
    uint64_t number = 0;
    if (!in.ReadVarint64(&number))
      refuse(type);
    if ((tag & 7) == varint)
      continue;
    const auto at = static_cast<size_t>(in.CurrentPosition());
    if ((tag & 7) != length_delimited || number > bytes.size() - at || !in.Skip(static_cast<int>(number)))
      refuse(type);
    fields.push_back({tag >> 3, bytes.subspan(at, number)});
    if (fields.size() > static_cast<size_t>(limits::max_sequence_length))
      fail(errc::unsupported, "more than {} tensors in one file", limits::max_sequence_length);
  }
  if (!in.ConsumedEntireMessage())
    refuse(type);
  return fields;
}

} // namespace

named_tensor parse_container(std::span<const std::byte> bytes, dtype type) {
  const dtype element = element_of(type);
  const uint32_t wanted = is_sequence(element) ? sequence_field : tensor_field;
  named_tensor made;
  std::vector<tensor> elements;
  for (const field& f : fields_of(bytes, type)) {
    if (f.number == name_field) {
      made.name.assign(reinterpret_cast<const char*>(f.content.data()), f.content.size());
      continue;
    }
    if (f.number != wanted)
      fail(errc::unsupported, "it holds something else than a {} does", to_string(type));
    elements.push_back(parse_pb(f.content, element).value);
    if (elements.back().type() != element)
      fail(errc::invalid_model, "element {} is {}, in what should be a {}", elements.size() - 1,
           to_string(elements.back().type()), to_string(type));
  }
  if (is_optional(type) && elements.size() > 1)
    fail(errc::invalid_model, "an optional with {} elements", elements.size());
  made.value = is_sequence(type) ? tensor::sequence(element, std::move(elements))
                                 : tensor::optional(element, elements.empty() ? tensor{} : elements.front());
  return made;
}

std::string make_container(const std::string& name, const tensor& value) {
  const bool of_sequences = is_sequence(element_of(value.type()));
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    const auto write = [&](uint32_t number, const std::string& content) {
      out.WriteTag(tag_of(number, length_delimited));
      out.WriteVarint64(content.size());
      out.WriteString(content);
    };
    write(name_field, name);
    out.WriteTag(tag_of(kind_field, varint));
    out.WriteVarint32(of_sequences ? sequence_kind : tensor_kind);
    for (const tensor& element : value.values<tensor>())
      write(of_sequences ? sequence_field : tensor_field, make_pb("", element));
  }
  return bytes;
}

} // namespace troupe
