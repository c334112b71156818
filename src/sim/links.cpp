#include "sim/links.hpp"

namespace troupe::sim {

link_index shared_links::add(std::string name, double bytes_per_s) {
  link& l = links_.emplace_back();
  l.name = std::move(name);
  l.bytes_per_s = bytes_per_s;
  return static_cast<link_index>(links_.size() - 1);
}

transfer_id shared_links::start(double bytes, std::span<const link_index> route, double most_bytes_per_s,
                                event_queue::action done) {
  const transfer_id id = ++started_;
  transfer& t = transfers_[id];
  t.route.assign(route.begin(), route.end());
  t.bytes = bytes;
  t.most = most_bytes_per_s;
  t.since = events_.now();
  t.done = std::move(done);
  for (const link_index l : route) {
    link& on = links_[l];
    if (on.transfers.empty())
      on.busy_since = events_.now();
    on.transfers.push_back(id); // ids grow
    on.bytes += bytes;
  }
  share(t.route);
  return id;
}

void shared_links::cancel(transfer_id id) {
  const auto node = transfers_.extract(id);
  if (node.empty())
    return;
  leave(id, node.mapped());
  share(node.mapped().route);
}

void shared_links::finish(transfer_id id) {
  auto node = transfers_.extract(id);
  transfer& t = node.mapped();
  leave(id, t);
  share(t.route);
  t.done();
}

void shared_links::leave(transfer_id id, const transfer& t) {
  for (const link_index l : t.route) {
    link& on = links_[l];
    on.transfers.erase(std::lower_bound(on.transfers.begin(), on.transfers.end(), id));
    if (on.transfers.empty())
      on.busy += events_.now() - on.busy_since;
  }
}

void shared_links::share(std::span<const link_index> route) {
  reach(route);
  fill();
  for (const link_index l : reached_links_)
    links_[l].reached = false;
}

void shared_links::reach(std::span<const link_index> route) {
  reached_links_.clear();
  reached_.clear();
  const auto add = [&](link_index l) {
    link& on = links_[l];
    if (on.reached)
      return;
    on.reached = true;
    on.left = on.bytes_per_s;
    on.open = on.transfers.size();
    reached_links_.push_back(l);
  };
  for (const link_index l : route)
    add(l);
  for (size_t i = 0; i < reached_links_.size(); ++i)
    for (const transfer_id id : links_[reached_links_[i]].transfers) {
      transfer& t = transfers_.at(id);
      if (std::exchange(t.reached, true))
        continue;
      t.fixed = false;
      reached_.emplace_back(id, &t);
      for (const link_index l : t.route)
        add(l);
    }
}

void shared_links::fill() {
  const auto fix = [&](transfer_id id, transfer& t, double rate) {
    t.fixed = true;
    t.reached = false;
    for (const link_index l : t.route) {
      links_[l].left = std::max(0.0, links_[l].left - rate);
      --links_[l].open;
    }
    set_rate(id, t, rate);
  };
  // The slowest transfers first: a limit of their own is like a link that no other transfer uses.
  std::sort(reached_.begin(), reached_.end(), [](const auto& a, const auto& b) {
    return a.second->most != b.second->most ? a.second->most < b.second->most : a.first < b.first;
  });
  size_t by_limit = 0;
  for (size_t open = reached_.size(); open > 0;) {
    double fair = std::numeric_limits<double>::infinity();
    link_index full = 0;
    for (const link_index l : reached_links_)
      if (links_[l].open > 0 && links_[l].left / static_cast<double>(links_[l].open) < fair) {
        fair = links_[l].left / static_cast<double>(links_[l].open);
        full = l;
      }
    while (reached_[by_limit].second->fixed)
      ++by_limit;
    if (auto& [id, t] = reached_[by_limit]; t->most <= fair) {
      fix(id, *t, t->most);
      --open;
      continue;
    }
    for (const transfer_id id : links_[full].transfers)
      if (transfer& t = transfers_.at(id); !t.fixed) {
        fix(id, t, fair);
        --open;
      }
  }
}

void shared_links::set_rate(transfer_id id, transfer& t, double rate) {
  const double now = events_.now();
  t.bytes = std::max(0.0, t.bytes - t.rate * (now - t.since));
  t.since = now;
  if (rate == t.rate && t.version > 0)
    return; // it ends when it was to end
  t.rate = rate;
  events_.after(t.bytes / rate, [this, id, version = ++t.version] {
    if (const auto found = transfers_.find(id); found != transfers_.end() && found->second.version == version)
      finish(id);
  });
}

} // namespace troupe::sim
