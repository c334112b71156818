// GPU launches of NegativeLogLikelihoodLoss (shaders/loss.comp): one, or two if many losses are summed.
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr int64_t least_loss_part = 4096, most_loss_parts = 256;

void add_loss(launch_builder& b, const gpu_call& call, const std::string& variant, uint32_t phase, uint32_t flags,
              launch_binding sums, const shader::loss& block) {
  const uint32_t groups = phase == shader::loss_parts ? block.parts.word : 1;
  const bool writes_sums = phase == shader::loss_parts;
  launch& l = b.add("loss." + variant,
                    phase == shader::loss_each ? flat_groups(block.count, 256, call.gpu)
                                               : std::array<uint32_t, 3>{groups, 1, 1},
                    {b.in(0), b.in(1), b.in(call.has_input(2) ? 2 : 0), writes_sums ? written(sums) : b.out(0),
                     writes_sums ? written(sums) : sums});
  l.constants = {phase, flags};
  l.params = words_of(block);
}

launch_lists nll_loss_launches(const gpu_call& call) {
  const operand &x = call.inputs.at(0), &targets = call.inputs.at(1);
  const auto variant = float_variant(x.type, call.gpu);
  const auto words = index_words(targets);
  const std::string reduction = call.attrs.text("reduction", "mean");
  if (!variant || !words || x.dims[1] >= index_limit)
    return {};
  const int64_t count = targets.size(), ignored = call.attrs.integer("ignore_index", 0);
  const bool ignores = call.attrs.has("ignore_index") && (*words == 2 || ignored == static_cast<int32_t>(ignored));
  const uint32_t flags = (call.has_input(2) ? shader::loss_weights : 0) | (ignores ? shader::loss_ignores : 0) |
                         (reduction == "mean" ? shader::loss_mean : 0);
  shader::loss block{.count = count,
                     .classes = x.dims[1],
                     .inner = volume(std::span(x.dims).subspan(2)),
                     .target_words = *words,
                     .ignored_low = ignored,
                     .ignored_high = ignored >> 32,
                     .parts = std::clamp<int64_t>(count / least_loss_part, 1, most_loss_parts)};
  launch_builder b(call, "loss");
  if (reduction == "none") {
    add_loss(b, call, *variant, shader::loss_each, flags, b.out(0), block);
    return single_list(b);
  }
  const auto parts = static_cast<int64_t>(block.parts.word);
  block.per_part = (count + parts - 1) / parts;
  if (parts == 1) {
    add_loss(b, call, *variant, shader::loss_whole, flags, b.out(0), block);
    return single_list(b);
  }
  const launch_binding sums = b.scratch(parts * 8);
  add_loss(b, call, *variant, shader::loss_parts, flags, sums, block);
  b.next_step();
  add_loss(b, call, *variant, shader::loss_merge, flags, sums, block);
  return single_list(b);
}

} // namespace

extern constinit const launch_rows loss_rules = {
    {"", "NegativeLogLikelihoodLoss", nll_loss_launches},
};

} // namespace troupe
