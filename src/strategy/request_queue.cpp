#include "strategy/request_queue.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <tuple>

namespace troupe {

bool starts_before::operator()(const waiting_rows* a, const waiting_rows* b) const {
  return std::tuple(!a->came_back, -int64_t{a->priority}, a->request, a->first) <
         std::tuple(!b->came_back, -int64_t{b->priority}, b->request, b->first);
}

bool is_older::operator()(const waiting_rows* a, const waiting_rows* b) const {
  return std::tie(a->request, a->first) < std::tie(b->request, b->first);
}

bool is_due_before::operator()(const waiting_rows* a, const waiting_rows* b) const {
  return std::tie(a->due, a->request, a->first) < std::tie(b->due, b->request, b->first);
}

void request_queue::advance(run_time now) {
  now_ = now;
  while (!not_ready_.empty() && not_ready_.begin()->first <= now) {
    row_group& g = *not_ready_.begin()->second;
    take_out(g);
    put_in(g);
  }
}

std::optional<run_time> request_queue::next_due() const {
  return not_ready_.empty() ? std::nullopt : std::optional(not_ready_.begin()->first);
}

row_group& request_queue::group_for(const waiting_rows& rows) {
  while (lanes_.size() <= rows.lane) {
    lanes_.emplace_back();
    lanes_.back().single.lane = lanes_.size() - 1;
  }
  queue_lane& lane = lanes_[rows.lane];
  if (rows.use != row_use::join)
    return lane.single;
  std::unique_ptr<row_group>& g = lane.joined[rows.key];
  if (!g) {
    g = std::make_unique<row_group>();
    g->lane = rows.lane;
    g->key = rows.key;
    g->joins = true;
  }
  return *g;
}

void request_queue::take_out(row_group& g) {
  if (g.members.empty())
    return;
  if (g.is_ready)
    lanes_[g.lane].ready.erase(&g);
  else
    not_ready_.erase({(*g.by_due.begin())->due, &g});
}

void request_queue::put_in(row_group& g) {
  if (g.members.empty()) {
    if (g.joins)
      lanes_[g.lane].joined.erase(g.key);
    return;
  }
  g.is_ready = !g.joins || g.rows >= max_batch_ || (*g.members.begin())->came_back || (*g.by_due.begin())->due <= now_;
  if (g.is_ready)
    lanes_[g.lane].ready.insert(&g);
  else
    not_ready_.insert({(*g.by_due.begin())->due, &g});
}

void request_queue::add(const waiting_rows& rows) {
  expects(rows.rows > 0, "rows that wait are at least one");
  row_group& g = group_for(rows);
  owned_rows owned = std::make_unique<waiting_rows>(rows);
  waiting_rows* w = owned.get();
  w->group = &g;
  parts_[rows.request].push_back(std::move(owned));
  take_out(g);
  g.members.insert(w);
  if (g.joins)
    g.by_due.insert(w);
  g.rows += w->rows;
  put_in(g);
  lanes_[w->lane].by_age.insert(w);
  lanes_[w->lane].rows += w->rows;
}

void request_queue::unlink(waiting_rows& rows) {
  row_group& g = *rows.group;
  queue_lane& lane = lanes_[rows.lane];
  take_out(g);
  g.members.erase(&rows);
  if (g.joins)
    g.by_due.erase(&rows);
  g.rows -= rows.rows;
  put_in(g);
  lane.by_age.erase(&rows);
  lane.rows -= rows.rows;
}

void request_queue::take(const waiting_rows& from, int64_t rows) {
  const auto found = parts_.find(from.request);
  expects(found != parts_.end() && rows > 0 && rows <= from.rows, "rows are taken that wait");
  const auto it =
      std::find_if(found->second.begin(), found->second.end(), [&](const owned_rows& w) { return w.get() == &from; });
  expects(it != found->second.end(), "rows are taken that wait");
  waiting_rows& w = **it;
  if (rows == w.rows) {
    unlink(w);
    found->second.erase(it);
    if (found->second.empty())
      parts_.erase(found);
    return;
  }
  // In place: parts of a request do not overlap, so their order stays. Those of a group that joins are only taken as a
  // whole.
  expects(!w.group->joins, "requests to be joined are taken as a whole");
  w.first += rows;
  w.rows -= rows;
  w.group->rows -= rows;
  lanes_[w.lane].rows -= rows;
}

void request_queue::remove(request_id request) {
  const auto found = parts_.find(request);
  if (found == parts_.end())
    return;
  for (owned_rows& w : found->second)
    unlink(*w);
  parts_.erase(found);
}

std::vector<waiting_rows> request_queue::clear(size_t lane) {
  std::vector<waiting_rows> all;
  while (lane < lanes_.size() && !lanes_[lane].by_age.empty()) {
    const waiting_rows& w = **lanes_[lane].by_age.begin();
    all.push_back(w);
    take(w, w.rows);
  }
  return all;
}

const waiting_rows* request_queue::head(size_t lane) const {
  if (lane >= lanes_.size() || lanes_[lane].ready.empty())
    return nullptr;
  return *(*lanes_[lane].ready.begin())->members.begin();
}

const waiting_rows* request_queue::oldest(size_t lane) const {
  if (lane >= lanes_.size() || lanes_[lane].by_age.empty())
    return nullptr;
  const waiting_rows* w = *lanes_[lane].by_age.begin();
  return w->group->is_ready ? w : head(lane);
}

std::vector<const waiting_rows*> request_queue::batch_of(const waiting_rows& first) const {
  std::vector<const waiting_rows*> batch{&first};
  int64_t rows = first.rows;
  for (const waiting_rows* w : first.group->members) {
    if (w == &first)
      continue;
    if (rows + w->rows > max_batch_)
      break;
    batch.push_back(w);
    rows += w->rows;
  }
  return batch;
}

size_t request_queue::records() const {
  size_t n = parts_.size() + not_ready_.size() + lanes_.size();
  for (const auto& [request, parts] : parts_)
    n += parts.size();
  for (const queue_lane& l : lanes_)
    n += l.joined.size() + l.ready.size() + l.by_age.size();
  return n;
}

} // namespace troupe
