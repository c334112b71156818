// Predicted times of a plan: the chunks played through in the order in which `ready_set` would send them.
//
// The machine that is played: a device runs its chunks one after the other, each as copies in, waves with barriers between
// (on devices in the host's memory: node after node), copies out. A chunk of another device that waits for it starts when the
// answer has come back (`device_profile::chunk_s`). A segment starts when the one before has ended.
#pragma once

#include "plan/bound_plan.hpp"

namespace troupe {

/// Predicted times of one chunk, in seconds from the start of the run.
struct chunk_prediction {
  double begin_s = 0;
  double end_s = 0;  // on its device; the answer takes `chunk_s` more
  double copy_s = 0; // of that: uploads and downloads
};

struct prediction {
  double makespan_s = 0;
  std::vector<chunk_prediction> chunks; // by chunk
  std::vector<double> busy_s;           // by device: work and copies
};

/// Predicts a run with these dims, by value: `bound_plan::dims` or `expected_dims`.
prediction predict(const plan& p, std::span<const shape> dims);

/// Returns the predicted seconds of one node on the device where it is placed, barriers aside.
double predict_node(const plan& p, std::span<const shape> dims, node_id n);

/// Returns the predicted seconds of wave `w` of a GPU chunk, the barrier behind it aside.
double wave_seconds(const plan& p, std::span<const shape> dims, const chunk& c, uint32_t w);

/// Returns the bytes of a value.
double value_bytes(const plan& p, std::span<const shape> dims, value_id v);

/// Returns the dims of all values where symbols have their expected values, else `representative_dim`.
std::vector<shape> expected_dims(const graph& program, const bindings& expected);

} // namespace troupe
