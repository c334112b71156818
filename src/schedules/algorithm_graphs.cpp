// Task graphs of algorithms. Each is built in an order of execution, so tasks come out in topological order.
#include "schedules/graph_maker.hpp"

#include <bit>

namespace troupe {
namespace {

/// Which task wrote each tile of a matrix last.
class tile_writers {
public:
  explicit tile_writers(uint32_t tiles) : tiles_(tiles), writer_(static_cast<size_t>(tiles) * tiles, policy_none) {}

  task_id& operator()(uint32_t row, uint32_t column) { return writer_[static_cast<size_t>(row) * tiles_ + column]; }

private:
  uint32_t tiles_;
  std::vector<task_id> writer_;
};

constexpr uint32_t most_tiles = 256, most_tile = 1u << 16;

/// What the kernels of tiled linear algebra cost: operations by the cube of the tile's side, bytes of a tile.
struct tile_costs {
  double cube, bytes;

  explicit tile_costs(uint32_t tile)
      : cube(static_cast<double>(tile) * tile * tile), bytes(8.0 * static_cast<double>(tile) * tile) {}
};

} // namespace

task_graph fork_join(uint32_t width, uint32_t stages, double work, double bytes) {
  check_size("the width", width, most_width);
  check_size("the number of stages", stages, most_width);
  graph_maker g("fork-join");
  task_id last = policy_none;
  for (uint32_t stage = 0; stage < stages; ++stage) {
    const task_id fork = g.add("fork", work, {{last, bytes}});
    std::vector<graph_maker::read> branches;
    for (uint32_t i = 0; i < width; ++i)
      branches.push_back({g.add("branch", work, {{fork, bytes}}), bytes});
    last = g.add("join", work, branches);
  }
  return g.take();
}

task_graph cholesky(uint32_t tiles, uint32_t tile) {
  check_size("the number of tiles", tiles, most_tiles);
  check_size("the tile", tile, most_tile);
  const tile_costs cost(tile);
  graph_maker g("cholesky");
  tile_writers at(tiles);
  const auto read = [&](task_id from) { return graph_maker::read{from, cost.bytes}; };
  for (uint32_t k = 0; k < tiles; ++k) {
    at(k, k) = g.add("potrf", cost.cube / 3, {read(at(k, k))});
    for (uint32_t i = k + 1; i < tiles; ++i)
      at(i, k) = g.add("trsm", cost.cube, {read(at(k, k)), read(at(i, k))});
    for (uint32_t i = k + 1; i < tiles; ++i) {
      for (uint32_t j = k + 1; j < i; ++j)
        at(i, j) = g.add("gemm", 2 * cost.cube, {read(at(i, k)), read(at(j, k)), read(at(i, j))});
      at(i, i) = g.add("syrk", cost.cube, {read(at(i, k)), read(at(i, i))});
    }
  }
  return g.take();
}

task_graph lu(uint32_t tiles, uint32_t tile) {
  check_size("the number of tiles", tiles, most_tiles);
  check_size("the tile", tile, most_tile);
  const tile_costs cost(tile);
  graph_maker g("lu");
  tile_writers at(tiles);
  const auto read = [&](task_id from) { return graph_maker::read{from, cost.bytes}; };
  for (uint32_t k = 0; k < tiles; ++k) {
    at(k, k) = g.add("getrf", cost.cube * 2 / 3, {read(at(k, k))});
    for (uint32_t i = k + 1; i < tiles; ++i) {
      at(k, i) = g.add("trsm", cost.cube, {read(at(k, k)), read(at(k, i))});
      at(i, k) = g.add("trsm", cost.cube, {read(at(k, k)), read(at(i, k))});
    }
    for (uint32_t i = k + 1; i < tiles; ++i)
      for (uint32_t j = k + 1; j < tiles; ++j)
        at(i, j) = g.add("gemm", 2 * cost.cube, {read(at(i, k)), read(at(k, j)), read(at(i, j))});
  }
  return g.take();
}

task_graph fft(uint32_t points, double work, double bytes) {
  check_size("the number of points", points, most_width);
  if (!std::has_single_bit(points))
    fail(errc::invalid_argument, "the number of points is {}; it must be a power of two", points);
  graph_maker g("fft");
  std::vector<task_id> row{g.add("split", work)};
  while (row.size() < points) {
    std::vector<task_id> halves;
    for (task_id whole : row)
      for (int half = 0; half < 2; ++half)
        halves.push_back(g.add("split", work, {{whole, bytes}}));
    row = std::move(halves);
  }
  for (uint32_t apart = 1; apart < points; apart *= 2) {
    std::vector<task_id> next;
    for (uint32_t i = 0; i < points; ++i)
      next.push_back(g.add("butterfly", work, {{row[i], bytes}, {row[i ^ apart], bytes}}));
    row = std::move(next);
  }
  return g.take();
}

task_graph stencil(uint32_t width, uint32_t steps, double work, double bytes) {
  check_size("the width", width, most_width);
  check_size("the number of steps", steps, most_width);
  graph_maker g("stencil");
  std::vector<task_id> row(width, policy_none);
  for (uint32_t step = 0; step < steps; ++step) {
    std::vector<task_id> next;
    for (uint32_t i = 0; i < width; ++i) {
      std::vector<graph_maker::read> reads{{row[i], bytes}};
      if (i > 0)
        reads.push_back({row[i - 1], bytes});
      if (i + 1 < width)
        reads.push_back({row[i + 1], bytes});
      next.push_back(g.add("block", work, std::move(reads)));
    }
    row = std::move(next);
  }
  return g.take();
}

task_graph montage(uint32_t images, uint64_t seed) {
  check_size("the number of images", images, most_width);
  seeded_random random(seed);
  // A statement draws one number: the order of arguments is the compiler's.
  const auto varied = [&](double mean) { return mean * random.between(0.75, 1.25); };
  constexpr double image = 4e6, table = 1e4; // bytes
  graph_maker g("montage");
  const auto add = [&](const char* kind, double work, std::vector<graph_maker::read> reads) {
    for (graph_maker::read& r : reads)
      r.bytes = varied(r.bytes);
    const double drawn = varied(work);
    return g.add(kind, drawn, std::move(reads));
  };
  std::vector<task_id> projected;
  for (uint32_t i = 0; i < images; ++i)
    projected.push_back(add("project", 1.7e9, {}));
  std::vector<graph_maker::read> differences;
  for (uint32_t i = 0; i < images; ++i)
    for (uint32_t other = i + 1; other <= i + 2 && other < images; ++other)
      differences.push_back({add("difference", 0.7e9, {{projected[i], image}, {projected[other], image}}), table});
  const task_id fit = add("fit", 0.1e9 * images, std::move(differences));
  const task_id model = add("model", 0.1e9 * images, {{fit, table}});
  std::vector<graph_maker::read> headers, corrected;
  for (uint32_t i = 0; i < images; ++i) {
    const task_id n = add("correct", 1.7e9, {{projected[i], image}, {model, table}});
    headers.push_back({n, table});
    corrected.push_back({n, image});
  }
  corrected.push_back({add("table", 0.05e9 * images, std::move(headers)), table});
  const task_id sum = add("sum", 0.5e9 * images, std::move(corrected));
  const task_id reduced = add("reduce", 0.2e9 * images, {{sum, image * images}});
  add("picture", 0.1e9 * images, {{reduced, image}});
  return g.take();
}

} // namespace troupe
