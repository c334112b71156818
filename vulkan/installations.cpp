#include "vulkan/installations.hpp"

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

std::shared_ptr<installed_program> find_program(installed_layout& layout, std::span<const launch_list> choices) {
  std::erase_if(layout.programs, [](const auto& p) { return p.expired(); });
  for (const auto& known : layout.programs)
    if (auto p = known.lock(); runs_on(p->program->choices, choices))
      return p;
  return nullptr;
}

} // namespace

std::shared_ptr<installed_layout> installations::layout_of(const bound_plan& bound, device_index self) {
  std::erase_if(layouts_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<installed_layout>& known = layouts_[bound.layout->id];
  std::shared_ptr<installed_layout> layout = known.lock();
  if (!layout)
    known = layout = std::make_shared<installed_layout>(
        installed_layout{dynamic_calls(*bound.layout, self), bound.layout->memory.at(self).arena_bytes, {}, {}});
  return layout;
}

void installations::add(bound_plan_ptr bound, device_index self, const install_tools& tools) {
  const std::shared_ptr<installed_layout> layout = layout_of(*bound, self);
  std::vector<launch_list> choices = layout->calls.choose(*bound, tools.alternative);
  std::shared_ptr<installed_program> program = find_program(*layout, choices);
  if (!program) {
    program = std::make_shared<installed_program>(
        installed_program{layout, make_program(*bound, self, layout->calls, choices, tools), {}});
    layout->programs.push_back(program);
  }
  auto binding = std::make_unique<installed_binding>();
  binding->parameters = program->program->parameters.fill(*bound, choices);
  binding->on = std::move(program);
  binding->bound = std::move(bound);
  const uint64_t id = binding->bound->id;
  bindings_[id] = std::move(binding);
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

program_slot& installations::slot_of(const installed_binding& binding, uint32_t index) {
  installed_program& program = *binding.on;
  std::unique_ptr<program_slot>& slot = entry_of(program.slots, index);
  const auto bytes = static_cast<int64_t>(binding.parameters.size());
  if (!slot) {
    auto made = std::make_unique<program_slot>();
    const layout_slot& shared = slot_of(*program.layout, index, program.program->scratch_bytes);
    made->memory.arena = &shared.arena;
    made->memory.scratch = shared.scratch;
    if (bytes > 0)
      made->memory.parameters = parameters_.allocate(bytes);
    slot = std::move(made);
  }
  if (slot->parameters_of != binding.bound->id && bytes > 0) {
    slot->parameters_of = 0; // nobody's, should the flush fail
    std::memcpy(slot->memory.parameters.mapped(), binding.parameters.data(), binding.parameters.size());
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
}

int64_t installations::arena_bytes() const {
  std::set<const installed_layout*> layouts;
  for (const auto& [id, binding] : bindings_)
    layouts.insert(binding->on->layout.get());
  int64_t sum = 0;
  for (const installed_layout* layout : layouts)
    sum += layout->arena_bytes *
           std::count_if(layout->slots.begin(), layout->slots.end(), [](const auto& slot) { return slot != nullptr; });
  return sum;
}

} // namespace troupe::vulkan
