// Made-up task graphs as plain data: tasks with work, edges with bytes. What scheduling papers compare policies on.
//
// All are deterministic; what is random follows from a seed alone, by arithmetic that is the same everywhere
// (`seeded_random`). Tasks are in topological order.
#pragma once

#include "base/seeded_random.hpp"
#include "plan/place/scheduling_problem.hpp"
#include "schedules/cost_matrix.hpp"
#include "troupe/task_graph.hpp"

namespace troupe {

// -- graphs of algorithms; `size` at least 1, else `errc::invalid_argument`

/// One task, `width` tasks beside each other, one task; `stages` times in a row. Each task does `work` operations, each
/// edge has `bytes`.
task_graph fork_join(uint32_t width, uint32_t stages, double work, double bytes);

/// Cholesky's factorisation of a matrix of tiles · tiles tiles, each of `tile` · `tile` float64: potrf, trsm, syrk and
/// gemm.
task_graph cholesky(uint32_t tiles, uint32_t tile);

/// LU factorisation without pivoting of the same: getrf, trsm, gemm.
task_graph lu(uint32_t tiles, uint32_t tile);

/// The fast Fourier transform of `points` points, a power of two (Topcuoglu, Hariri, Wu 2002, section 5.3): 2 · points
/// − 1 recursive calls that halve the input, then points · log2(points) butterflies. Each of the values is of `bytes`.
task_graph fft(uint32_t points, double work, double bytes);

/// `steps` steps of a stencil of three points over `width` blocks: each block needs itself and its neighbours of the
/// step before.
task_graph stencil(uint32_t width, uint32_t steps, double work, double bytes);

/// A workflow in the form of Montage, the mosaics of astronomy (Juve et al., "Characterizing and profiling scientific
/// workflows", FGCS 29(3), 2013): `images` projections, a difference for each pair of neighbours, one fit, one model, a
/// correction for each image, then one table, one sum, one reduction and one picture. Work and bytes vary by a quarter,
/// by `seed`.
task_graph montage(uint32_t images, uint64_t seed);

// -- scientific workflows, with the times and bytes that their projects published; both vary by a quarter, by `seed`

/// CyberShake, of earthquakes: `ruptures` extractions, for each of which `variations` seismograms are made; two
/// archives of them.
task_graph cybershake(uint32_t ruptures, uint32_t variations, uint64_t seed);

/// Epigenomics, of genomes: `lanes` of a sequencer, whose reads are split into `splits` chains of four jobs each,
/// merged, indexed and summed up.
task_graph epigenomics(uint32_t lanes, uint32_t splits, uint64_t seed);

/// LIGO Inspiral, of gravitational waves: `groups` of twice `width` analyses, of which each half ends in one job.
task_graph inspiral(uint32_t groups, uint32_t width, uint64_t seed);

/// SIPHT, of small RNAs: for each of `replicons`, four searches, one job that joins them, five that read it, `patsers`
/// short ones beside, and one that reads all.
task_graph sipht(uint32_t replicons, uint32_t patsers, uint64_t seed);

// -- random graphs

/// The parameters of Topcuoglu, Hariri, Wu 2002, section 5.2.
struct layered_options {
  uint32_t tasks = 100;
  double shape = 1;        // alpha: the mean height is sqrt(tasks) / shape, the mean width sqrt(tasks) · shape
  uint32_t out_degree = 3; // at most, of each task
  double ccr = 1;          // mean seconds of an edge by mean seconds of a task
  double heterogeneity = 1; // beta, 0…2: a task takes mean · (1 − beta / 2) … mean · (1 + beta / 2) on each device
  double mean_seconds = 10; // of tasks
};

/// Returns a random graph in layers, and its costs on `devices` devices: each task's mean is uniform in [0, 2 · mean),
/// each edge's time uniform with mean ccr · mean. Tasks of the first layer wait for none; each other one reads at least
/// one of the layer before. Throws `errc::invalid_argument` for parameters out of their ranges.
cost_matrix random_layers(const layered_options& options, uint32_t devices, uint64_t seed);

/// Returns such a graph without costs: each task's work is uniform in [0, 2 · work), each edge's bytes in [0, 2 ·
/// bytes). Of the options, tasks, shape and out degree count.
task_graph layers(const layered_options& options, double work, double bytes, uint64_t seed);

// -- costs

/// Devices of different speeds, all linked alike.
struct task_platform {
  uint32_t devices = 4;
  double flops_per_s = 1e9; // the mean device's
  double bytes_per_s = 1e9; // between two devices
  double latency_s = 0;     // of each edge between two devices
  double heterogeneity = 0; // beta, as above, of each task on each device
};

/// Returns what the tasks and edges of a graph take. Throws `errc::invalid_argument` for a platform that cannot be.
cost_matrix costs_on(const task_graph& graph, const task_platform& platform, uint64_t seed);

} // namespace troupe
