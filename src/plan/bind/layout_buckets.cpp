#include "plan/bind/layout_buckets.hpp"

#include "base/round_up.hpp"

#include <algorithm>
#include <bit>
#include <set>

namespace troupe {
namespace {

constexpr int64_t least_capacity = 16;
/// Enough to see how symbols vary; comparing with all of them is still cheap.
constexpr size_t max_precedents = 32;
/// A layout for capacities may cost this much more than an exact one, or as much again if they are not wide.
constexpr int64_t small_arena = int64_t{64} << 20;
/// … and for wide ones at most this part of each device's memory.
constexpr int64_t small_part = 64;

/// Capacities to try.
struct candidate {
  bindings capacities;
  bool wide = false;
};

/// Whether a binding would use a good part of what the layout has room for.
bool suits(const arena_layout& l, const bindings& values) {
  return std::all_of(l.symbols.begin(), l.symbols.end(), [&](const symbol_capacity& symbol) {
    const auto value = values.find(symbol.name);
    return !symbol.varies || (value != values.end() && symbol.capacity / 2 <= std::max(value->second, least_capacity));
  });
}

int64_t arena_bytes(const arena_layout& l) {
  int64_t sum = 0;
  for (const device_memory& m : l.memory)
    sum += m.arena_bytes;
  return sum;
}

/// Whether a layout costs little more than an exact one on each device.
bool costs_little(const arena_layout& l, const arena_layout& exact) {
  const std::vector<device_info>& devices = l.source->devices;
  for (device_index d = 0; d < static_cast<device_index>(devices.size()); ++d)
    if (devices[d].kind != device_kind::control &&
        slot_bytes(l, d) - slot_bytes(exact, d) > std::min(small_arena, devices[d].memory_bytes / small_part))
      return false;
  return true;
}

/// Whether it costs at most as much again, or little.
bool costs_enough(const arena_layout& l, const arena_layout& exact) {
  const int64_t least = arena_bytes(exact);
  return arena_bytes(l) - least <= std::max(least, small_arena);
}

/// Candidates, in this order: symbols rounded up one by one, and all raised by what the largest gets (the other way
/// round if they have moved `together`); wide ones first.
std::vector<candidate> candidates(const bindings& values, const std::vector<std::string>& varying, bool together) {
  int64_t largest = 0;
  for (const std::string& name : varying)
    largest = std::max(largest, values.at(name));
  std::vector<candidate> all;
  const auto add = [&](int64_t (*capacity)(int64_t), bool wide) {
    bindings rounded = values, raised = values;
    for (const std::string& name : varying) {
      rounded[name] = capacity(values.at(name));
      raised[name] += capacity(largest) - largest;
    }
    if (together)
      std::swap(rounded, raised);
    for (bindings* each : {&rounded, &raised})
      if (const auto same = std::ranges::find(all, *each, &candidate::capacities); same != all.end())
        same->wide &= wide; // if it is not wide, it may cost more
      else
        all.push_back({std::move(*each), wide});
  };
  add([](int64_t value) { return wide_capacity(value); }, true);
  add(bucket_capacity, false);
  return all;
}

/// Returns the binding in a layout of these capacities; null if the model contradicts them, they cost too much, or the
/// binding would use too little of them.
bound_plan_ptr try_bucket(const arena_layout& exact, const candidate& wanted, const std::vector<std::string>& varying,
                          const bindings& values) {
  try {
    const arena_layout_ptr l = make_layout(exact.source, exact.segment, wanted.capacities, varying);
    const bool cheap = wanted.wide ? costs_little(*l, exact) : costs_enough(*l, exact);
    return cheap && suits(*l, values) ? bind_in(l, values) : nullptr;
  } catch (const error&) {
    return nullptr; // the exact layout reports what is wrong with the values themselves
  }
}

} // namespace

int64_t bucket_capacity(int64_t value) {
  if (value <= least_capacity)
    return least_capacity;
  if (value > INT64_MAX / 2)
    return value;
  return round_up(value, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(value - 1))) / 4);
}

int64_t wide_capacity(int64_t value, int64_t most_doubled) {
  if (value > most_doubled)
    return bucket_capacity(value);
  return next_power_of_two(std::max(value, least_capacity));
}

bound_plan_ptr layout_buckets::bind(const std::shared_ptr<const plan>& p, uint32_t segment, const bindings& values) {
  if (bound_plan_ptr found = find(*p, segment, values)) {
    ++stats_.hits;
    return found;
  }
  ++stats_.misses;
  bound_plan_ptr made = make(p, segment, values);
  layouts_.push_front(made->layout);
  if (layouts_.size() > most_) {
    layouts_.pop_back();
    ++stats_.evictions;
  }
  return made;
}

bound_plan_ptr layout_buckets::find(const plan& p, uint32_t segment, const bindings& values) {
  for (auto l = layouts_.begin(); l != layouts_.end(); ++l)
    if ((*l)->source.get() == &p && (*l)->segment == segment && suits(**l, values))
      if (bound_plan_ptr bound = bind_in(*l, values)) {
        layouts_.splice(layouts_.begin(), layouts_, l);
        return bound;
      }
  return nullptr;
}

bound_plan_ptr layout_buckets::make(const std::shared_ptr<const plan>& p, uint32_t segment, const bindings& values) {
  bound_plan_ptr exact = bind_segment(p, segment, values);
  const difference varying = compare(p, segment, values);
  if (!varying.names.empty())
    for (const candidate& wanted : candidates(values, varying.names, varying.together))
      if (bound_plan_ptr bound = try_bucket(*exact->layout, wanted, varying.names, values))
        return bound;
  return exact;
}

layout_buckets::difference layout_buckets::compare(const std::shared_ptr<const plan>& p, uint32_t segment,
                                                   const bindings& values) {
  const std::vector<std::string> names = symbols_of(*p, segment);
  precedent own{p, segment, {}};
  for (const std::string& name : names)
    own.values.push_back(values.at(name));
  difference least;
  for (const precedent& other : precedents_) {
    if (other.source != p || other.segment != segment)
      continue;
    difference found;
    std::set<int64_t> moves;
    for (size_t i = 0; i < names.size(); ++i)
      if (other.values[i] != own.values[i]) {
        found.names.push_back(names[i]);
        moves.insert(own.values[i] - other.values[i]);
      }
    found.together = moves.size() == 1;
    if (!found.names.empty() && (least.names.empty() || found.names.size() < least.names.size()))
      least = std::move(found);
  }
  precedents_.push_front(std::move(own));
  if (precedents_.size() > max_precedents)
    precedents_.pop_back();
  return least;
}

} // namespace troupe
