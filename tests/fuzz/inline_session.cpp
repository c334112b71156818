#include "fuzz/inline_session.hpp"

#include "cost/cost_model.hpp"
#include "cpu/cpu_device.hpp"
#include "support/find_or_make.hpp"

#include <algorithm>
#include <future>

namespace troupe::test {

namespace {

/// Work of an iteration of a loop beside its nodes: binding, dispatch.
constexpr double iteration_work = 1e5;

std::vector<device_info> infos_of(const std::vector<std::unique_ptr<device>>& devices, int64_t memory_bytes) {
  std::vector<device_info> infos;
  for (const auto& d : devices) {
    infos.push_back(d->info());
    infos.back().memory_bytes = memory_bytes;
  }
  return infos;
}

/// Takes an execution's place among those in progress as long as it lives.
class in_progress {
public:
  in_progress(std::vector<const execution*>& running, const execution& e) : running_(running) {
    running_.push_back(&e);
  }
  ~in_progress() { running_.pop_back(); }
  in_progress(const in_progress&) = delete;
  in_progress& operator=(const in_progress&) = delete;

private:
  std::vector<const execution*>& running_;
};

} // namespace

inline_session::inline_session(graph source, session_options options, size_t cpus, const inline_limits& limits)
    : limits_(limits) {
  for (size_t i = 0; i < cpus; ++i)
    devices_.push_back(make_cpu_device(i == 0 ? "cpu" : fmt::format("cpu#{}", i), {.poison = true}));
  model_ = make_model(std::move(source), std::move(options), 0);
  plans_ = std::make_unique<session_plans>(model_, infos_of(devices_, limits.memory_bytes));
  plans_->prepare_ahead();
}

inline_session::~inline_session() = default;

std::vector<tensor> inline_session::run(named_tensors inputs) {
  work_left_ = limits_.work;
  const auto request = std::make_shared<run_request>(std::move(inputs), run_options{});
  execution e(request, find_or_make([&](const plan_outcome& made) {
                return plans_->prepare({request->inputs, {}}, made);
              }),
              completion_mode::device);
  return execute(e);
}

std::vector<tensor> inline_session::execute(execution& e) {
  const in_progress here(running_, e);
  for (uint32_t segment = 0; !e.values().are_complete(); ++segment) {
    expects(segment < e.source().segment_count, "every chunk is complete, but an output is missing");
    const auto bind = [&](const plan_outcome& made) { return plans_->bind(e.prepared(), segment, made); };
    run_segment(e, segment == 0 ? e.prepared().bound : find_or_make(bind));
    e.leave_segment();
  }
  return e.values().outputs();
}

void inline_session::run_segment(execution& e, const bound_plan_ptr& bound) {
  for (device_index d = 0; d < devices_.size(); ++d)
    devices_[d]->install(bound, d);
  e.start(bound, 0);
  while (std::optional<chunk_work> work = e.take()) {
    const chunk_id id = work->chunk;
    chunk_result result = run_chunk(e, *std::move(work));
    expects(e.in_flight().end(id), "a chunk ended that was not sent");
    if (!result.ok())
      throw error(result.code, result.message);
    e.complete(id, result);
  }
  expects(e.segment_finished() || e.values().are_complete(), "no chunk is ready, but the segment is not finished");
}

chunk_result inline_session::run_chunk(execution& e, chunk_work work) {
  const chunk& c = e.source().chunks[work.chunk];
  if (e.source().devices[c.device].kind == device_kind::control)
    return run_control(e, std::move(work));
  count_work(*e.bound(), c);
  chunk_result result;
  devices_[c.device]->submit(std::move(work), [&](chunk_result r) { result = std::move(r); });
  return result;
}

chunk_result inline_session::run_control(execution& e, chunk_work work) {
  control_flow flow(e.source().program->nodes[e.source().chunks[work.chunk].nodes.front()], operands_of(e, work));
  while (auto call = flow.next()) {
    count_work(iteration_work);
    const planned_model_ptr& body = body_of(e, work.chunk, call->body);
    prepared_run prepared = find_or_make([&](const plan_outcome& made) {
      return plans_->prepare_body(body, call->inputs, e.prepared().symbols, taken(), made);
    });
    execution inner(e.request(), std::move(prepared), completion_mode::device, {e.id(), work.chunk},
                    std::move(call->inputs));
    flow.take(execute(inner));
  }
  fill_results(e, work.chunk, flow);
  return {};
}

std::vector<int64_t> inline_session::taken() const {
  std::vector<int64_t> bytes(devices_.size());
  for (const execution* e : running_)
    for (device_index d = 0; d < bytes.size(); ++d)
      bytes[d] += bytes_needed(*e->bound()->layout, d);
  return bytes;
}

void inline_session::count_work(const bound_plan& bound, const chunk& c) {
  const graph& program = *bound.source->program;
  for (node_id n : c.nodes) {
    const call_shapes call = shapes_of(program, program.nodes[n], [&](value_id v) { return bound.dims[v]; });
    const node_work work = work_of(program.nodes[n], call);
    count_work(work.flops + work.bytes);
  }
}

void inline_session::count_work(double work) {
  if ((work_left_ -= work) < 0)
    fail(errc::timeout, "the model asks for more work than a fuzzing run may take");
}

namespace {

/// Returns a number that depends on all arguments.
uint32_t mix(uint32_t seed, uint32_t a) {
  seed ^= a + 0x9e3779b9 + (seed << 6) + (seed >> 2);
  return seed * 2654435761u;
}

shape made_up_dims(const value_info& info, uint32_t seed) {
  constexpr int64_t usual[] = {2, 2, 3, 1, 2, 4, 0, 7};
  if (!info.dims)
    return {2, 3};
  shape dims;
  for (const dim& d : *info.dims)
    dims.push_back(d.is_constant()
                       ? d.constant()
                       : usual[mix(seed, static_cast<uint32_t>(std::hash<std::string>{}(d.symbol_name()))) % 8]);
  return dims;
}

template <class T>
T made_up_element(uint32_t bits) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(bits % 3, static_cast<char>('a' + bits % 7));
  } else if constexpr (std::is_same_v<T, bool>) {
    return bits % 2 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    constexpr T odd[] = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), static_cast<T>(-1), T{0}};
    return bits % 64 < 4 ? odd[bits % 4] : static_cast<T>(static_cast<int>(bits >> 8 & 7) - 1);
  } else {
    constexpr float inf = std::numeric_limits<float>::infinity();
    constexpr float odd[] = {inf, -inf, std::numeric_limits<float>::quiet_NaN(), -0.f, 1e-40f, 3e38f, -3e38f, 1e9f};
    return static_cast<T>(bits % 64 < 8 ? odd[bits % 8] : static_cast<float>(bits >> 8 & 63) / 16 - 1);
  }
}

template <class T>
void fill(tensor& t, uint32_t seed) {
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<T>()[i] = made_up_element<T>(mix(seed, static_cast<uint32_t>(i)));
}

void fill_any(tensor& t, uint32_t seed) {
  if (t.type() == dtype::string)
    fill<std::string>(t, seed);
  else if (t.type() == dtype::boolean)
    fill<bool>(t, seed);
  else if (types::numeric & set_of(t.type()))
    visit_numeric(t.type(), [&]<class T>(type_tag<T>) { fill<T>(t, seed); });
  else
    for (int64_t i = 0; i < t.bytes(); ++i)
      t.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(mix(seed, static_cast<uint32_t>(i)));
}

} // namespace

named_tensors make_up_inputs(std::span<const value_info> inputs, uint32_t seed) {
  constexpr int64_t most_bytes = 1 << 18;
  named_tensors made;
  for (const value_info& info : inputs) {
    const shape dims = made_up_dims(info, seed);
    if (volume(dims) > most_bytes || bytes_of(info.type, volume(dims)) > most_bytes)
      fail(errc::out_of_memory, "input '{}' is too large to be made up", info.name);
    tensor t(info.type, dims);
    fill_any(t, seed);
    made[info.name] = std::move(t);
  }
  return made;
}

} // namespace troupe::test
