// What BatchNormalization of inference computes: y = (x − mean) · factor + shift, channel by channel.
#pragma once

#include "rewrite/editor.hpp"

#include <optional>

namespace troupe {

/// Each of [channels].
struct channel_scaling {
  weight_ptr factor, shift, mean;
};

/// Returns it of a BatchNormalization of `channels` channels, as recipes of `type`: factor = scale / √(variance + ε).
/// Nullopt if the node computes statistics, is given others than constants of that type, or has an output that is read
/// besides its first.
std::optional<channel_scaling> scaling_of(const graph_editor& e, const node& norm, int64_t channels, dtype type);

} // namespace troupe
