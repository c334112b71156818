#include "support/sample_calls.hpp"

#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"
#include "support/peer_cases.hpp"
#include "support/places.hpp"
#include "tensor/convert.hpp"

#include <cstring>
#include <fstream>
#include <sstream>

namespace troupe::test {
namespace {

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);)
    parts.push_back(part);
  return parts;
}

std::vector<int64_t> integers_of(const std::string& list) {
  std::vector<int64_t> numbers;
  for (const std::string& part : parts_of(list, ','))
    numbers.push_back(std::stoll(part));
  return numbers;
}

dtype type_of(const std::string& name) {
  static const std::map<std::string, dtype> types{
      {"f32", dtype::float32}, {"f16", dtype::float16},  {"f64", dtype::float64},
      {"i8", dtype::int8},     {"u8", dtype::uint8},     {"i32", dtype::int32},
      {"i64", dtype::int64},   {"bool", dtype::boolean}, {"str", dtype::string}};
  return types.at(name);
}

/// TYPE[DIMS] or TYPE[DIMS]=ELEMENTS. Elements that are not stated are small and differ.
tensor operand_of(const std::string& text) {
  if (text == "-")
    return {};
  const size_t open = text.find('['), close = text.find(']');
  const dtype type = type_of(text.substr(0, open));
  const shape dims = integers_of(text.substr(open + 1, close - open - 1));
  tensor t(type, dims);
  if (type == dtype::string) {
    std::fill_n(t.mutable_data<std::string>(), t.size(), "ab");
    return t;
  }
  const auto stated = parts_of(close + 1 < text.size() ? text.substr(close + 2) : "", ',');
  std::vector<float> elements(static_cast<size_t>(t.size()));
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto step = static_cast<float>(i % 7);
    elements[i] = stated.empty() ? types::floats & set_of(type) ? step * 0.25f - 0.7f : step : std::stof(stated.at(i));
  }
  convert(tensor::of<float>(dims, elements).view(), t.mutable_ref());
  return t;
}

attribute attribute_of(const std::string& text) {
  if (text.front() == '\'')
    return text.substr(1, text.size() - 2);
  if (text.front() == '[')
    return integers_of(text.substr(1, text.size() - 2));
  if (text.find('.') != text.npos)
    return std::stof(text);
  return std::stoll(text);
}

sample_call call_of(const std::string& line) {
  sample_call c{.name = line};
  std::istringstream words(line);
  std::string op;
  words >> op;
  int64_t opset = 0;
  if (const size_t at = op.find('@'); at != op.npos)
    opset = std::stoll(op.substr(at + 1));
  if (const size_t star = op.find('*'); star != op.npos)
    c.outputs = std::stoull(op.substr(star + 1));
  op.resize(std::min(op.find('@'), std::min(op.find('*'), op.size())));
  const bool fused = op.starts_with("troupe.");
  const std::string domain = fused ? "troupe" : "", name = fused ? op.substr(7) : op;
  c.def = find_op(domain, name, opset ? opset : newest_opset(domain));
  INFO(line);
  REQUIRE(c.def != nullptr);
  for (std::string word; words >> word;)
    if (word == "-" || word.find('[') < word.find('='))
      c.inputs.push_back(operand_of(word));
    else
      c.attrs.set(word.substr(0, word.find('=')), attribute_of(word.substr(word.find('=') + 1)));
  return c;
}

void add_peers(const std::string& file, std::vector<sample_call>& calls) {
  for (const peer_case& peer : read_peer_cases(file)) {
    sample_call c{.name = peer.name, .def = find_op(peer.domain, peer.op, peer.version), .inputs = peer.inputs};
    if (!c.def)
      c.def = find_op(peer.domain, peer.op, newest_opset(peer.domain));
    INFO(peer.name);
    REQUIRE(c.def != nullptr);
    for (const auto& [name, value] : peer.attrs)
      c.attrs.set(name, value);
    c.outputs = peer.outputs.size();
    calls.push_back(std::move(c));
  }
}

} // namespace

std::vector<sample_call> read_sample_calls(bool peers) {
  std::ifstream in(test_data() + "/calls.txt");
  std::vector<sample_call> calls;
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with('#'))
      calls.push_back(call_of(line));
  REQUIRE(calls.size() > 100);
  if (peers)
    for (const char* file : {"contrib/cases.jsonl", "ml/cases.jsonl"})
      add_peers(file, calls);
  return calls;
}

graph graph_of(const sample_call& c, const std::vector<symbolic_shape>& dims) {
  graph_builder b;
  node n{.name = "call", .op_type = std::string(c.def->name), .domain = std::string(c.def->domain), .attrs = c.attrs};
  n.def = c.def;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const tensor& operand = c.inputs[i];
    const std::string name = fmt::format("x{}", i);
    if (!operand.defined())
      n.inputs.push_back(no_value);
    else if (is_constant(dims[i]) && (c.def->host_inputs >> i & 1) != 0)
      n.inputs.push_back(b.constant(name, operand));
    else
      n.inputs.push_back(b.input(name, dims[i], operand.type()));
  }
  for (size_t i = 0; i < c.outputs; ++i)
    b.output(n.outputs.emplace_back(b.g.add_value({.name = fmt::format("y{}", i)})));
  b.g.add_node(std::move(n));
  return b.g;
}

std::vector<symbolic_shape> dims_of(const sample_call& c) {
  std::vector<symbolic_shape> dims;
  for (const tensor& operand : c.inputs)
    dims.push_back(operand.defined() ? to_symbolic(operand.dims()) : symbolic_shape{});
  return dims;
}

tensor resized(const tensor& like, shape dims) {
  tensor t(like.type(), std::move(dims));
  if (like.type() == dtype::string) {
    std::fill_n(t.mutable_data<std::string>(), t.size(), "ab");
    return t;
  }
  for (int64_t i = 0; i < t.bytes(); ++i)
    t.mutable_data<char>()[i] = like.bytes() ? like.data<char>()[i % like.bytes()] : '\0';
  return t;
}

tensor retyped(const tensor& like, dtype type) {
  tensor t(type, like.dims());
  if (type == dtype::string)
    std::fill_n(t.mutable_data<std::string>(), t.size(), "ab");
  else if ((types::fixed_size & set_of(like.type())) && (types::fixed_size & set_of(type)))
    convert(like.view(), t.mutable_ref());
  else
    std::memset(t.mutable_data(), 1, static_cast<size_t>(t.bytes()));
  return t;
}

} // namespace troupe::test
