#include "vulkan/installations.hpp"

#include "vulkan/cache_rows.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace troupe::vulkan {
namespace {

/// Returns an element of a vector of pointers that grows when asked for more; null if it is not made yet.
template <class T>
std::unique_ptr<T>& entry_of(std::vector<std::unique_ptr<T>>& all, uint32_t index) {
  if (index >= all.size())
    all.resize(index + 1);
  return all[index];
}

bool is_done(const std::shared_ptr<const kernel_batch>& batch) {
  return batch && batch->is_done();
}

std::shared_ptr<installed_program> find_program(installed_layout::way& way, std::span<const launch_list> choices) {
  std::erase_if(way.programs, [](const auto& p) { return p.expired(); });
  for (const auto& known : way.programs)
    if (auto p = known.lock(); !is_done(p->better) && runs_on(p->program->choices, choices))
      return p;
  return nullptr;
}

bool is_in_flight(const installed_program& p) {
  return std::ranges::any_of(p.slots, [](const auto& slot) { return slot && slot->in_flight > 0; });
}

/// Appends of the plan that device `self` may do in place.
std::vector<cache_append> appends_of(const arena_layout& layout, device_index self) {
  const plan& p = *layout.source;
  std::vector<cache_append> all = find_cache_appends(p);
  std::erase_if(all, [&](const cache_append& a) {
    return p.chunks[a.chunk].device != self || p.chunks[a.chunk].segment != layout.segment;
  });
  return all;
}

/// Returns memory of `bytes` zeros.
allocation make_zeros(memory_pool& mapped, int64_t bytes) {
  if (bytes == 0)
    return {};
  allocation made = mapped.allocate(bytes);
  std::memset(made.mapped(), 0, static_cast<size_t>(bytes));
  made.flush(0, bytes);
  return made;
}

constexpr size_t line = 64; // bytes that go over the bus at once

/// Compares lines in place: there are hundreds in a step of a decoder, and a call takes longer than to look.
bool same_line(const std::byte* a, const std::byte* b) {
  std::array<uint64_t, line / sizeof(uint64_t)> left, right;
  std::memcpy(left.data(), a, line);
  std::memcpy(right.data(), b, line);
  return left == right;
}

/// Makes `mapped`, which holds `written`, hold `wanted`, and `written` too. It may be memory of the GPU's, far away, of
/// which bindings of a layout want other bytes in few places: a decoder's step differs from the last one in a word or
/// two a kernel.
void write_changes(std::span<const std::byte> wanted, std::vector<std::byte>& written, std::byte* mapped) {
  if (written.size() != wanted.size()) {
    written.assign(wanted.begin(), wanted.end());
    std::memcpy(mapped, wanted.data(), wanted.size());
    return;
  }
  static_assert(param_block_bytes % line == 0); // of which a parameter table is a multiple
  for (size_t at = 0; at < wanted.size(); at += line) {
    if (same_line(&written[at], &wanted[at]))
      continue;
    std::memcpy(&written[at], &wanted[at], line);
    std::memcpy(mapped + at, &wanted[at], line);
  }
}

} // namespace

std::shared_ptr<installed_layout> installations::layout_of(const bound_plan& bound, device_index self) {
  std::erase_if(layouts_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<installed_layout>& known = layouts_[bound.layout->id];
  std::shared_ptr<installed_layout> layout = known.lock();
  if (!layout) {
    layout = std::make_shared<installed_layout>();
    if (most_cache_bytes_ > 0)
      layout->appends = appends_of(*bound.layout, self);
    layout->arena_bytes = bound.layout->memory.at(self).arena_bytes;
    known = layout;
  }
  return layout;
}

std::vector<cache_room> installations::rooms_of(const bound_plan& bound, const installed_layout& layout) const {
  std::vector<cache_room> rooms;
  for (const cache_append& a : layout.appends) {
    const shape& dims = bound.dims[a.present];
    const int64_t room = room_for(bound, a);
    const dtype type = bound.source->program->values[a.present].type;
    if (volume(dims) == 0 || room * position_bytes(type, dims) > most_cache_bytes_)
      return {};
    rooms.push_back({dims[2], room});
  }
  return rooms;
}

void installations::add(bound_plan_ptr bound, device_index self, const install_tools& tools) {
  auto binding = std::make_unique<installed_binding>();
  binding->layout = layout_of(*bound, self);
  binding->rooms = rooms_of(*bound, *binding->layout);
  binding->self = self;
  binding->bound = std::move(bound);
  make_way(*binding, binding->layout->appends.empty() ? cache_way::copied : last_, tools);
  const uint64_t id = binding->bound->id;
  bindings_[id] = std::move(binding);
}

void installations::make_way(installed_binding& binding, cache_way how, const install_tools& tools) {
  installed_layout& layout = *binding.layout;
  const bound_plan& bound = *binding.bound;
  auto& shared = layout.ways.at(static_cast<size_t>(how));
  if (!shared)
    shared =
        installed_layout::way{dynamic_calls(*bound.layout, binding.self,
                                            how == cache_way::in_place ? layout.appends : std::vector<cache_append>()),
                              {}};
  const constant_words constants = tools.kernels.dynamic_constants();
  std::vector<missed_way> missed;
  std::vector<launch_list> choices = shared->calls.choose(bound, tools.kernels.selection_for(constants, missed));
  std::shared_ptr<installed_program> program = find_program(*shared, choices);
  if (!program) {
    program = std::make_shared<installed_program>(
        installed_program{binding.layout, make_program(bound, binding.self, shared->calls, choices, tools), {}, {}});
    program->better = tools.kernels.compiled.prepare_later(std::move(program->program->better));
    shared->programs.push_back(program);
  }
  std::vector<wanted_kernel> wanted;
  kernel_source::want(missed, constants, wanted);
  std::vector<std::byte> parameters = program->program->parameters.fill(bound, choices);
  installed_binding::way& way = binding.ways.at(static_cast<size_t>(how));
  if (way.on && way.on != program)
    replaced_.push_back(std::move(way.on));
  way = {std::move(program), std::move(parameters), tools.kernels.compiled.prepare_later(std::move(wanted))};
}

bool installations::is_outdated(const installed_binding& binding, cache_way how) {
  const installed_binding::way& way = binding.ways.at(static_cast<size_t>(how));
  return is_done(way.better) || is_done(way.on->better);
}

void installations::improve_way(installed_binding& binding, cache_way how, const install_tools& tools) {
  installed_binding::way& way = binding.ways.at(static_cast<size_t>(how));
  try {
    make_way(binding, how, tools);
  } catch (const error&) { // what it has serves as well
    way.better = nullptr;
    way.on->better = nullptr;
  }
}

installed_binding& installations::find(uint64_t bound_plan) {
  const auto found = bindings_.find(bound_plan);
  expects(found != bindings_.end(), "the GPU was sent a chunk of a plan that is not installed");
  return *found->second;
}

layout_slot& installations::slot_of(installed_layout& layout, uint32_t index, int64_t scratch_bytes) {
  std::unique_ptr<layout_slot>& slot = entry_of(layout.slots, index);
  if (!slot) {
    auto made = std::make_unique<layout_slot>();
    if (layout.arena_bytes > 0)
      made->arena = arenas_.allocate(layout.arena_bytes);
    slot = std::move(made); // whole, or not there: memory may be refused
  }
  if (scratch_bytes > (slot->scratch ? slot->scratch->bytes() : 0))
    slot->scratch = std::make_shared<const allocation>(arenas_.allocate(scratch_bytes));
  return *slot;
}

program_slot& installations::slot_of(const installed_binding& binding, cache_way how, uint32_t index) {
  const installed_binding::way& way = binding.ways.at(static_cast<size_t>(how));
  if (!binding.layout->appends.empty())
    last_ = how;
  installed_program& program = *way.on;
  std::unique_ptr<program_slot>& slot = entry_of(program.slots, index);
  const auto bytes = static_cast<int64_t>(way.parameters.size());
  if (!slot) {
    auto made = std::make_unique<program_slot>();
    layout_slot& shared = slot_of(*program.layout, index, program.program->scratch_bytes);
    made->last = &shared.last;
    made->memory.arena = &shared.arena;
    made->memory.scratch = shared.scratch;
    if (bytes > 0)
      made->memory.parameters = parameters_.allocate(bytes);
    made->memory.counters = make_zeros(parameters_, program.program->counter_bytes);
    slot = std::move(made);
  }
  if (slot->parameters_of != binding.bound->id && bytes > 0) {
    slot->parameters_of = 0; // of no plan, should the flush fail
    write_changes(way.parameters, slot->written, slot->memory.parameters.mapped());
    slot->memory.parameters.flush(0, bytes);
  }
  slot->parameters_of = binding.bound->id;
  return *slot;
}

void installations::retire(uint64_t bound_plan) {
  if (auto found = bindings_.extract(bound_plan))
    retired_.push_back(std::move(found.mapped()));
  forget_retired();
}

void installations::forget_retired() {
  std::erase_if(retired_, [](const auto& binding) { return binding->in_flight == 0; });
  std::erase_if(replaced_, [](const auto& program) { return !is_in_flight(*program); });
}

int64_t installations::arena_bytes() const {
  std::set<const installed_layout*> layouts;
  for (const auto& [id, binding] : bindings_)
    layouts.insert(binding->layout.get());
  int64_t sum = 0;
  for (const installed_layout* layout : layouts)
    sum += layout->arena_bytes *
           std::count_if(layout->slots.begin(), layout->slots.end(), [](const auto& slot) { return slot != nullptr; });
  return sum;
}

} // namespace troupe::vulkan
