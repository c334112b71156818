// The GPU kernel of BatchNormalization, elementwise by given statistics, for plain and channels-last operands.
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"

namespace troupe {
namespace {

launch_lists batch_norm_launches(const gpu_call& call) {
  const operand &x = call.inputs.at(0), &y = call.outputs.at(0);
  const auto variant = float_variant(x.type, call.gpu);
  if (!variant || !same_types(call) || x.dims.empty() || call.attrs.integer("training_mode", 0) != 0 ||
      lies_last(x) != lies_last(y))
    return {};
  for (size_t o = 1; o < call.outputs.size(); ++o)
    if (call.has_output(o))
      return {};
  // Old opsets have statistics of single features, which are in plain order.
  const bool spatial = call.attrs.integer("spatial", 1) != 0;
  if (!spatial && lies_last(x))
    return {};
  const int64_t statistics = call.inputs.at(3).size();
  const int64_t inner = x.dims.size() < 3 || lies_last(x) || !spatial ? 1 : volume(std::span(x.dims).subspan(2));
  launch_builder b(call, "batch_norm");
  launch& l = b.add("batch_norm." + *variant, flat_groups(x.size(), 1024, call.gpu),
                    {b.in(0), b.in(1), b.in(2), b.in(3), b.in(4), b.out(0)});
  l.params = words_of(shader::batch_norm{
      .count = x.size(), .channels = statistics, .inner = inner, .epsilon = call.attrs.real("epsilon", 1e-5f)});
  return single_list(b);
}

} // namespace

extern constinit const launch_rows normalization_rules = {
    {"", "BatchNormalization", batch_norm_launches},
};

} // namespace troupe
