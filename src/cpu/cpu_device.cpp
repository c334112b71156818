#include "cpu/cpu_device.hpp"

#include "base/parallel.hpp"
#include "cpu/cpu_info.hpp"
#include "cpu/prepared_plan.hpp"
#include "ops/node_origin.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace troupe {
namespace {

class cpu_device final : public device {
public:
  cpu_device(std::string name, cpu_device_options options) : options_(std::move(options)) {
    info_.name = std::move(name);
    info_.kind = device_kind::cpu;
    info_.processor = "cpu";
    info_.description = cpu_model_name();
    info_.memory_bytes = info_.total_bytes = usable_memory_bytes();
    const thread_limit limit(options_.threads);
    info_.units = thread_count();
    info_.host_memory = true;
    info_.prefers_channels_last = true;
    info_.profile = typical_cpu(info_.units);
  }

  const device_info& info() const override { return info_; }

  bool may_hang() const override { return false; }

  void install(bound_plan_ptr bound, device_index self) override {
    const thread_limit limit(options_.threads);
    const uint64_t id = bound->id;
    const uint64_t layout = bound->layout->id;
    auto prepared = prepare_plan(std::move(bound), self, resources_);
    prepared->arenas = arenas_of(layout);
    pointers_.resize(std::max(pointers_.size(), prepared->max_operands));
    allocated_.resize(std::max(allocated_.size(), prepared->max_operands));
    plans_[id] = std::move(prepared);
  }

  void retire(uint64_t bound_plan) override { plans_.erase(bound_plan); }

  /// A chunk that failed, or never came, has released nothing: the memory may be the caller's, who waits for it.
  void end(execution_id execution) override {
    for (const auto& [id, p] : plans_)
      for (const auto& slot : p->slots)
        if (slot && slot->execution == execution)
          release_all(*slot);
  }

  void submit(chunk_work work, chunk_done done) override {
    chunk_result result;
    const int64_t start = now_ns();
    const thread_limit limit(options_.threads);
    try {
      run(work, result);
    } catch (const error& e) {
      result = {.code = e.code(), .message = e.what()};
    } catch (const std::bad_alloc&) {
      result = {.code = errc::out_of_memory, .message = "host memory: a kernel cannot allocate what it needs"};
    } catch (const std::exception& e) {
      result = {.code = errc::device_failed, .message = e.what()};
    }
    result.busy_ns = now_ns() - start;
    busy_ns_ += result.busy_ns;
    ++chunks_;
    done(std::move(result));
  }

  device_stats stats() const override {
    device_stats s{.chunks = chunks_, .busy_ns = busy_ns_, .weight_bytes = resources_.weights.bytes()};
    s.installed_plans = static_cast<int64_t>(plans_.size());
    std::set<const layout_arenas*> counted;
    for (const auto& [id, p] : plans_)
      if (counted.insert(p->arenas.get()).second)
        s.arena_bytes +=
            p->bound->layout->memory[p->self].arena_bytes *
            std::count_if(p->arenas->begin(), p->arenas->end(), [](const auto& a) { return a != nullptr; });
    s.used_bytes = s.weight_bytes + s.arena_bytes;
    s.reserved_bytes = s.used_bytes + pool_->idle_bytes();
    s.largest_gap_bytes = pool_->largest_idle_bytes();
    return s;
  }

private:
  std::shared_ptr<layout_arenas> arenas_of(uint64_t layout) {
    std::erase_if(arenas_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<layout_arenas>& known = arenas_[layout];
    std::shared_ptr<layout_arenas> arenas = known.lock();
    if (!arenas)
      known = arenas = std::make_shared<layout_arenas>();
    return arenas;
  }

  void run(chunk_work& work, chunk_result& result) {
    const auto found = plans_.find(work.bound_plan);
    expects(found != plans_.end(), "the CPU device was sent a chunk of a plan that is not installed");
    prepared_plan& p = *found->second;
    const auto chunk = p.chunks.find(work.chunk);
    expects(chunk != p.chunks.end(), "the CPU device was sent a chunk that is not its own");
    const prepared_chunk& c = chunk->second;
    arena_slot& slot = slot_of(p, work.slot, options_.poison);
    slot.execution = work.execution;
    take_uploads(p, c, work, slot);
    make_fresh(c, slot);
    for (const prepared_step& step : c.steps) {
      if (work.stop && work.stop->load(std::memory_order_relaxed))
        fail(errc::cancelled, "the run was cancelled");
      const int64_t start = work.timed ? now_ns() : 0;
      run_step(p, c, step, slot);
      if (work.timed)
        result.timings.push_back(
            {.id = step.call, .begin_ns = start, .end_ns = now_ns(), .kernel = std::string(step.kernel_name)});
    }
    fill_downloads(p, c, work, slot, result);
    for (value_id v : c.release) {
      slot.held.erase(v);
      slot.address[v] = nullptr;
    }
  }

  void take_uploads(const prepared_plan& p, const prepared_chunk& c, chunk_work& work, arena_slot& slot) {
    expects(work.uploads.size() == c.uploads.size() && work.downloads.size() == c.downloads.size(),
            "the CPU device was sent a wrong number of values");
    for (size_t i = 0; i < c.uploads.size(); ++i) {
      const tensor& value = work.uploads[i]->host();
      expects(value.size() == volume(p.bound->dims[c.uploads[i]]), "an upload's size is not the planned one");
      hold(slot, c.uploads[i], value);
    }
    work.uploads.clear(); // from here on the slot holds their bytes
  }

  void make_fresh(const prepared_chunk& c, arena_slot& slot) {
    for (const fresh_value& f : c.fresh) {
      tensor t = make_output(f);
      if (options_.poison && !holds_objects(f.type))
        std::memset(t.mutable_data(), 0xff, static_cast<size_t>(t.bytes()));
      hold(slot, f.value, std::move(t));
    }
  }

  tensor make_output(const fresh_value& f) {
    const bool shared =
        options_.blocks && !holds_objects(f.type) && bytes_of(f.type, volume(f.dims)) >= host_block_alignment;
    return shared ? make_host_tensor(*options_.blocks, f.type, f.dims) : pool_->take(f.type, f.dims);
  }

  static void hold(arena_slot& slot, value_id v, tensor t) {
    slot.address[v] = const_cast<void*>(t.data());
    slot.held.insert_or_assign(v, std::move(t));
  }

  static void release_all(arena_slot& slot) {
    for (const auto& [v, t] : slot.held)
      slot.address[v] = nullptr;
    slot.held.clear();
  }

  void run_step(const prepared_plan& p, const prepared_chunk& c, const prepared_step& step, arena_slot& slot) {
    const value_id* operands = c.operands.data() + step.first_operand;
    const size_t count = step.inputs + step.outputs;
    for (size_t i = 0; i < count; ++i)
      pointers_[i] = operands[i] == no_value ? nullptr : slot.address[operands[i]];
    if (options_.poison)
      poison_outputs(p, operands, step);
    const kernel_run r{pointers_.data(), pointers_.data() + step.inputs, allocated_.data()};
    const node& call = p.bound->source->program->nodes[step.call];
    const thread_limit alone(step.is_small ? 1 : 0);
    try {
      step.run->run(r);
    } catch (const error& e) {
      fail(e.code(), "{}: {}", describe_origin(call), e.what());
    }
    for (size_t i = 0; i < step.outputs; ++i)
      if (allocated_[i].defined())
        hold(slot, operands[step.inputs + i], std::exchange(allocated_[i], {}));
  }

  /// Fills a step's outputs, unless they overwrite an input.
  void poison_outputs(const prepared_plan& p, const value_id* operands, const prepared_step& step) {
    for (size_t i = step.inputs; i < step.inputs + step.outputs; ++i) {
      const auto inputs_end = pointers_.begin() + step.inputs;
      if (!pointers_[i] || std::find(pointers_.begin(), inputs_end, pointers_[i]) != inputs_end)
        continue;
      const value& info = p.bound->source->program->values[operands[i]];
      if (!holds_objects(info.type))
        std::memset(pointers_[i], 0xff, static_cast<size_t>(bytes_of(info.type, volume(p.bound->dims[operands[i]]))));
    }
  }

  void fill_downloads(const prepared_plan& p, const prepared_chunk& c, chunk_work& work, arena_slot& slot,
                      chunk_result& result) {
    for (size_t i = 0; i < c.downloads.size(); ++i) {
      const fresh_value& d = c.downloads[i];
      const value_id root = c.download_roots[i];
      moved_value& made = *work.downloads[i];
      if (const auto held = slot.held.find(root); held != slot.held.end())
        made.fill(root == d.value ? held->second : held->second.reshaped(d.dims));
      else if (const auto weight = p.weights.find(root); weight != p.weights.end())
        made.fill(weight->second->reshaped(d.dims));
      else if (p.bound->known[root].defined())
        made.fill(p.bound->known[root].reshaped(d.dims));
      else
        made.fill(copy_from_arena(d, slot.address[root], work.timed, result));
    }
    work.downloads.clear(); // only their readers hold them when the chunk is answered
  }

  /// A value that an earlier chunk left in the arena.
  tensor copy_from_arena(const fresh_value& d, const void* bytes, bool timed, chunk_result& result) {
    expects(bytes != nullptr, "the CPU device has no bytes of a download");
    const int64_t start = timed ? now_ns() : 0;
    tensor t = make_output(d);
    std::memcpy(t.mutable_data(), bytes, static_cast<size_t>(t.bytes()));
    if (timed)
      result.timings.push_back({.kind = device_timing::work::download,
                                .id = d.value,
                                .begin_ns = start,
                                .end_ns = now_ns(),
                                .bytes = t.bytes()});
    return t;
  }

  device_info info_;
  const cpu_device_options options_;
  kernel_resources resources_;
  std::shared_ptr<buffer_pool> pool_ = buffer_pool::make();
  std::unordered_map<uint64_t, std::unique_ptr<prepared_plan>> plans_;
  std::unordered_map<uint64_t, std::weak_ptr<layout_arenas>> arenas_; // by layout
  std::vector<void*> pointers_;                                       // of the step being run
  std::vector<tensor> allocated_;                                     // by its outputs
  int64_t chunks_ = 0, busy_ns_ = 0;
};

} // namespace

std::unique_ptr<device> make_cpu_device(std::string name, cpu_device_options options) {
  return std::make_unique<cpu_device>(std::move(name), std::move(options));
}

} // namespace troupe
