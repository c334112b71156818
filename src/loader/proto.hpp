// The door to protobuf: ONNX's message classes, and fields that are newer than the installed ones.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace troupe {

/// Returns the last occurrence of length-delimited field `number` that the installed classes do not know, or "".
inline std::string unknown_text(const google::protobuf::Message& message, int number) {
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  std::string text;
  for (int i = 0; i < fields.field_count(); ++i)
    if (fields.field(i).number() == number &&
        fields.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      text = fields.field(i).length_delimited();
  return text;
}

/// Returns which of several functions of one name a NodeProto or FunctionProto means; "" where it does not say.
template <class Proto>
std::string overload_of(const Proto& proto, int field_number) {
  if constexpr (requires { proto.overload(); })
    return proto.overload();
  else
    return unknown_text(proto, field_number);
}
inline constexpr int node_overload_field = 8;
inline constexpr int function_overload_field = 13;
/// FunctionProto.attribute_proto: attributes with a default value.
inline constexpr int function_attribute_proto_field = 11;

/// Returns the canonical name of an operator domain: "ai.onnx" is "".
inline std::string canonical_domain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

/// Returns a name fit for a message: quoted, shortened, unprintable bytes replaced.
inline std::string in_quotes(const std::string& name) {
  constexpr size_t longest = 200;
  std::string text = name.substr(0, longest) + (name.size() > longest ? "..." : "");
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return '\'' + text + '\'';
}

} // namespace troupe
