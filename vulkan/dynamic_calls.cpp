#include "vulkan/dynamic_calls.hpp"

#include "base/hash.hpp"
#include "base/round_up.hpp"
#include "launch/launch_table.hpp"
#include "launch/movement.hpp"
#include "ops/op.hpp"
#include "plan/bind/layout_buckets.hpp"
#include "plan/cut/joined_parts.hpp"
#include "vulkan/cache_rows.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::vulkan {
namespace {

/// Scratch bytes for bindings that need more than the first one; as wide as layouts are (`wide_capacity`) as long as
/// they are few.
int64_t scratch_room(int64_t bytes) {
  constexpr int64_t few = int64_t{4} << 20;
  return wide_capacity(bytes, few);
}

/// Group counts are this far apart; vkCmdDispatchIndirect reads the first three words.
constexpr int64_t groups_stride = 16;
constexpr int64_t known_alignment = 256;

/// Marks bindings that cover their operand or scratch buffer.
void mark_whole(launch_list& list, const gpu_call& call) {
  const auto size_of = [&](const launch_binding& b) -> int64_t {
    switch (b.from) {
      case launch_binding::source::input: return call.inputs.at(b.index).bytes();
      case launch_binding::source::output: return call.outputs.at(b.index).stored_bytes();
      case launch_binding::source::scratch: return list.scratch.at(b.index);
      case launch_binding::source::counters: return list.counters;
      case launch_binding::source::packed: break;
    }
    return whole_operand; // packed weights are the same in all bindings
  };
  for (launch& l : list.launches)
    for (launch_binding& b : l.bindings)
      if (b.offset == 0 && b.bytes == size_of(b))
        b.bytes = whole_operand;
}

bool same_part(const launch_binding& a, const launch_binding& b) {
  return a.from == b.from && a.index == b.index && a.offset == b.offset && a.bytes == b.bytes;
}

bool same_kernel(const launch& a, const launch& b) {
  return a.shader == b.shader && a.constants == b.constants && a.step == b.step && a.fixed_groups == b.fixed_groups &&
         (!a.fixed_groups || a.groups == b.groups) &&
         std::equal(a.params.begin(), a.params.begin() + a.fixed_words, b.params.begin(),
                    b.params.begin() + b.fixed_words) &&
         std::equal(a.bindings.begin(), a.bindings.end(), b.bindings.begin(), b.bindings.end(), same_part);
}

bool can_run(const launch_list& recorded, const launch_list& wanted) {
  return recorded.name == wanted.name && recorded.counters >= wanted.counters &&
         std::ranges::equal(recorded.packed, wanted.packed, {}, &weight::key, &weight::key) &&
         std::equal(recorded.launches.begin(), recorded.launches.end(), wanted.launches.begin(), wanted.launches.end(),
                    same_kernel) &&
         std::equal(recorded.scratch.begin(), recorded.scratch.end(), wanted.scratch.begin(), wanted.scratch.end(),
                    std::greater_equal<>());
}

/// Adds an attribute's value; false for those that are not compared.
bool add_attribute(hasher& h, const attribute& value) {
  h.add(value.index());
  const auto add = [&](const auto& v) {
    using T = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<T, tensor> || std::is_same_v<T, std::shared_ptr<const graph>>)
      return false;
    else if constexpr (std::is_same_v<T, std::vector<std::string>>)
      for (const std::string& text : v)
        h.add(text);
    else if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<float>>)
      h.add_bytes(v.data(), v.size() * sizeof(v[0]));
    else
      h.add(v);
    return true;
  };
  return std::visit(add, value);
}

void add_slots(hasher& h, std::span<const dim_program::slot> slots) {
  h.add(slots.size());
  h.add_bytes(slots.data(), slots.size_bytes());
}

/// What decides a node's launches in every binding.
hash128 key_of(const plan& p, node_id id, const append_values& rows_first) {
  const node& n = p.program->nodes[id];
  hasher h;
  h.add(reinterpret_cast<uintptr_t>(n.def));
  for (const auto& [name, value] : n.attrs.all()) {
    h.add(name);
    if (!add_attribute(h, value))
      h.add(id); // a class of its own
  }
  for (const auto* operands : {&n.inputs, &n.outputs}) {
    h.add(operands->size());
    for (value_id v : *operands) {
      h.add(v == no_value);
      if (v == no_value)
        continue;
      const value& info = p.program->values[v];
      h.add(info.type);
      h.add(info.layout);
      h.add(rows_first.contains(v));
      h.add(p.segment_of_value[v]);
      add_slots(h, p.slots[v].dims);
      add_slots(h, p.slots[v].known);
      const row_part part = part_of(p, v, 0);
      h.add(part.pitch);
      h.add(part.first);
      const bool is_read = info.constant && volume(info.constant->dims) <= max_read_elements;
      h.add(is_read ? info.constant->key : hash128{});
    }
  }
  return h.digest();
}

/// Returns the fastest way, by prediction, whose kernels are there; nullopt if there is none.
std::optional<launch_list> find_ready(const op_def& def, const gpu_call& call, const kernel_selection& how) {
  gpu_call widened = call;
  widened.ways = way_range::every;
  widened.tiles = how.tiles;
  launch_lists lists = launches_of(def, widened);
  std::erase_if(lists, [&](const launch_list& l) { return !how.is_ready(l); });
  const auto best = std::ranges::min_element(lists, {}, &launch_list::time);
  return best == lists.end() ? std::nullopt : std::optional(std::move(*best));
}

} // namespace

launch_list choose_kernel(const bound_plan& bound, const node& n, const device_info& device,
                          const kernel_selection& how, const append_values& rows_first) {
  gpu_call usual = make_gpu_call(bound, n, *device.gpu);
  attributes attrs = n.attrs;
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (rows_first.contains(n.inputs[i])) {
      shape& dims = usual.inputs[i].dims;
      std::rotate(dims.begin(), dims.begin() + 2, dims.begin() + 3);
      attrs.set("past_layout", std::string("sbhd"));
    }
  const gpu_call call{attrs, std::move(usual.inputs), std::move(usual.outputs), *device.gpu};
  launch_lists lists;
  try {
    lists = launches_of(*n.def, call);
  } catch (const error& e) { // dims that the call's rules compare
    fail(e.code(), "{}: {}", describe(n), e.what());
  }
  if (lists.empty())
    fail(errc::unsupported, "{}: {} has no kernel for these dims; place it on the CPU, or use smaller dims",
         describe(n), device.description);
  std::optional<launch_list> measured = how.measured ? how.measured->find(*n.def, call, lists) : std::nullopt;
  launch_list& chosen = measured ? *measured : lists[std::min<size_t>(how.alternative, lists.size() - 1)];
  if (how.is_ready && !how.is_ready(chosen))
    if (std::optional<launch_list> ready = find_ready(*n.def, call, how)) {
      const double gain = std::max(0.0, ready->time - chosen.time);
      std::swap(chosen, *ready);
      if (how.missed)
        how.missed->push_back({std::move(*ready), gain});
    }
  mark_whole(chosen, call);
  return std::move(chosen);
}

void add_scratch_room(std::span<launch_list> choices) {
  for (launch_list& list : choices) {
    list.counters = scratch_room(list.counters);
    std::transform(list.scratch.begin(), list.scratch.end(), list.scratch.begin(), scratch_room);
  }
}

bool runs_on(std::span<const launch_list> recorded, std::span<const launch_list> wanted) {
  return std::equal(recorded.begin(), recorded.end(), wanted.begin(), wanted.end(), can_run);
}

dynamic_calls::dynamic_calls(const arena_layout& layout, device_index self, std::vector<cache_append> appends)
    : self_(self), appends_(std::move(appends)), class_of_(layout.source->program->nodes.size(), none) {
  const plan& p = *layout.source;
  for (size_t i = 0; i < appends_.size(); ++i) {
    is_append_.insert({appends_[i].node, appends_[i].widening});
    rows_first_[appends_[i].past] = i;
    made_[appends_[i].present] = i;
  }
  const auto varies = [&](value_id v) { return v != no_value && layout.varies[v]; };
  std::unordered_map<hash128, uint32_t> classes;
  for (chunk_id c = p.segment_begin[layout.segment]; c < p.segment_begin[layout.segment + 1]; ++c) {
    if (p.chunks[c].device != self)
      continue;
    for (node_id id : p.chunks[c].nodes) {
      const node& n = p.program->nodes[id];
      if (launches_nothing(p, n) || is_append(id) ||
          (std::none_of(n.inputs.begin(), n.inputs.end(), varies) &&
           std::none_of(n.outputs.begin(), n.outputs.end(), varies)))
        continue;
      const auto [at, is_new] = classes.try_emplace(key_of(p, id, rows_first_), static_cast<uint32_t>(first_.size()));
      if (is_new)
        first_.push_back(id);
      class_of_[id] = at->second;
    }
  }
}

bool dynamic_calls::meets_appends(const plan& p, const chunk& c, node_id id) const {
  const auto memory_of = [&](value_id v) { return root_on(p, c, is_part(p, v) ? p.storage[v] : v); };
  const auto meets = [&](value_id v) {
    return v != no_value && std::ranges::any_of(appends_, [&, root = memory_of(v)](const cache_append& a) {
             return memory_of(a.past) == root || memory_of(a.fresh) == root;
           });
  };
  const node& n = p.program->nodes[id];
  return std::ranges::any_of(n.inputs, meets) || std::ranges::any_of(n.outputs, meets);
}

std::vector<launch_list> dynamic_calls::choose(const bound_plan& bound, const kernel_selection& how) const {
  const plan& p = *bound.source;
  std::vector<launch_list> choices;
  choices.reserve(first_.size());
  for (node_id n : first_)
    choices.push_back(choose_kernel(bound, p.program->nodes[n], p.devices[self_], how, rows_first_));
  return choices;
}

parameter_table::parameter_table(const dynamic_calls& calls, const arena_layout& layout,
                                 std::span<const launch_list> choices)
    : appends_(calls.appends()) {
  for (uint32_t own = 0; own < choices.size(); ++own) {
    first_launch_.push_back(launches_.size());
    for (uint32_t i = 0; i < choices[own].launches.size(); ++i)
      launches_.push_back({own, i});
  }
  const auto count = static_cast<int64_t>(launches_.size());
  groups_begin_ = count * param_block_bytes;
  bytes_ = round_up(groups_begin_ + count * groups_stride, known_alignment);
  for (value_id v : layout.source->known_values[layout.segment])
    if (layout.varies[v]) {
      known_at_[v] = bytes_;
      bytes_ += round_up(std::max<int64_t>(layout.bytes[v], 1), known_alignment);
    }
  bytes_ = appends_begin_ = round_up(bytes_, param_block_bytes);
  bytes_ +=
      static_cast<int64_t>((appends_.size() + shader::copy_rows_each - 1) / shader::copy_rows_each) * param_block_bytes;
}

int64_t parameter_table::block_at(uint32_t call_class, size_t launch) const {
  return static_cast<int64_t>(first_launch_.at(call_class) + launch) * param_block_bytes;
}

int64_t parameter_table::groups_at(uint32_t call_class, size_t launch) const {
  return groups_begin_ + static_cast<int64_t>(first_launch_.at(call_class) + launch) * groups_stride;
}

std::vector<std::byte> parameter_table::fill(const bound_plan& bound, std::span<const launch_list> choices) const {
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_));
  for (size_t i = 0; i < launches_.size(); ++i) {
    const launch& l = choices[launches_[i].call_class].launches[launches_[i].launch];
    const auto at = static_cast<int64_t>(i);
    if (!l.params.empty())
      std::memcpy(bytes.data() + at * param_block_bytes, l.params.data(), l.params.size() * sizeof(uint32_t));
    std::memcpy(bytes.data() + groups_begin_ + at * groups_stride, l.groups.data(), sizeof(l.groups));
  }
  for (const auto& [v, offset] : known_at_)
    if (const tensor& known = bound.known[v]; known.bytes() > 0)
      std::memcpy(bytes.data() + offset, known.data(), static_cast<size_t>(known.bytes()));
  for (size_t i = 0; i * shader::copy_rows_each < appends_.size(); ++i) {
    std::vector<row_steps> copies;
    for (size_t k = i * shader::copy_rows_each; k < appends_.size() && copies.size() < shader::copy_rows_each; ++k)
      copies.push_back(append_rows(bound, appends_[k]));
    const std::vector<uint32_t> words = row_copy_words(copies);
    std::memcpy(bytes.data() + appends_at(i), words.data(), words.size() * sizeof(uint32_t));
  }
  return bytes;
}

} // namespace troupe::vulkan
