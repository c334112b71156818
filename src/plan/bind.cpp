#include "base/checked.hpp"
#include "plan/bound_plan.hpp"
#include "plan/known_tensor.hpp"
#include "plan/memory.hpp"

#include <algorithm>
#include <atomic>

namespace troupe {
namespace {

/// No value may be larger: far above any device's memory, far below where sums overflow.
constexpr int64_t max_value_bytes = int64_t{1} << 47;

/// Results of the dim programs of one binding.
using slot_values = std::vector<std::vector<int64_t>>; // by segment

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
    p.dims[s].evaluate(symbols, all[s]);
  }
  return all;
}

/// Returns the bytes of `count` elements under the limit, -1 over it.
int64_t checked_bytes(dtype type, std::span<const int64_t> dims) {
  // Dims of 0 count as 1, so that strides are safe too.
  int64_t count = 1;
  for (int64_t d : dims)
    if (__builtin_mul_overflow(count, std::max<int64_t>(d, 1), &count) || count > max_value_bytes)
      return -1;
  const int64_t bytes = type == dtype::string ? count * int64_t{sizeof(std::string)} : bytes_of(type, count);
  const bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
  return bytes > max_value_bytes ? -1 : empty ? 0 : bytes;
}

/// Fills `b.dims` and returns the bytes of every value (0 where its dims are not known yet).
std::vector<int64_t> bind_shapes(bound_plan& b, const slot_values& slots) {
  const plan& p = *b.source;
  const size_t count = p.program->values.size();
  b.dims.resize(count);
  std::vector<int64_t> bytes(count, 0);
  for (size_t v = 0; v < count; ++v) {
    const value& info = p.program->values[v];
    if (p.segment_of_value[v] > b.segment || !info.dims)
      continue;
    const std::vector<int64_t>& values = slots[p.segment_of_value[v]];
    shape& dims = b.dims[v];
    dims.reserve(p.slots[v].dims.size());
    for (dim_program::slot slot : p.slots[v].dims)
      dims.push_back(values[slot]);
    if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }))
      fail(errc::invalid_input, "value '{}' would have the shape {}: a dim is negative", info.name, to_string(dims));
    bytes[v] = checked_bytes(info.type, dims);
    if (bytes[v] < 0)
      fail(errc::invalid_input, "value '{}' of shape {} would have more than 2^47 bytes", info.name, to_string(dims));
  }
  return bytes;
}

/// A view shares its root's bytes, so that no kernel would notice a Reshape to another volume: with symbolic dims only
/// binding can tell.
void check_views(const bound_plan& b) {
  const plan& p = *b.source;
  for (size_t v = 0; v < b.dims.size(); ++v) {
    const value_id root = p.storage[v];
    const value& view = p.program->values[v];
    const value& source = p.program->values[root];
    const bool bound = p.segment_of_value[v] <= b.segment && view.dims && source.dims;
    if (root != static_cast<value_id>(v) && bound && volume(b.dims[v]) != volume(b.dims[root]))
      fail(errc::invalid_input, "{}: '{}' of shape {} cannot become shape {}",
           describe(p.program->nodes[p.producer[v]]), source.name, to_string(b.dims[root]), to_string(b.dims[v]));
  }
}

void bind_known(bound_plan& b, const slot_values& slots) {
  const plan& p = *b.source;
  b.known.resize(p.program->values.size());
  std::vector<int64_t> elements;
  for (value_id v : p.known_values[b.segment]) {
    elements.clear();
    for (dim_program::slot slot : p.slots[v].known)
      elements.push_back(slots[p.segment_of_value[v]][slot]);
    b.known[v] = known_tensor(p.program->values[v], b.dims[v], elements);
  }
}

/// Bytes outside the arena by device: uploads, and roots of downloads, each once.
std::vector<int64_t> transfer_bytes(const bound_plan& b, std::span<const int64_t> bytes) {
  const plan& p = *b.source;
  std::vector<int64_t> sums(p.devices.size(), 0);
  std::vector<bool> counted(bytes.size(), false);
  for (chunk_id id = p.segment_begin[b.segment]; id < p.segment_begin[b.segment + 1]; ++id) {
    const chunk& c = p.chunks[id];
    if (!p.devices[c.device].host_memory)
      continue;
    for (value_id v : c.uploads)
      sums[c.device] = checked_add(sums[c.device], bytes[v]);
    for (value_id v : c.downloads) {
      const value_id root = root_on(p, c, v);
      const chunk* made_by = p.producer[root] < 0 ? nullptr : &p.chunks[p.chunk_of_node[p.producer[root]]];
      const bool own = made_by && made_by->device == c.device && made_by->segment == c.segment;
      if (own && !counted[root])
        sums[c.device] = checked_add(sums[c.device], bytes[root]);
      counted[root] = counted[root] || own;
    }
  }
  return sums;
}

void bind_memory(bound_plan& b, std::span<const int64_t> bytes) {
  const plan& p = *b.source;
  const std::vector<int64_t> transfers = transfer_bytes(b, bytes);
  b.memory.reserve(p.devices.size());
  for (size_t d = 0; d < p.devices.size(); ++d) {
    device_memory& memory =
        b.memory.emplace_back(lay_out(p.lifetimes[b.segment * p.devices.size() + d], b.dims, bytes));
    memory.transfer_bytes = transfers[d];
    const int64_t needed = checked_add(checked_add(memory.arena_bytes, memory.transfer_bytes), p.weight_bytes[d]);
    if (needed > p.devices[d].memory_bytes)
      fail(errc::out_of_memory,
           "device '{}': {} bytes needed (arena {}, weights {}, inputs and outputs {}), {} bytes allowed; use smaller "
           "dims or more devices",
           p.devices[d].name, needed, memory.arena_bytes, p.weight_bytes[d], memory.transfer_bytes,
           p.devices[d].memory_bytes);
  }
}

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

} // namespace

bound_plan_ptr bind_segment(std::shared_ptr<const plan> p, uint32_t segment, const bindings& values) {
  if (segment >= p->segment_count)
    fail(errc::invalid_argument, "segment {} does not exist; the plan has {}", segment, p->segment_count);
  auto b = std::make_shared<bound_plan>();
  b->id = next_id();
  b->source = std::move(p);
  b->segment = segment;
  const slot_values slots = evaluate_dims(*b->source, segment, values);
  const std::vector<int64_t> bytes = bind_shapes(*b, slots);
  check_views(*b);
  bind_known(*b, slots);
  bind_memory(*b, bytes);
  return b;
}

void bind_data_symbols(const plan& p, value_id v, const shape& dims, bindings& values) {
  for (const data_symbol& symbol : p.symbols)
    if (symbol.value == v) {
      expects(symbol.axis < dims.size(), "bind_data_symbols: the computed value has too few dims");
      values[symbol.name] = dims[symbol.axis];
    }
}

} // namespace troupe
