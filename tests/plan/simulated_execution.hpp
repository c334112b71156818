// A plan's execution without kernels, its parts in random order: for tests of the orders that a plan allows.
#pragma once

#include "plan/bind/layout_buckets.hpp"
#include "plan/cut/ready_set.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <random>
#include <set>

namespace troupe::testing {

using generator = std::mt19937_64;

/// Returns a number below `bound`.
inline size_t below(generator& random, size_t bound) {
  return random() % bound;
}

/// Runs a plan without kernels: follows which bytes hold which value, and fails if a value is read that is not there.
class simulated_execution {
public:
  simulated_execution(const std::shared_ptr<const plan>& p, layout_buckets& layouts, completion_mode mode,
                      generator& random)
      : plan_(p), p_(*p), layouts_(layouts), random_(random), ready_set_(*p, mode), queues_(p->devices.size()),
        on_host_(p->program->inputs.begin(), p->program->inputs.end()) {}

  void run() {
    bindings values{{"n", static_cast<int64_t>(1 + below(random_, 40))}};
    for (uint32_t s = 0; s < p_.segment_count; ++s) {
      bound_ = layouts_.bind(plan_, s, values);
      holders_.assign(p_.devices.size(), {});
      run_segment(s);
      for (const data_symbol& symbol : p_.symbols)
        if (p_.chunks[p_.chunk_of_node[p_.producer[symbol.value]]].segment == s)
          values[symbol.name] = static_cast<int64_t>(below(random_, 20));
    }
    for (value_id v : p_.program->outputs)
      if (p_.producer[v] >= 0)
        REQUIRE(on_host_.contains(v));
  }

private:
  /// A part of a chunk's run on its device.
  enum class part : uint8_t { in, work, out };

  /// A device's chunks of the segment, in the order in which they were sent, and how many have done each part.
  struct device_queue {
    std::vector<chunk_id> sent;
    size_t in = 0, work = 0, out = 0;

    bool done() const { return out == sent.size(); }
  };

  /// Returns the parts that a device may do next: one after the other, or, if copies go beside work, whatever the
  /// device's arena allows (vulkan/chunk_submission.hpp).
  std::vector<part> possible(device_index d) const {
    const device_queue& q = queues_[d];
    if (!p_.devices[d].copies_beside_work)
      return {q.in == q.out ? part::in : q.work == q.out ? part::work : part::out};
    std::vector<part> parts;
    if (q.in < q.sent.size() && q.work + 2 > q.in && q.out + 3 > q.in)
      parts.push_back(part::in);
    if (q.work < q.in && q.out + 2 > q.work)
      parts.push_back(part::work);
    if (q.out < q.work)
      parts.push_back(part::out);
    return parts;
  }

  void run_segment(uint32_t s) {
    std::vector<chunk_id> ready;
    queues_.assign(p_.devices.size(), {});
    ready_set_.start(s, ready);
    // Sends and the devices' progress in random order; a device completes in the order in which it was sent to.
    while (!ready_set_.finished()) {
      std::vector<device_index> busy;
      for (device_index d = 0; d < queues_.size(); ++d)
        if (!queues_[d].done())
          busy.push_back(d);
      REQUIRE(ready.size() + busy.size() > 0);
      const size_t choice = below(random_, ready.size() + busy.size());
      if (choice < ready.size())
        send(ready, choice);
      else
        advance(busy[choice - ready.size()], ready);
    }
    REQUIRE(ready.empty());
  }

  void send(std::vector<chunk_id>& ready, size_t choice) {
    const chunk_id id = ready[choice];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(choice));
    REQUIRE(sent_.insert(id).second);
    for (value_id v : p_.chunks[id].uploads)
      REQUIRE(on_host_.contains(v));
    queues_[p_.chunks[id].device].sent.push_back(id);
    ready_set_.sent(id, ready);
  }

  void advance(device_index d, std::vector<chunk_id>& ready) {
    device_queue& q = queues_[d];
    const std::vector<part> parts = possible(d);
    REQUIRE(!parts.empty());
    switch (parts[below(random_, parts.size())]) {
      case part::in: copy_in(p_.chunks[q.sent[q.in++]]); return;
      case part::work: compute(p_.chunks[q.sent[q.work++]]); return;
      case part::out: copy_out(p_.chunks[q.sent[q.out]]); break;
    }
    ready_set_.completed(q.sent[q.out++], ready);
  }

  void copy_in(const chunk& c) {
    for (value_id v : c.uploads)
      write(c, v);
  }

  void compute(const chunk& c) {
    if (c.wave_begin.empty())
      for (node_id n : c.nodes)
        compute(c, n);
    for (uint32_t w = 0; w < c.wave_count(); ++w)
      compute_wave(c, w);
  }

  void copy_out(const chunk& c) {
    for (value_id v : c.downloads) {
      read(c, v);
      REQUIRE(on_host_.insert(v).second);
    }
  }

  void compute(const chunk& c, node_id n) {
    const node& call = p_.program->nodes[n];
    for (value_id v : call.inputs)
      if (v != no_value && p_.producer[v] < 0 && p_.program->values[v].known)
        REQUIRE(bound_->known[v].defined());
      else if (v != no_value && !p_.program->values[v].constant)
        read(c, v);
    for (value_id v : call.outputs)
      if (is_part(p_, v))
        write_part(c, v);
      else if (root_on(p_, c, v) == v)
        write(c, v);
  }

  /// The first part that is written takes the tensor's bytes; they must still be that tensor's when the others come.
  void write_part(const chunk& c, value_id v) {
    const value_id root = p_.storage[v];
    std::set<value_id>& parts = parts_[root];
    if (parts.empty())
      write(c, root);
    REQUIRE(holders_[c.device].at(place_of(c, root)).value == root);
    REQUIRE(parts.insert(v).second);
  }

  /// Runs the nodes of a wave in random order: each must find its inputs, and all outputs must be there in the end.
  void compute_wave(const chunk& c, uint32_t w) {
    const auto wave = c.wave(w);
    std::vector<node_id> nodes(wave.begin(), wave.end());
    std::erase_if(nodes, [&](node_id n) { return launches_nothing(p_, p_.program->nodes[n]); });
    std::shuffle(nodes.begin(), nodes.end(), random_);
    for (node_id n : nodes)
      compute(c, n);
    for (node_id n : nodes)
      for (value_id v : p_.program->nodes[n].outputs)
        if (p_.segment_of_value[v] <= c.segment && !is_part(p_, v))
          read(c, v);
  }

  /// Bytes outside the arena are keyed by their value, below zero.
  int64_t place_of(const chunk& c, value_id root) const {
    const int64_t offset = bound_->layout->memory[c.device].offset[root];
    return offset >= 0 ? offset : -1 - root;
  }

  void write(const chunk& c, value_id root) {
    auto& holders = holders_[c.device];
    const int64_t begin = place_of(c, root);
    if (begin >= 0) {
      const int64_t end = begin + std::max<int64_t>(1, bytes_of(dtype::float32, volume(bound_->dims[root])));
      REQUIRE(end <= bound_->layout->memory[c.device].arena_bytes);
      std::erase_if(holders, [&](const auto& h) { return h.first >= 0 && h.first < end && h.second.end > begin; });
      holders[begin] = {root, end};
    } else {
      holders[begin] = {root, 0};
    }
  }

  void read(const chunk& c, value_id v) {
    const value_id root = root_on(p_, c, v);
    if (p_.producer[root] < 0 && (p_.program->values[root].constant || p_.program->values[root].known))
      return; // a view of a weight or of known elements
    const auto it = holders_[c.device].find(place_of(c, root));
    REQUIRE(it != holders_[c.device].end());
    REQUIRE(it->second.value == root);
    if (const node_id maker = p_.producer[root]; maker >= 0 && root != v && is_joined(p_, p_.program->nodes[maker]))
      for (value_id part : p_.program->nodes[maker].inputs)
        REQUIRE(parts_[root].contains(part));
  }

  struct holder {
    value_id value = no_value;
    int64_t end = 0;
  };

  std::shared_ptr<const plan> plan_;
  const plan& p_;
  layout_buckets& layouts_;
  generator& random_;
  ready_set ready_set_;
  bound_plan_ptr bound_;
  std::vector<device_queue> queues_;             // by device
  std::map<value_id, std::set<value_id>> parts_; // by joined Concat's output: the parts that are written
  std::set<value_id> on_host_;
  std::set<chunk_id> sent_;
  std::vector<std::map<int64_t, holder>> holders_; // by device: which value the bytes at an offset hold
};

} // namespace troupe::testing
