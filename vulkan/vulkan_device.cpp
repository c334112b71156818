#include "vulkan/vulkan_device.hpp"

#include "base/parallel.hpp"
#include "base/shared_work.hpp"
#include "ops/composed/input_conversion.hpp"
#include "vulkan/cache_growth.hpp"
#include "vulkan/chunk_results.hpp"
#include "vulkan/chunk_times.hpp"
#include "vulkan/device_choice.hpp"
#include "vulkan/direct_copies.hpp"
#include "vulkan/installations.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace troupe::vulkan {
namespace {

chunk_result failure_of(const std::exception& e) {
  const auto* known = dynamic_cast<const error*>(&e);
  return {.code = known ? known->code() : errc::device_failed, .message = e.what()};
}

/// The other half is for memory of the device itself.
size_t max_imports(const gpu_snapshot& s) {
  return s.max_allocations / 2;
}

/// Writes a value to mapped memory of the GPU or of the host, as what `conversion` makes of it if there is one. What is
/// written to the GPU's memory is small: threads that are awake help, others would have to wake up.
void write_upload(const tensor& value, std::byte* to, const input_conversion* conversion) {
  constexpr int64_t piece = 32 << 10, copied_in_parallel = 1 << 20; // bytes
  const int64_t bytes = value.bytes(), width = bytes / value.size();
  const auto* from = static_cast<const std::byte*>(value.data());
  if (conversion)
    share_work(value.size(), piece / width, [&](int64_t begin, int64_t end) {
      convert_input(*conversion, value.data<float>() + begin, to + bytes_of(conversion->to, begin), end - begin);
    });
  else if (bytes >= copied_in_parallel)
    parallel_copy(to, from, bytes);
  else
    share_work(bytes, piece, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
}

class vulkan_device final : public device {
public:
  vulkan_device(std::shared_ptr<const instance> gpus, size_t index, std::string name,
                const vulkan_device_options& options)
      : shared_context_(std::make_shared<device_context>(std::move(gpus), index, options.queues)),
        context_(*shared_context_), options_(options), features_(features_of(context_.facts())),
        device_memory_(context_, memory_use::device, options.force_non_coherent, options.memory_limit),
        upload_memory_(context_, memory_use::upload, options.force_non_coherent),
        download_memory_(context_, memory_use::download, options.force_non_coherent),
        parameter_memory_(context_, memory_use::parameters, options.force_non_coherent),
        kernels_(context_, options.alter_shader), weights_(device_memory_),
        row_copies_(context_, kernels_, parameter_memory_),
        installed_(device_memory_, parameter_memory_,
                   row_copies_.is_available() ? context_.facts().max_storage_range : 0),
        imports_(context_, options.blocks, upload_memory_, download_memory_, max_imports(context_.facts())),
        peers_(shared_context_, imports_.available() ? options.for_peers : nullptr),
        residents_(context_, name, device_memory_, imports_, row_copies_), clock_(context_),
        make_output_(options.blocks ? maker_in(options.blocks) : make_plain_tensor), queue_(context_, options.ends) {
    info_.name = std::move(name);
    info_.kind = device_kind::vulkan;
    info_.description = context_.facts().name;
    info_.total_bytes = total_bytes(context_.facts());
    info_.memory_bytes = std::min(usable_bytes(context_.facts()), options.memory_limit);
    info_.units = static_cast<int32_t>(features_.units);
    info_.host_memory = false;
    info_.prefers_channels_last = !options.prefer_plain;
    info_.gpu = features_;
    info_.processor = is_hardware(context_.facts()) ? info_.name.substr(0, info_.name.find('#')) : "cpu";
    recording_.unified = is_unified(context_.facts()) && !options.poison && !options.force_staging;
    writes_inputs_ = !recording_.unified && imports_.available() && maps_own_memory(context_.facts());
    info_.transfers = recording_.unified     ? transfer_path::mapped
                      : imports_.available() ? transfer_path::imported
                                             : transfer_path::staged;
    info_.copies_beside_work = info_.transfers == transfer_path::imported && context_.has(lane::copies_in);
    info_.peer_set = peers_.available() && !recording_.unified ? options.peer_set : 0;
    queue_.while_waiting([this] { peers_.release_lost(); });
    info_.profile = is_hardware(context_.facts()) ? typical_gpu(features_.units, features_.cooperative_matrix)
                                                  : typical_software_gpu(thread_count());
  }

  const device_info& info() const override { return info_; }

  void install(bound_plan_ptr bound, device_index self) override {
    with_install_tools([&](const install_tools& tools) { installed_.add(std::move(bound), self, tools); });
  }

  void retire(uint64_t bound_plan) override { installed_.retire(bound_plan); }

  void submit(chunk_work work, chunk_done done) override {
    installed_.forget_retired();
    made_ahead_.clear();
    try {
      if (work.stop && work.stop->load(std::memory_order_relaxed))
        fail(errc::cancelled, "the run was cancelled");
      if (!peers_.await(work))
        fail(errc::cancelled, "the run was cancelled while it waited for another GPU");
      run(work, done);
    } catch (const std::exception& e) {
      // After what is in flight: completions keep the order of submission.
      queue_.after_all([done, result = failed(e)](VkResult) { done(result); });
    }
    residents_.grow_ahead(); // the GPU is at work now
    residents_.reclaim();    // what takes memory before asks for it first
  }

  std::vector<uint32_t> take_made_ahead() override { return std::exchange(made_ahead_, {}); }

  void fetch(const device_tensor& value, const fetch_done& done) override {
    try {
      residents_.reclaim();
      if (queue_.submissions() + 1 >= options_.lose_at)
        check(VK_ERROR_DEVICE_LOST, "fetching a value");
      downloaded_bytes_ += value->bytes();
      residents_.fetch(value, queue_, done);
    } catch (const std::exception& e) {
      const chunk_result why = failed(e);
      queue_.after_all([done, result = fetch_result{{}, why.code, why.message}](VkResult) { done(result); });
    }
  }

  device_tensor put(const tensor& value) override {
    reclaim();
    uploaded_bytes_ += value.bytes();
    return residents_.put(value, queue_);
  }

  std::function<void()> if_lost() override {
    if (!peers_.available())
      return nullptr;
    return [own = std::weak_ptr(peers_.own())] { // its end ends the waits for it, too
      if (const auto still = own.lock())
        still->lose();
    };
  }

  device_stats stats() const override {
    return {.chunks = chunks_,
            .busy_ns = busy_ns_,
            .weight_bytes = weights_.bytes(),
            .arena_bytes = installed_.arena_bytes(),
            .installed_plans = installed_.count(),
            .reserved_bytes = device_memory_.reserved_bytes(),
            .used_bytes = device_memory_.reserved_bytes() - device_memory_.free_bytes(),
            .largest_gap_bytes = device_memory_.largest_gap_bytes(),
            .recorded_chunks = recorded_chunks_,
            .resident_bytes = residents_.bytes(),
            .uploaded_bytes = uploaded_bytes_,
            .downloaded_bytes = downloaded_bytes_,
            .pending_kernels = static_cast<int64_t>(kernels_.pending())};
  }

private:
  /// Frees all that is needed no more: what comes next may need the room.
  void reclaim() {
    installed_.forget_retired();
    residents_.reclaim();
    imports_.forget_retired();
  }

  template <class F>
  void with_install_tools(F&& f) {
    reclaim();
    const bool direct = imports_.available() && !recording_.unified;
    uploader uploads(context_, upload_memory_, queue_, options_.force_staging);
    const bool constants = options_.constant_blocks.value_or(context_.facts().type != VK_PHYSICAL_DEVICE_TYPE_CPU);
    f(install_tools{device_memory_, uploads, weights_,
                    kernel_source{kernels_,
                                  {options_.measured.get(), options_.alternative},
                                  constants,
                                  options_.kernels == kernel_time::later},
                    direct, writes_inputs_, !recording_.unified, row_copies_.is_available()});
  }

  /// `caches`: where those are that grow in place.
  recorded_chunk& recorded(program_slot& slot, chunk_id id, const installed_chunk& c, recording how,
                           std::span<const value_place> caches) {
    recorded_for key{id, how, {}};
    for (const value_place& cache : caches)
      key.caches.push_back(cache.id);
    auto found = slot.chunks.find(key);
    if (found == slot.chunks.end()) {
      if (!caches.empty())
        forget_recorded(slot);
      recorded_chunk made =
          record_chunk(context_, kernels_, c, slot.memory,
                       {writes_inputs_ ? parameter_memory_ : upload_memory_, download_memory_, imports_, row_copies_},
                       recording_, how, caches);
      ++recorded_chunks_;
      found = slot.chunks.emplace(std::move(key), std::move(made)).first;
    }
    found->second.used = ++uses_;
    return found->second;
  }

  /// Caches come and go: keeps what was recorded for those that ran last.
  static void forget_recorded(program_slot& slot) {
    constexpr size_t most = 8;
    if (slot.chunks.size() >= most && slot.in_flight == 0)
      slot.chunks.erase(std::ranges::min_element(slot.chunks, {}, [](const auto& entry) { return entry.second.used; }));
  }

  static const installed_chunk& chunk_of(const gpu_program& program, const chunk_work& work) {
    const auto chunk = program.chunks.find(work.chunk);
    expects(chunk != program.chunks.end(), "the GPU was sent a chunk that is not its own");
    const installed_chunk& c = chunk->second;
    expects(work.uploads.size() == c.uploads.size() && work.downloads.size() == c.downloads.size(),
            "the GPU was sent a wrong number of values");
    return c;
  }

  void run(chunk_work& request, const chunk_done& done) {
    auto values = std::make_shared<run_values>();
    values->work = std::move(request);
    const chunk_work& work = values->work;
    installed_binding& binding = installed_.find(work.bound_plan);
    const bound_plan& bound = *binding.bound;
    std::optional<grown_caches> caches = take_caches_ahead(residents_, binding, work);
    const cache_way way = caches || grows_in_place(residents_, binding, work) ? cache_way::in_place : cache_way::copied;
    prepare_way(binding, way);
    const installed_chunk& c = chunk_of(*binding.ways.at(static_cast<size_t>(way)).on->program, work);
    if (!installations::has_slot(binding, way, work.slot))
      residents_.reclaim();
    program_slot& slot = installed_.slot_of(binding, way, work.slot);
    const recording how = recording_of(c, work);
    if (!caches)
      caches = way == cache_way::in_place ? extend_caches(residents_, binding, *values) : grown_caches();
    recorded_chunk& r = recorded(slot, work.chunk, c, how, caches->rows);
    reset_queries(context_, r);
    stage_uploads(c, bound, r, slot.memory, work, how == recording::narrowed);
    if (options_.poison)
      poison_results(r);
    const copy_tools tools{context_, imports_, residents_, row_copies_, peers_, work_beside(slot, c), options_.poison};
    const chunk_commands commands = prepare_copies(r, c, bound, slot.memory, tools, *values);
    row_copies_.submit(values->before, queue_);
    made_ahead_ = leave_caches(std::move(*caches), binding, work);
    promise_values(c, bound, r, peers_.own(), *values);
    const bool lost = queue_.submissions() + 1 >= options_.lose_at;
    if (lost) // it keeps no promise
      values->peers.signalled.semaphore = VK_NULL_HANDLE;
    const auto end = [this, &binding, &slot, values, done](chunk_result answer) {
      --in_flight_;
      --slot.in_flight;
      --binding.in_flight; // last: the plan may end from here on
      done(std::move(answer));
    };
    ++binding.in_flight;
    ++slot.in_flight;
    ++in_flight_;
    try {
      submit_chunk(queue_, commands, *values, *slot.last, [=, this, &binding, &c, &r, &slot](VkResult result) {
        end(complete(c, *binding.bound, r, slot.memory, *values, lost ? VK_ERROR_DEVICE_LOST : result));
      });
      if (!values->promised.empty())
        peers_.own()->submitted(values->peers.signalled.value);
    } catch (const std::exception& e) {
      // Parts of it may be on their way: until those are complete, the GPU uses what the run does.
      made_ahead_.clear();
      queue_.after_all([end, result = failed(e)](VkResult) { end(result); });
    }
  }

  /// Makes what a binding runs in one way, where it is not there yet, or could be faster.
  void prepare_way(installed_binding& binding, cache_way way) {
    if (!installations::has_way(binding, way))
      with_install_tools([&](const install_tools& tools) { installed_.make_way(binding, way, tools); });
    else if (installations::is_outdated(binding, way))
      with_install_tools([&](const install_tools& tools) { installed_.improve_way(binding, way, tools); });
  }

  /// Returns what the GPU does beside a chunk: others' work, or the execution's own chunks around this one.
  meanwhile work_beside(const program_slot& slot, const installed_chunk& c) const {
    const bool others = in_flight_ > slot.in_flight;
    const bool own = slot.in_flight > 0;
    const bool after_copies = own && slot.last->out[0].value > 0;
    // Poison is written by the first chunk: no copy in may come earlier.
    return {.in = others || (own && !options_.poison), .out = others || c.next_is_free || after_copies};
  }

  /// The host narrows inputs that it has; where the kernel's time is asked for, the kernel does.
  recording recording_of(const installed_chunk& c, const chunk_work& work) const {
    bool narrows = c.narrows;
    for (size_t i = 0; narrows && i < c.uploads.size(); ++i)
      narrows = !c.uploads[i].narrowed || !residents_.find(*work.uploads[i]);
    return work.timed ? recording::timed : narrows ? recording::narrowed : recording::plain;
  }

  void stage_uploads(const installed_chunk& c, const bound_plan& bound, const recorded_chunk& r, const arena_slot& slot,
                     const chunk_work& work, bool narrowed) {
    for (size_t i = 0; i < work.uploads.size(); ++i) {
      const installed_transfer& t = c.uploads[i];
      if (t.in_place)
        continue;
      if (const device_tensor& here = residents_.find(*work.uploads[i])) {
        expects(here->bytes() == t.bytes(bound), "a resident upload's size is not the planned one");
        continue;
      }
      const tensor& upload = work.uploads[i]->host();
      expects(upload.size() == volume(bound.dims[t.value]), "an upload's size is not the planned one");
      const int64_t bytes = upload.bytes();
      uploaded_bytes_ += bytes;
      if (bytes == 0 || t.is_direct())
        continue;
      const host_place place = upload_place(r, t, slot);
      write_upload(upload, place.memory->mapped() + place.offset, narrowed && t.narrowed ? &t.conversion : nullptr);
      place.memory->flush(place.offset, bytes);
    }
  }

  /// A chunk that is complete after its GPU was given up does not count: its peers may have been told to wait no more
  /// before it was.
  void keep_promise(uint64_t value) const {
    if (value == 0)
      return;
    if (peers_.own()->is_lost())
      fail(errc::device_lost, "{} was given up before its work was complete", info_.name);
    peers_.own()->keep(value);
  }

  /// Runs on the waiter's thread.
  chunk_result complete(const installed_chunk& c, const bound_plan& bound, const recorded_chunk& r,
                        const arena_slot& slot, run_values& values, VkResult result) {
    chunk_result answer;
    try {
      check(result, "waiting for the GPU");
      read_times(context_, clock_, bound, c, r, values, answer);
      keep_promise(values.peers.signalled.value);
      forget_stayed(c, residents_, values.work, answer.timings);
      downloaded_bytes_ += fill_downloads(c, bound, r, slot, make_output_, values);
    } catch (const std::exception& e) {
      return failed(e);
    }
    ++chunks_;
    busy_ns_ += answer.busy_ns;
    return answer;
  }

  /// No peer is to wait any more for what a lost GPU has promised.
  chunk_result failed(const std::exception& e) {
    chunk_result why = failure_of(e);
    if (why.code == errc::device_lost && peers_.available())
      peers_.own()->lose();
    return why;
  }

  const std::shared_ptr<device_context> shared_context_; // with peers, which wait for its semaphore
  device_context& context_;
  const vulkan_device_options options_;
  const gpu_features features_;
  device_info info_;
  recording_options recording_;
  bool writes_inputs_ = false; // staging memory for uploads is the GPU's own
  memory_pool device_memory_, upload_memory_, download_memory_, parameter_memory_;
  pipelines kernels_;
  device_weights weights_;
  row_copier row_copies_;
  // Plans end before the pools that they take memory from, and after the queue, which waits for what is in flight.
  installations installed_;
  std::atomic<int64_t> chunks_{0}, in_flight_{0}, busy_ns_{0}, uploaded_bytes_{0}, downloaded_bytes_{0};
  int64_t recorded_chunks_ = 0;
  std::vector<uint32_t> made_ahead_; // of the chunk that was submitted last
  uint64_t uses_ = 0;                // of what is recorded
  host_imports imports_;
  peers peers_; // ends after the queue, when all work has
  residents residents_;
  const gpu_clock clock_;
  const tensor_maker make_output_; // in memory whose pages are there
  timeline queue_;
};

} // namespace

std::unique_ptr<device> make_vulkan_device(std::shared_ptr<const instance> gpus, size_t index, std::string name,
                                           const vulkan_device_options& options) {
  return std::make_unique<vulkan_device>(std::move(gpus), index, std::move(name), options);
}

} // namespace troupe::vulkan
