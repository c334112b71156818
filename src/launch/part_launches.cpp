#include "launch/part_launches.hpp"

#include "launch/launch_table.hpp"
#include "ops/op.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Puts one list for each part together.
class part_lists {
public:
  explicit part_lists(const call_parts& calls) {
    for (const operand& o : calls.between)
      all_.scratch.push_back(o.bytes());
  }

  /// Adds the launches of the next part, which follow those of all parts of earlier steps.
  void add(const call_part& part, launch_list list) {
    if (part.step != step_) {
      step_ = part.step;
      first_ = next_;
    }
    const auto packed = static_cast<uint32_t>(all_.packed.size()), scratch = static_cast<uint32_t>(all_.scratch.size());
    for (launch& l : list.launches) {
      l.step += first_;
      next_ = std::max(next_, l.step + 1);
      for (launch_binding& b : l.bindings)
        move(b, part, packed, scratch);
      all_.launches.push_back(std::move(l));
    }
    all_.packed.insert(all_.packed.end(), list.packed.begin(), list.packed.end());
    all_.scratch.insert(all_.scratch.end(), list.scratch.begin(), list.scratch.end());
    all_.counters = std::max(all_.counters, list.counters); // parts that count are of different steps, and leave zeros
    all_.name += (all_.name.empty() ? "" : "+") + list.name;
    all_.time += list.time;
    if (!list.tile.empty())
      all_.tile += (all_.tile.empty() ? "" : " ") + list.tile;
  }

  launch_list take() { return std::move(all_); }

private:
  using source = launch_binding::source;

  static void move(launch_binding& b, const call_part& part, uint32_t packed, uint32_t scratch) {
    if (b.from == source::packed) {
      b.index += packed;
    } else if (b.from == source::scratch) {
      b.index += scratch;
    } else if (b.from == source::input || b.from == source::output) {
      const part_operand& o = b.from == source::input ? part.inputs.at(b.index) : part.output;
      b.index = static_cast<uint32_t>(o.index);
      b.from = o.from == part_operand::source::input    ? source::input
               : o.from == part_operand::source::output ? source::output
                                                        : source::scratch;
    }
  }

  launch_list all_;
  uint32_t step_ = 0, first_ = 0, next_ = 0;
};

/// Which of a part's ways the list takes that has the `way`-th of every part: its last, if it has fewer. If
/// `range` is all ways, each tile has its list, and a part without tiles keeps its first way: its other ways are for
/// devices that cannot do better.
const launch_list& way_of(const launch_lists& ways, size_t way, way_range range) {
  if (range == way_range::usual)
    return ways[std::min(way, ways.size() - 1)];
  return way < ways.size() && !ways[way].tile.empty() ? ways[way] : ways[0];
}

} // namespace

launch_lists launches_of_parts(const gpu_call& call, const call_parts& calls) {
  std::vector<launch_lists> ways;
  size_t most = 0;
  for (const call_part& part : calls.parts) {
    gpu_call own{part.attrs, {},        {operand_of(part.output, calls, call.inputs, call.outputs)},
                 call.gpu,   call.ways, call.tiles};
    for (const part_operand& o : part.inputs)
      own.inputs.push_back(operand_of(o, calls, call.inputs, call.outputs));
    ways.push_back(launches_of(*part.def, own));
    if (ways.back().empty())
      return {};
    most = std::max(most, ways.back().size());
  }
  launch_lists lists;
  const auto add = [&](auto&& way_of_part) {
    part_lists all(calls);
    for (size_t i = 0; i < ways.size(); ++i)
      all.add(calls.parts[i], way_of_part(i));
    lists.push_back(all.take());
  };
  for (size_t way = 0; way < most; ++way)
    add([&](size_t i) { return way_of(ways[i], way, call.ways); });
  for (size_t part = 0; part < ways.size() && call.ways != way_range::usual; ++part)
    for (size_t way = 1; way < ways[part].size() && calls.parts[part].has_alternatives; ++way)
      add([&](size_t i) { return ways[i][i == part ? way : 0]; });
  return lists;
}

} // namespace troupe
