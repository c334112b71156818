// Runs as execution traces of Chakra (Sridharan et al., "Chakra: advancing performance benchmarking and co-design using
// standardized execution traces", 2023; https://github.com/mlcommons/chakra), which ASTRA-sim plays: a file for each
// device, of messages of Protocol Buffers (https://protobuf.dev/programming-guides/encoding), each after its length.
// The first is about the trace, the others are nodes. The few fields that are used are written here, by their numbers.
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

/// A message as it is encoded.
class proto_text {
public:
  proto_text& add(uint8_t field, uint64_t value) {
    put(uint64_t{field} << 3);
    put(value);
    return *this;
  }
  proto_text& add(uint8_t field, std::string_view bytes) {
    put(uint64_t{field} << 3 | 2);
    put(bytes.size());
    bytes_ += bytes;
    return *this;
  }
  proto_text& put(uint64_t value) {
    for (; value > 0x7f; value >>= 7)
      bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

private:
  std::string bytes_;
};

/// The trace of one device.
class device_trace {
public:
  device_trace() { append(proto_text().add(1, schema_version)); }

  /// Adds a node; returns its number.
  uint64_t add(node_type type, std::string_view name, const std::vector<uint64_t>& waits_for, const proto_text& more) {
    proto_text packed;
    for (const uint64_t id : waits_for)
      packed.put(id);
    proto_text node;
    node.add(id_field, count_).add(name_field, name).add(type_field, static_cast<uint64_t>(type));
    if (!waits_for.empty())
      node.add(data_deps_field, packed.bytes());
    append(node, more);
    return count_++;
  }
  std::string take() { return std::move(text_); }

private:
  void append(const proto_text& message, const proto_text& more = {}) {
    text_ += proto_text().put(message.bytes().size() + more.bytes().size()).bytes();
    text_ += message.bytes();
    text_ += more.bytes();
  }

  std::string text_;
  uint64_t count_ = 0;
};

void add_attribute(proto_text& to, std::string_view name, value_field kind, uint64_t value) {
  to.add(attribute_field, proto_text().add(1, name).add(kind, value).bytes());
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
    proto_text more;
    const auto micros = [](int64_t ns) { return static_cast<uint64_t>(std::llround(static_cast<double>(ns) * 1e-3)); };
    more.add(start_field, micros(n.begin_ns - trace_.begin_ns)).add(duration_field, micros(n.end_ns - n.begin_ns));
    add_attribute(more, "is_cpu_op", bool_value, 0);
    int64_t bytes = 0;
    for (const std::vector<value_id>* values : {&planned(n).inputs, &planned(n).outputs})
      for (const value_id v : *values)
        bytes += std::max<int64_t>(ran_bytes(trace_, n.segment, v), 0);
    add_attribute(more, "tensor_size", uint64_value, static_cast<uint64_t>(bytes));
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
    proto_text more;
    add_attribute(more, "is_cpu_op", bool_value, 0);
    add_attribute(more, "comm_src", int32_value, maker.device);
    add_attribute(more, "comm_dst", int32_value, to);
    add_attribute(more, "comm_tag", int32_value, tag);
    add_attribute(more, "comm_size", int64_value,
                  static_cast<uint64_t>(std::max<int64_t>(ran_bytes(trace_, maker.segment, v), 0)));
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
