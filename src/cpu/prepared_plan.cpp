#include "cpu/prepared_plan.hpp"

#include "base/parallel.hpp"
#include "cost/cost_model.hpp"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace troupe {
namespace {

class preparer {
public:
  preparer(prepared_plan& p, kernel_resources& resources)
      : p_(p), bound_(*p.bound), plan_(*bound_.source), program_(*plan_.program), resources_(resources),
        last_use_(program_.values.size(), -1) {}

  void prepare() {
    p_.fixed_address.assign(program_.values.size(), nullptr);
    for (size_t v = 0; v < bound_.known.size(); ++v)
      if (bound_.known[v].defined())
        p_.fixed_address[v] = const_cast<void*>(bound_.known[v].data());
    for (chunk_id id = 0; id < plan_.chunks.size(); ++id)
      if (const chunk& c = plan_.chunks[id]; c.device == p_.self && c.segment == bound_.segment)
        prepare_chunk(id, c);
    for (auto& [id, c] : p_.chunks)
      find_releases(id, c);
  }

private:
  void prepare_chunk(chunk_id id, const chunk& c) {
    prepared_chunk& out = p_.chunks[id];
    out.uploads = c.uploads;
    for (value_id v : c.uploads)
      use(v, id);
    for (node_id n : c.nodes)
      prepare_node(id, c, n, out);
    for (value_id v : c.downloads)
      prepare_download(id, c, v, out);
  }

  bool is_unsized(const chunk& c, value_id v) const { return plan_.segment_of_value[v] > c.segment; }

  operand operand_of(const chunk& c, value_id v) const {
    if (v == no_value)
      return {};
    const value& info = program_.values[v];
    operand o{.type = info.type, .layout = info.layout, .constant = info.constant};
    o.unsized = is_unsized(c, v);
    if (!o.unsized)
      o.dims = info.constant ? info.constant->dims : bound_.dims[v];
    o.known = bound_.known[v];
    return o;
  }

  /// Views need no work: their output's bytes are their input's.
  bool is_free(const chunk& c, const node& n) const {
    if (n.def->alias != aliasing::view || n.outputs.at(0) == no_value || is_unsized(c, n.outputs[0]))
      return false;
    return plan_.storage[n.outputs[0]] != n.outputs[0];
  }

  /// A call whose outputs have no element computes nothing, however large their other dims are; that of a sequence is
  /// its length.
  static bool makes_nothing(const kernel_request& r) {
    return std::all_of(r.outputs.begin(), r.outputs.end(), [](const operand& o) {
      return !o.present() || (!o.unsized && !is_container(o.type) && volume(o.dims) == 0);
    });
  }

  /// Whether one thread does a call's work within microseconds. oneDNN starts all threads for whatever it is asked;
  /// `parallel_for` knows itself.
  static bool is_small(const node& n, const kernel_request& r) {
    constexpr double few_flops = 2e5, few_bytes = 3e4;
    call_shapes call;
    for (const operand& o : r.inputs) {
      call.input_types.push_back(o.type);
      call.inputs.push_back(o.dims);
    }
    for (const operand& o : r.outputs) {
      call.output_types.push_back(o.type);
      call.outputs.push_back(o.dims);
    }
    const node_work work = work_of(n, call);
    return work.flops <= few_flops && work.bytes <= few_bytes;
  }

  void prepare_node(chunk_id id, const chunk& c, node_id index, prepared_chunk& out) {
    const node& n = program_.nodes[index];
    if (is_free(c, n))
      return;
    kernel_request request{n, {}, {}, resources_};
    for (value_id v : n.inputs)
      request.inputs.push_back(operand_of(c, v));
    for (value_id v : n.outputs)
      request.outputs.push_back(operand_of(c, v));
    if (makes_nothing(request)) {
      for (value_id v : n.outputs)
        if (v != no_value)
          define(c, v, id, out);
      return;
    }
    const bool small = is_small(n, request);
    const thread_limit alone(small ? 1 : 0); // oneDNN asks for the threads it will use
    chosen_kernel chosen = choose_kernel(request);
    prepared_step step{.run = std::move(chosen.run), .kernel_name = chosen.name, .call = index};
    step.first_operand = static_cast<uint32_t>(out.operands.size());
    step.inputs = static_cast<uint32_t>(n.inputs.size());
    step.outputs = static_cast<uint32_t>(n.outputs.size());
    step.is_small = small && chosen.name.starts_with("dnnl"); // rules of oneDNN's primitives have such names
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const bool reads = n.inputs[i] != no_value && step.run->reads(i);
      out.operands.push_back(reads ? use(root_on(plan_, c, n.inputs[i]), id) : no_value);
    }
    for (value_id v : n.outputs)
      out.operands.push_back(v == no_value ? no_value : define(c, v, id, out));
    p_.max_operands = std::max<size_t>(p_.max_operands, step.inputs + step.outputs);
    out.steps.push_back(std::move(step));
  }

  /// Notes that chunk `id` reads `root`, and resolves it where it is a constant.
  value_id use(value_id root, chunk_id id) {
    last_use_[root] = std::max<int64_t>(last_use_[root], id);
    const weight_ptr& constant = program_.values[root].constant;
    if (constant && !p_.weights.contains(root)) {
      const weight_cache::handle h = p_.weights[root] = resources_.weights.get(constant);
      p_.fixed_address[root] = const_cast<void*>(h->data());
    }
    return root;
  }

  value_id define(const chunk& c, value_id v, chunk_id id, prepared_chunk& out) {
    last_use_[v] = id;
    const bool in_arena = bound_.layout->memory[p_.self].offset[v] >= 0;
    if (!in_arena && !is_unsized(c, v))
      out.fresh.push_back({v, program_.values[v].type, bound_.dims[v]});
    return v;
  }

  void prepare_download(chunk_id id, const chunk& c, value_id v, prepared_chunk& out) {
    const value_id root = use(root_on(plan_, c, v), id);
    const bool is_unsized = plan_.segment_of_value[v] > c.segment;
    out.downloads.push_back({v, program_.values[v].type, is_unsized ? shape{} : bound_.dims[v]});
    out.download_roots.push_back(root);
  }

  /// Tensors of their own end with the last chunk of this device that reads them.
  void find_releases(chunk_id id, prepared_chunk& c) {
    for (size_t v = 0; v < last_use_.size(); ++v)
      if (last_use_[v] == id && !program_.values[v].constant)
        c.release.push_back(static_cast<value_id>(v));
    std::erase_if(c.release, [&](value_id v) {
      return p_.fixed_address[v] != nullptr || bound_.layout->memory[p_.self].offset[v] >= 0;
    });
  }

  prepared_plan& p_;
  const bound_plan& bound_;
  const plan& plan_;
  const graph& program_;
  kernel_resources& resources_;
  std::vector<int64_t> last_use_; // by value: the last chunk of this device that touches it
};

std::shared_ptr<void> allocate_arena(int64_t bytes, bool poison) {
  // Whole huge pages if the system gives them: arenas are reused for as long as the plan lives.
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    fail(errc::out_of_memory, "host memory: an arena of {} bytes cannot be allocated", bytes);
  madvise(data, size, MADV_HUGEPAGE);
  if (poison)
    std::memset(data, 0xff, size);
  return {data, [size](void* p) { munmap(p, size); }};
}

} // namespace

std::unique_ptr<prepared_plan> prepare_plan(bound_plan_ptr bound, device_index self, kernel_resources& resources) {
  auto p = std::make_unique<prepared_plan>();
  p->bound = std::move(bound);
  p->self = self;
  preparer(*p, resources).prepare();
  return p;
}

arena_slot& slot_of(prepared_plan& p, uint32_t index, bool poison) {
  if (index >= p.slots.size())
    p.slots.resize(index + 1);
  if (!p.slots[index]) {
    const device_memory& memory = p.bound->layout->memory[p.self];
    p.arenas->resize(std::max<size_t>(p.arenas->size(), index + 1));
    std::shared_ptr<void>& arena = (*p.arenas)[index];
    if (!arena)
      arena = allocate_arena(memory.arena_bytes, poison);
    auto slot = std::make_unique<arena_slot>();
    slot->arena = arena;
    slot->address = p.fixed_address;
    for (const auto& [v, offset] : memory.offset)
      slot->address[v] = static_cast<std::byte*>(slot->arena.get()) + offset;
    p.slots[index] = std::move(slot);
  }
  return *p.slots[index];
}

} // namespace troupe
