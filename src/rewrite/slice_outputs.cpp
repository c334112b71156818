// Makes a graph whose outputs are parts of what they were. `hoist_slices` then computes no more than these parts need.
#include "rewrite/match.hpp"
#include "rewrite/rewrite.hpp"

#include <algorithm>

namespace troupe {
namespace {

void check_part(const value& whole, const output_slice& part) {
  if (!whole.dims || is_container(whole.type))
    fail(errc::invalid_argument, "no part of output '{}' can be taken: the model does not say that it has dims",
         part.output);
  const auto rank = static_cast<int64_t>(whole.dims->size());
  if (part.axis < -rank || part.axis >= rank)
    fail(errc::invalid_argument, "no part of output '{}' can be taken along dim {}: its shape is {}", part.output,
         part.axis, to_string(*whole.dims));
}

/// Takes the part of `whole`; returns the value that is the part.
value_id take(graph& g, value_id whole, const output_slice& part) {
  graph_editor e(g);
  const std::string& name = part.output;
  const value_id starts = e.add_known(name + "/start", {part.start}), ends = e.add_known(name + "/end", {part.end}),
                 axes = e.add_known(name + "/axis", {part.axis});
  return add_inferred(e, make_node(name + "/slice", "", "Slice", {whole, starts, ends, axes}, {}), name);
}

} // namespace

void slice_outputs(graph& g, std::span<const output_slice> parts) {
  for (const output_slice& part : parts) {
    const auto output = std::ranges::find(g.outputs, part.output, [&](value_id v) { return g.values[v].name; });
    if (output == g.outputs.end())
      fail(errc::invalid_argument, "the model has no output '{}'", part.output);
    const value_id whole = *output;
    check_part(g.values[whole], part);
    const value_id taken = take(g, whole, part);
    if (std::ranges::find(g.inputs, whole) == g.inputs.end())
      g.values[whole].name += "/whole";
    g.values[taken].name = part.output;
    *output = taken;
  }
}

} // namespace troupe
