// Runs as execution traces of Chakra (Sridharan et al., "Chakra: advancing performance benchmarking and co-design using
// standardized execution traces", 2023; https://github.com/mlcommons/chakra), which ASTRA-sim plays: a file for each
// device, of messages of Protocol Buffers (https://protobuf.dev/programming-guides/encoding), each after its length.
// The first is about the trace, the others are nodes. The few fields that are used are written here, by their numbers.
#include "loader/wire_writer.hpp"
#include "trace/ran_nodes.hpp"
#include "troupe/inspect.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace troupe {
namespace {

constexpr const char* schema_version = "1.0.0";

enum class node_type : uint8_t { compute = 4, send = 5, receive = 6 };

enum node_field : uint8_t {
  id_field = 1,
  name_field = 2,
  type_field = 3,
  data_deps_field = 5,
  start_field = 6,
  duration_field = 7,
  attribute_field = 10,
};

/// Of the values that an attribute may have: what readers of Chakra look for.
enum value_field : uint8_t { int32_value = 7, int64_value = 9, uint64_value = 13, bool_value = 27 };

/// The trace of one device.
class device_trace {
public:
  device_trace() { append(text_field(1, schema_version)); }

  /// Adds a node; `more` are its other fields. Returns its number.
  uint64_t add(node_type type, std::string_view name, const std::vector<uint64_t>& waits_for, std::string_view more) {
    std::string node = number_field(id_field, static_cast<int64_t>(count_)) + text_field(name_field, name) +
                       number_field(type_field, static_cast<int64_t>(type));
    std::string packed;
    for (const uint64_t id : waits_for)
      put_varint(packed, id);
    if (!packed.empty())
      node += text_field(data_deps_field, packed);
    append(node.append(more));
    return count_++;
  }
  std::string take() { return std::move(text_); }

private:
  void append(std::string_view message) {
    put_varint(text_, message.size());
    text_ += message;
  }

  std::string text_;
  uint64_t count_ = 0;
};

std::string attribute(std::string_view name, value_field kind, int64_t value) {
  return text_field(attribute_field, text_field(1, name) + number_field(kind, value));
}

class chakra_writer {
public:
  explicit chakra_writer(const run_trace& trace)
      : trace_(trace), nodes_(ran_nodes_of(trace)), ids_(nodes_.size()), files_(trace.source->devices.size()) {
    for (const ran_node& n : nodes_)
      for (const ran_read& r : n.reads)
        if (nodes_[r.from].device != n.device)
          moves_.try_emplace({r.from, n.device, r.value}, moves_.size());
  }

  std::vector<std::string> write() {
    for (size_t i = 0; i < nodes_.size(); ++i)
      add(i);
    std::vector<std::string> texts;
    texts.reserve(files_.size());
    for (device_trace& f : files_)
      texts.push_back(f.take());
    return texts;
  }

private:
  /// Values that go from node to device; the number is their tag.
  using move_key = std::tuple<size_t, device_index, value_id>;

  void add(size_t i) {
    const ran_node& n = nodes_[i];
    std::vector<uint64_t> waits_for;
    for (const ran_read& r : n.reads)
      waits_for.push_back(nodes_[r.from].device == n.device ? ids_[r.from] : received(r, n.device));
    const auto micros = [](int64_t ns) { return std::llround(static_cast<double>(ns) * 1e-3); };
    int64_t bytes = 0;
    for (const std::vector<value_id>* values : {&planned(n).inputs, &planned(n).outputs})
      for (const value_id v : *values)
        bytes += std::max<int64_t>(ran_bytes(trace_, n.segment, v), 0);
    const std::string more = number_field(start_field, micros(n.begin_ns - trace_.begin_ns)) +
                             number_field(duration_field, micros(n.end_ns - n.begin_ns)) +
                             attribute("is_cpu_op", bool_value, 0) + attribute("tensor_size", uint64_value, bytes);
    ids_[i] = files_[n.device].add(node_type::compute, ran_name(trace_, n.node), waits_for, more);
    for (auto move = moves_.lower_bound({i, 0, 0}); move != moves_.end() && std::get<0>(move->first) == i; ++move)
      add_move(node_type::send, move->first, move->second, n.device, {ids_[i]});
  }

  /// Returns the node that receives a value, which is added when the first one needs it.
  uint64_t received(const ran_read& r, device_index device) {
    const move_key key{r.from, device, r.value};
    const auto [found, is_new] = received_.try_emplace(key);
    if (is_new)
      found->second = add_move(node_type::receive, key, moves_.at(key), device, {});
    return found->second;
  }

  uint64_t add_move(node_type type, const move_key& key, uint64_t tag, device_index on,
                    const std::vector<uint64_t>& waits_for) {
    const auto& [from, to, v] = key;
    const ran_node& maker = nodes_[from];
    const std::string more =
        attribute("is_cpu_op", bool_value, 0) + attribute("comm_src", int32_value, maker.device) +
        attribute("comm_dst", int32_value, to) + attribute("comm_tag", int32_value, static_cast<int64_t>(tag)) +
        attribute("comm_size", int64_value, std::max<int64_t>(ran_bytes(trace_, maker.segment, v), 0));
    const std::string name = fmt::format("{} {}", type == node_type::send ? "send" : "receive",
                                         trace_.source->program->values[static_cast<size_t>(v)].name);
    return files_[on].add(type, name, waits_for, more);
  }

  const node& planned(const ran_node& n) const { return trace_.source->program->nodes[static_cast<size_t>(n.node)]; }

  const run_trace& trace_;
  const std::vector<ran_node> nodes_;
  std::vector<uint64_t> ids_; // by node, in its device's trace
  std::vector<device_trace> files_;
  std::map<move_key, uint64_t> moves_, received_;
};

} // namespace

std::vector<std::string> to_chakra(const run_trace& trace) {
  return chakra_writer(trace).write();
}

} // namespace troupe
