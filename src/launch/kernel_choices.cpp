#include "launch/kernel_choices.hpp"

#include "launch/launch_table.hpp"
#include "ops/graph_hash.hpp"
#include "ops/op.hpp"

#include <algorithm>

namespace troupe {
namespace {

void add_operand(hasher& h, const operand& o) {
  h.add(o.type);
  h.add(std::span<const int64_t>(o.dims));
  h.add(o.layout);
  h.add(o.constant != nullptr);
  h.add(o.unsized);
  for (const int64_t where : {o.part.pitch, o.part.first, o.part.size})
    h.add(where);
  const bool is_known = o.known.defined() && o.known.type() != dtype::string;
  h.add(is_known);
  if (is_known)
    h.add_bytes(o.known.data(), static_cast<size_t>(o.known.bytes()));
}

} // namespace

hash128 key_of_call(const op_def& def, const gpu_call& call) {
  hasher h;
  h.add(def.domain);
  h.add(def.name);
  h.add(def.since);
  add_attributes(h, call.attrs);
  for (const auto* operands : {&call.inputs, &call.outputs}) {
    h.add(operands->size());
    for (const operand& o : *operands)
      add_operand(h, o);
  }
  return h.digest();
}

hash128 key_of_kernel(const launch_list& list, const shader_revision& revision) {
  hasher h;
  h.add(list.name);
  h.add(list.launches.size());
  for (const launch& l : list.launches) {
    h.add(l.shader);
    h.add(revision(l.shader));
    h.add(std::span<const uint32_t>(l.constants));
    h.add(std::span<const uint32_t>(l.groups));
    h.add(l.bindings.size());
    h.add(l.step);
  }
  h.add(std::span<const int64_t>(list.scratch));
  h.add(list.counters);
  return h.digest();
}

void kernel_choices::set(std::unordered_map<hash128, hash128> kernels) {
  const std::lock_guard lock(mutex_);
  kernels_ = std::move(kernels);
}

std::optional<launch_list> kernel_choices::find(const op_def& def, const gpu_call& call,
                                                const launch_lists& usual) const {
  hash128 wanted;
  {
    const std::lock_guard lock(mutex_);
    if (kernels_.empty())
      return std::nullopt;
    const auto found = kernels_.find(key_of_call(def, call));
    if (found == kernels_.end())
      return std::nullopt;
    wanted = found->second;
  }
  const auto is_wanted = [&](const launch_list& list) { return key_of_kernel(list, revision_) == wanted; };
  if (const auto list = std::ranges::find_if(usual, is_wanted); list != usual.end())
    return *list;
  gpu_call widened = call;
  widened.ways = way_range::every;
  for (launch_list& list : launches_of(def, widened))
    if (is_wanted(list))
      return std::move(list);
  return std::nullopt;
}

} // namespace troupe
