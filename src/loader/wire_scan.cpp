#include "loader/wire_scan.hpp"

#include "base/error.hpp"
#include "base/limits.hpp"
#include "loader/wire_reader.hpp"
#include "loader/wire_writer.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX files are little-endian and are read in place");

/// Protobuf takes messages below 2 GiB.
constexpr size_t max_stripped_bytes = (size_t{1} << 31) - (1 << 20);
/// Bytes of a length that is written before it is known: a varint may be padded with zero groups.
constexpr size_t padded_length_bytes = 5;

enum class message_kind : uint8_t { model, graph, node, attribute, tensor, sparse_tensor, function };

enum class action : uint8_t { keep, drop, descend, take_out };

struct field_rule {
  action what = action::keep;
  message_kind child = message_kind::model;
};

constexpr field_rule drop{action::drop};
constexpr field_rule into(message_kind child) {
  return {action::descend, child};
}

struct field_row {
  message_kind kind;
  uint64_t field;
  field_rule rule;
};

/// What to do with length-delimited fields; the numbers are those of onnx.proto. Fields that are not listed are kept.
constexpr auto field_rules = std::to_array<field_row>({
    {message_kind::model, 6, drop}, // doc_string
    {message_kind::model, 7, into(message_kind::graph)},
    {message_kind::model, 14, drop}, // metadata_props
    {message_kind::model, 20, drop}, // training_info
    {message_kind::model, 25, into(message_kind::function)},
    {message_kind::model, 26, drop}, // configuration
    {message_kind::graph, 1, into(message_kind::node)},
    {message_kind::graph, 5, into(message_kind::tensor)},
    {message_kind::graph, 10, drop}, // doc_string
    {message_kind::graph, 13, drop}, // value_info
    {message_kind::graph, 14, drop}, // quantization_annotation
    {message_kind::graph, 15, into(message_kind::sparse_tensor)},
    {message_kind::graph, 16, drop}, // metadata_props
    {message_kind::node, 5, into(message_kind::attribute)},
    {message_kind::node, 6, drop},  // doc_string
    {message_kind::node, 9, drop},  // metadata_props
    {message_kind::node, 10, drop}, // device_configurations
    {message_kind::attribute, 5, into(message_kind::tensor)},
    {message_kind::attribute, 6, into(message_kind::graph)},
    {message_kind::attribute, 10, into(message_kind::tensor)},
    {message_kind::attribute, 11, into(message_kind::graph)},
    {message_kind::attribute, 13, drop}, // doc_string
    {message_kind::attribute, 22, into(message_kind::sparse_tensor)},
    {message_kind::tensor, 9, {action::take_out}},
    {message_kind::tensor, 12, drop}, // doc_string
    {message_kind::tensor, 16, drop}, // metadata_props
    {message_kind::sparse_tensor, 1, into(message_kind::tensor)},
    {message_kind::sparse_tensor, 2, into(message_kind::tensor)},
    {message_kind::function, 7, into(message_kind::node)},
    {message_kind::function, 8, drop}, // doc_string
    {message_kind::function, 11, into(message_kind::attribute)},
    {message_kind::function, 12, drop}, // value_info
    {message_kind::function, 14, drop}, // metadata_props
});

field_rule rule_of(message_kind kind, uint64_t field) {
  for (const field_row& row : field_rules)
    if (row.kind == kind && row.field == field)
      return row.rule;
  return {};
}

class scanner {
public:
  explicit scanner(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// Scans the message in [begin, end) and appends its stripped form.
  void message(message_kind kind, size_t begin, size_t end, int depth);

  scanned_message take() { return std::move(result_); }

private:
  [[noreturn]] void malformed(size_t at, const char* what) const {
    fail(errc::invalid_model, "not a valid ONNX file: {} at byte {}", what, at);
  }

  uint64_t varint(size_t& at, size_t end) const {
    uint64_t value = 0;
    const size_t start = at;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == end)
        malformed(start, "a truncated number");
      const auto byte = static_cast<uint64_t>(bytes_[at++]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80)
        return value;
    }
    malformed(start, "an overlong number");
  }

  void put_range(size_t begin, size_t end) {
    if (end - begin > max_stripped_bytes - std::min(result_.message.size(), max_stripped_bytes))
      fail(errc::unsupported,
           "the model has 2 GiB or more beside raw_data; move its tensors to raw_data or external data");
    result_.message.append(reinterpret_cast<const char*>(bytes_.data()) + begin, end - begin);
  }

  /// Skips a field's value; returns its end.
  size_t skip(uint64_t wire_type, size_t at, size_t end) const;
  void delimited(message_kind kind, uint64_t tag, size_t field_begin, size_t begin, size_t end, int depth);
  void nested(uint64_t tag, message_kind child, size_t begin, size_t end, int depth);
  void count(message_kind kind);

  std::span<const std::byte> bytes_;
  scanned_message result_;
  int64_t nodes_ = 0, messages_ = 0;
};

size_t scanner::skip(uint64_t wire_type, size_t at, size_t end) const {
  if (wire_type == 0) {
    varint(at, end);
    return at;
  }
  const size_t width = wire_type == 1 ? 8 : wire_type == 5 ? 4 : 0;
  if (width == 0)
    malformed(at, "a field of unknown wire type");
  if (end - at < width)
    malformed(at, "a truncated field");
  return at + width;
}

void scanner::message(message_kind kind, size_t begin, size_t end, int depth) {
  if (depth > limits::max_message_depth)
    fail(errc::unsupported, "the model is nested more than {} messages deep", limits::max_message_depth);
  for (size_t at = begin; at < end;) {
    const size_t field_begin = at;
    const uint64_t tag = varint(at, end);
    if (tag >> 3 == 0 || tag >> 32 != 0)
      malformed(field_begin, "an invalid field number");
    if ((tag & 7) != 2) {
      at = skip(tag & 7, at, end);
      put_range(field_begin, at);
      continue;
    }
    const uint64_t length = varint(at, end);
    if (length > end - at)
      malformed(field_begin, "a field that is longer than what encloses it");
    delimited(kind, tag, field_begin, at, at + length, depth);
    at += length;
  }
}

void scanner::delimited(message_kind kind, uint64_t tag, size_t field_begin, size_t begin, size_t end, int depth) {
  const field_rule rule = rule_of(kind, tag >> 3);
  switch (rule.what) {
    case action::drop: break;
    case action::keep: put_range(field_begin, end); break;
    case action::descend: nested(tag, rule.child, begin, end, depth); break;
    case action::take_out: {
      const uint64_t index = result_.blobs.size();
      result_.blobs.push_back({begin, end - begin});
      put_varint(result_.message, tag);
      put_varint(result_.message, sizeof index);
      result_.message.append(reinterpret_cast<const char*>(&index), sizeof index);
    }
  }
}

void scanner::nested(uint64_t tag, message_kind child, size_t begin, size_t end, int depth) {
  count(child);
  put_varint(result_.message, tag);
  const size_t length_at = result_.message.size();
  result_.message.append(padded_length_bytes, '\0');
  message(child, begin, end, depth + 1);
  uint64_t length = result_.message.size() - length_at - padded_length_bytes;
  if (length > max_stripped_bytes)
    fail(errc::unsupported, "the model has 2 GiB or more beside raw_data");
  for (size_t i = 0; i < padded_length_bytes; ++i, length >>= 7)
    result_.message[length_at + i] = static_cast<char>((length & 0x7f) | (i + 1 < padded_length_bytes ? 0x80 : 0));
}

void scanner::count(message_kind kind) {
  if (kind == message_kind::node && ++nodes_ > limits::max_nodes)
    fail(errc::unsupported, "the model has more than {} nodes", limits::max_nodes);
  if (++messages_ > limits::max_messages)
    fail(errc::unsupported, "the model has more than {} nodes, attributes and tensors", limits::max_messages);
}

} // namespace

scanned_message scan_wire(std::span<const std::byte> bytes, wire_root root) {
  scanner s(bytes);
  s.message(root == wire_root::model ? message_kind::model : message_kind::tensor, 0, bytes.size(), 0);
  return s.take();
}

blob blob_of(const scanned_message& scanned, std::string_view raw_data) {
  uint64_t index = 0;
  expects(raw_data.size() == sizeof index, "blob_of: the message was not scanned");
  std::memcpy(&index, raw_data.data(), sizeof index);
  return scanned.blobs.at(index);
}

} // namespace troupe
