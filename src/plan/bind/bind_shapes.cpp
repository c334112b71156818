#include "plan/bind/bind_shapes.hpp"

#include "base/limits.hpp"
#include "graph/bodies.hpp"
#include "ops/node_origin.hpp"
#include "plan/bind/operand_checks.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// No value may be larger: far above any device's memory, far below where sums overflow.
constexpr int64_t max_value_bytes = int64_t{1} << 47;

/// Returns the bytes of `count` elements under the limit, -1 over it.
int64_t checked_bytes(dtype type, std::span<const int64_t> dims) {
  // Dims of 0 count as 1, so that strides are safe too.
  int64_t count = 1;
  for (int64_t d : dims)
    if (__builtin_mul_overflow(count, std::max<int64_t>(d, 1), &count) || count > max_value_bytes)
      return -1;
  const int64_t bytes = bytes_of(type, count);
  const bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
  return bytes > max_value_bytes ? -1 : empty ? 0 : bytes;
}

/// Throws what the first node says that cannot make its outputs' dims of these numbers, if there is one.
void blame_node(const plan& p, uint32_t segment, const bindings& values) {
  for (size_t n = 0; n < p.program->nodes.size(); ++n)
    if (p.chunks[p.chunk_of_node[n]].segment <= segment && !has_body(p.program->nodes[n]))
      infer_numbers(*p.program, p.program->nodes[n], values);
}

/// Returns e.g. "value 'y' (of Conv 'c1')".
std::string describe_value(const plan& p, value_id v) {
  const node_id maker = p.producer[v];
  return printable("value '" + p.program->values[v].name + "'") +
         (maker >= 0 ? " (of " + describe_origin(p.program->nodes[maker]) + ")" : "");
}

} // namespace

slot_values evaluate_dims(const plan& p, uint32_t segment, const bindings& values) {
  slot_values all(segment + 1);
  std::vector<int64_t> symbols;
  for (uint32_t s = 0; s <= segment; ++s) {
    symbols.clear();
    for (const std::string& name : p.dims[s].symbols()) {
      const auto it = values.find(name);
      if (it == values.end())
        fail(errc::invalid_input, "the dim '{}' is not bound to a value; give it one", name);
      symbols.push_back(it->second);
    }
    try {
      p.dims[s].evaluate(symbols, all[s]);
    } catch (const error& e) {
      try {
        blame_node(p, s, values);
      } catch (const error& named) {
        fail(e.code(), "{}", named.what());
      }
      throw;
    }
  }
  return all;
}

int64_t bind_shape(const plan& p, value_id v, const slot_values& slots, shape& dims) {
  const value& info = p.program->values[v];
  const std::vector<int64_t>& values = slots[p.segment_of_value[v]];
  dims.resize(p.slots[v].dims.size());
  std::transform(p.slots[v].dims.begin(), p.slots[v].dims.end(), dims.begin(),
                 [&](dim_program::slot slot) { return values[slot]; });
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }))
    fail(errc::invalid_input, "{} would have the shape {}: a dim is negative", describe_value(p, v), to_string(dims));
  if (is_sequence(info.type) && dims[0] > limits::max_sequence_length)
    fail(errc::unsupported, "sequence '{}' would have {} tensors; at most {} are supported", info.name, dims[0],
         limits::max_sequence_length);
  const int64_t bytes = checked_bytes(info.type, dims);
  if (bytes < 0)
    fail(errc::invalid_input, "{} of shape {} would have more than 2^47 bytes", describe_value(p, v), to_string(dims));
  return bytes;
}

void check_view(const plan& p, uint32_t segment, value_id v, std::span<const shape> dims) {
  const value_id root = p.storage[v];
  if (root == v || is_part(p, v) || !has_dims(p, segment, v) || !p.program->values[root].dims)
    return;
  if (volume(dims[v]) != volume(dims[root]))
    fail(errc::invalid_input, "{}: '{}' of shape {} cannot become shape {}", describe(p.program->nodes[p.producer[v]]),
         p.program->values[root].name, to_string(dims[root]), to_string(dims[v]));
}

} // namespace troupe
