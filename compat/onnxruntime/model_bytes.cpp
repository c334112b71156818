// Only what is replaced is understood; all other bytes are passed on as they are.
#include "compat/onnxruntime/model_bytes.hpp"

#include "compat/onnxruntime/fields.hpp"
#include "troupe/tensor_file.hpp"

#include <charconv>
#include <optional>

namespace troupe::ort {
namespace {

// Field numbers of onnx.proto.
constexpr uint64_t model_graph = 7, graph_initializer = 5;
constexpr uint64_t tensor_dims = 1, tensor_type = 2, tensor_name = 8, tensor_external = 13;
constexpr uint64_t entry_key = 1, entry_value = 2;

void append(std::string& out, bytes b) {
  out.append(text_of(b));
}

/// Appends a message or text as a field.
void append_field(std::string& out, uint64_t number, std::string_view content) {
  for (uint64_t value : {number << 3 | 2, static_cast<uint64_t>(content.size())}) {
    for (; value >= 0x80; value >>= 7)
      out.push_back(static_cast<char>(value | 0x80));
    out.push_back(static_cast<char>(value));
  }
  out.append(content);
}

/// What an initializer says of itself.
struct initializer {
  std::string name;
  dtype type = dtype::undefined;
  shape dims;
  std::map<std::string, std::string> external; // location, offset, length
};

initializer read_initializer(bytes rest) {
  initializer made;
  while (!rest.empty()) {
    const field f = next(rest);
    if (f.number == tensor_name)
      made.name = text_of(f.content);
    else if (f.number == tensor_type)
      made.type = static_cast<dtype>(f.value);
    else if (f.number == tensor_dims && f.content.empty())
      made.dims.push_back(static_cast<int64_t>(f.value));
    else if (f.number == tensor_dims)
      for (bytes packed = f.content; !packed.empty();)
        made.dims.push_back(static_cast<int64_t>(read_varint(packed)));
    else if (f.number == tensor_external) {
      std::string key, value;
      for (bytes entry = f.content; !entry.empty();) {
        const field part = next(entry);
        if (part.number == entry_key || part.number == entry_value)
          (part.number == entry_key ? key : value) = text_of(part.content);
      }
      made.external[key] = value;
    }
  }
  return made;
}

/// Returns the number that an entry of external data says, or `otherwise` if there is none.
uint64_t number_of(const initializer& of, const char* key, uint64_t otherwise) {
  const auto found = of.external.find(key);
  if (found == of.external.end())
    return otherwise;
  uint64_t number = 0;
  const std::string& text = found->second;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc())
    throw error(errc::invalid_model, "initializer '" + of.name + "': its " + key + " is not a number: '" + text + "'");
  return number;
}

tensor part_of(const initializer& of, bytes file) {
  const auto needed = static_cast<uint64_t>(bytes_of(of.type, volume(of.dims)));
  const uint64_t offset = number_of(of, "offset", 0), length = number_of(of, "length", needed);
  if (length != needed || offset > file.size() || needed > file.size() - offset)
    throw error(errc::invalid_model, "initializer '" + of.name + "' has " + std::to_string(needed) +
                                         " bytes, which are not in its file at " + std::to_string(offset));
  return {of.type, of.dims, nullptr, file.data() + offset};
}

/// Replaces initializers; one for each graph.
class replacer {
public:
  replacer(const named_tensors& values, const std::map<std::string, bytes>& files) : values_(values), files_(files) {}

  std::string graph(bytes rest) {
    std::string out;
    while (!rest.empty()) {
      const field f = next(rest);
      const std::optional<std::string> other =
          f.number == graph_initializer ? replacement(read_initializer(f.content)) : std::nullopt;
      if (other)
        append_field(out, graph_initializer, *other);
      else
        append(out, f.whole);
    }
    return out;
  }

  void check_used(const std::set<std::string>& spare) const {
    for (const auto& [name, value] : values_)
      if (!used_.contains(name) && !spare.contains(name))
        throw error(errc::invalid_argument, "the model has no initializer '" + name + "' to give a value to");
  }

private:
  std::optional<std::string> replacement(const initializer& of) {
    if (const auto value = values_.find(of.name); value != values_.end()) {
      if (value->second.type() != of.type || value->second.dims() != of.dims)
        throw error(errc::invalid_argument, "initializer '" + of.name + "' is " + std::string(to_string(of.type)) +
                                                " " + to_string(of.dims) + ", the value given for it " +
                                                std::string(to_string(value->second.type())) + " " +
                                                to_string(value->second.dims()));
      used_.insert(of.name);
      return make_pb(of.name, value->second);
    }
    const auto location = of.external.find("location");
    const auto file = location == of.external.end() ? files_.end() : files_.find(location->second);
    if (file == files_.end())
      return std::nullopt;
    return make_pb(of.name, part_of(of, file->second));
  }

  const named_tensors& values_;
  const std::map<std::string, bytes>& files_;
  std::set<std::string> used_;
};

} // namespace

std::string with_initializers(bytes model, const named_tensors& values, const std::set<std::string>& spare,
                              const std::map<std::string, bytes>& files) {
  replacer replace(values, files);
  std::string out;
  for (bytes rest = model; !rest.empty();) {
    const field f = next(rest);
    if (f.number == model_graph)
      append_field(out, model_graph, replace.graph(f.content));
    else
      append(out, f.whole);
  }
  replace.check_used(spare);
  return out;
}

std::set<std::string> external_files(bytes model, const named_tensors& values) {
  std::set<std::string> files;
  while (!model.empty()) {
    const field part = next(model);
    for (bytes graph = part.number == model_graph ? part.content : bytes(); !graph.empty();)
      if (const field f = next(graph); f.number == graph_initializer)
        if (const initializer of = read_initializer(f.content);
            of.external.contains("location") && !values.contains(of.name))
          files.insert(of.external.at("location"));
  }
  return files;
}

} // namespace troupe::ort
