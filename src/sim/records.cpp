#include "sim/records.hpp"

#include "cost/cost_model.hpp"

namespace troupe::sim {
namespace {

int64_t nanoseconds(seconds s) {
  return static_cast<int64_t>(s * 1e9 + 0.5);
}

/// Adds moves that together took from `begin` to `end`, one after the other, each as long as its bytes say.
void add_moves(std::vector<device_timing>& all, const bound_plan& bound, device_timing::work kind,
               std::span<const value_id> values, seconds begin, seconds end) {
  double sum = 0;
  std::vector<double> bytes;
  for (value_id v : values)
    sum += bytes.emplace_back(byte_count(bound.source->program->values[v].type, bound.dims[v]));
  if (!(end > begin) || sum <= 0)
    return;
  double before = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double after = before + bytes[i];
    all.push_back({.kind = kind,
                   .id = values[i],
                   .begin_ns = nanoseconds(begin + (end - begin) * before / sum),
                   .end_ns = nanoseconds(begin + (end - begin) * after / sum),
                   .bytes = static_cast<int64_t>(bytes[i])});
    before = after;
  }
}

/// What a device did for one chunk: its nodes one after the other as long as each is predicted to take, likewise its
/// copies.
std::vector<device_timing> timings_of(const chunk_record& r) {
  const plan& p = *r.bound->source;
  const chunk& c = p.chunks[r.chunk];
  std::vector<device_timing> all;
  const chunk_times& t = r.times;
  const bool came = t.come_end > t.come_begin, is_copied = t.work_begin > t.in_begin;
  add_moves(all, *r.bound, device_timing::work::upload, c.uploads, came ? t.come_begin : t.in_begin,
            is_copied ? t.work_begin : t.come_end);
  std::vector<double> predicted;
  double sum = 0;
  for (node_id n : c.nodes)
    sum += predicted.emplace_back(predict_node(p, r.bound->dims, n));
  double at = t.work_begin;
  for (size_t i = 0; i < c.nodes.size(); ++i) {
    const double end = sum > 0 ? at + (t.work_end - t.work_begin) * predicted[i] / sum : at;
    all.push_back({.id = c.nodes[i], .begin_ns = nanoseconds(at), .end_ns = nanoseconds(end), .kernel = "simulated"});
    at = end;
  }
  add_moves(all, *r.bound, device_timing::work::download, c.downloads, t.out_begin, t.end);
  return all;
}

} // namespace

void chunk_log::add(const chunk_record& record) {
  at_[record.times.number] = chunks_.size();
  chunks_.push_back(record);
}

std::vector<critical_chunk> chunk_log::critical_path(const virtual_world& world, size_t most) const {
  std::vector<critical_chunk> path;
  if (chunks_.empty())
    return path;
  const auto last = std::max_element(chunks_.begin(), chunks_.end(),
                                     [](const chunk_record& a, const chunk_record& b) { return a.told < b.told; });
  for (const chunk_record* r = &*last; r && path.size() < most;) {
    const plan& p = *r->bound->source;
    const chunk& c = p.chunks[r->chunk];
    const uint64_t before = r->times.after != 0 ? r->times.after : r->because;
    path.push_back({.device = world.infos[r->device].name,
                    .first_node = c.nodes.empty() ? "" : p.program->nodes[c.nodes.front()].name,
                    .nodes = c.nodes.size(),
                    .begin_ms = (r->times.after != 0 ? r->times.in_begin : r->times.sent) * 1e3,
                    .end_ms = r->times.end * 1e3,
                    .waited_for = r->times.after != 0 ? "device"
                                  : r->because != 0   ? "dependency"
                                                      : "start"});
    const auto found = at_.find(before);
    r = found == at_.end() ? nullptr : &chunks_[found->second];
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::shared_ptr<const run_trace> chunk_log::trace() const {
  if (chunks_.empty())
    return nullptr;
  auto made = std::make_shared<run_trace>();
  const chunk_record& first = chunks_.front();
  made->source = first.bound->source;
  for (const chunk_record& r : chunks_)
    if (r.execution == first.execution && r.bound->source == made->source) {
      add_memory(made->memory, *r.bound->layout);
      made->chunks.push_back({.chunk = r.chunk,
                              .sent_ns = nanoseconds(r.times.sent),
                              .ended_ns = nanoseconds(r.told),
                              .timings = timings_of(r)});
      made->end_ns = std::max(made->end_ns, nanoseconds(r.told));
    }
  return made;
}

} // namespace troupe::sim
