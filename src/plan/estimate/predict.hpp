// Predicted times of a plan: the chunks played through in the order in which `ready_set` would send them.
//
// The machine that is played: a device runs its chunks one after the other, each as copies in, waves with barriers
// between (on devices in the host's memory: node after node), copies out. If it copies beside work, a chunk's large
// copies in may come while the chunk before computes, and its large copies out go while the chunk after does, within
// what its arena allows (vulkan/chunk_submission.hpp). What crosses the network to or from a device of another host
// does so one chunk after the other, beside what the device does. A chunk of another device that waits for it starts
// when the answer has come back (`device_profile::chunk_s`). A segment starts when the one before has ended. Devices of
// one processor share its lanes.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// What a chunk costs its device, and what it waits for; by hand in tests.
struct chunk_cost {
  device_index device = 0;
  uint32_t segment = 0;
  double in_s = 0, work_s = 0, out_s = 0; // copies in; nodes and barriers; copies out
  double net_in_s = 0, net_out_s = 0;     // over the network, before the copies in and after those out
  double host_s = 0;                      // of the host, before the chunk is submitted: it copies callers' inputs
  double in_bytes = 0, out_bytes = 0;     // what the copies move
  std::vector<chunk_id> predecessors;     // ascending; those of its device included
};

/// Predicted times of one chunk, in seconds from the start of the run.
struct chunk_prediction {
  double begin_s = 0;
  double end_s = 0;  // what others read has left its device and crossed the network; the answer takes `chunk_s` more
  double copy_s = 0; // of that: uploads and downloads, the network included
};

struct prediction {
  double makespan_s = 0;
  std::vector<chunk_prediction> chunks; // by chunk
  std::vector<double> busy_s;           // by device: work and copies, the network aside
};

/// Returns which values (by id) come to the session's process when they have been made: devices of it, control flow or
/// the caller read them.
std::vector<bool> values_wanted_here(const plan& p);

/// Adds the costs of an upload or a download of a plan to a chunk on `cost.device`. What comes from another host with
/// the answer of the chunk that makes it (`comes_here`) costs that chunk; other hosts ask for what they read.
void add_upload(chunk_cost& cost, const plan& p, std::span<const shape> dims, value_id v);
void add_download(chunk_cost& cost, const plan& p, std::span<const shape> dims, value_id v, bool comes_here);

/// Returns the costs of a plan's chunks with these dims, by value: `bound_plan::dims` or `expected_dims`.
std::vector<chunk_cost> chunk_costs(const plan& p, std::span<const shape> dims);

/// Returns, by chunk, whether large copies out may go beside the work of its device's next one of the segment: no other
/// device waits for them, or the next one waits for no other device, which may have waited for them.
std::vector<bool> next_is_free(std::span<const chunk_cost> chunks, size_t devices);

/// Plays chunks through, whose order is a topological one and ascending by segment.
prediction play(std::span<const chunk_cost> chunks, std::span<const device_info> devices);

/// Predicts a run with these dims, by value.
prediction predict(const plan& p, std::span<const shape> dims);

/// Returns the predicted seconds of one node on the device where it is placed, barriers aside; of control flow, those
/// of its bodies, `representative_dim` times if nothing says how often.
double predict_node(const plan& p, std::span<const shape> dims, node_id n);
/// The same on another device, of a node without bodies.
double predict_node(const plan& p, std::span<const shape> dims, node_id n, const device_profile& on);

/// Returns the bytes of a value.
double value_bytes(const plan& p, std::span<const shape> dims, value_id v);

/// Returns the dims of all values if symbols have their expected values, else `representative_dim`.
std::vector<shape> expected_dims(const graph& program, const bindings& expected);

} // namespace troupe
