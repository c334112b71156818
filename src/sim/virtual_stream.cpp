#include "sim/virtual_stream.hpp"

#include "sim/arrival_times.hpp"

namespace troupe::sim {
namespace {

double output_bytes_of(const run_result& result) {
  double bytes = 0;
  for (const auto& [name, t] : result.outputs)
    bytes += static_cast<double>(t.bytes());
  return bytes;
}

} // namespace

virtual_stream::virtual_stream(virtual_world& world, const model_ptr& m, prepared_replicas replicas,
                               const named_tensors& inputs)
    : world_(world), model_(m), inputs_(inputs), rows_(std::move(replicas.rows)) {
  for (prepared_replica& r : replicas.replicas) {
    sets_.push_back(std::move(r.devices));
    predicted_.push_back(r.predicted);
    sessions_.push_back(std::make_unique<virtual_session>(world, std::move(r.plans)));
  }
  if (m->options.strategy != strategy::none)
    machine_.emplace(
        machine_for(m->options.strategy, m->options.stream, predicted_, sets_.front().own.size(), m->strategy_plugin));
}

std::vector<request_record> virtual_stream::play(const simulation_options& how) {
  const auto run = [&] {
    while (world_.events.step()) {
    }
  };
  if (how.warm_up > 0) {
    schedule({}, how.warm_up, how.seed);
    run();
    records_.clear();
    world_.begin_to_count();
  }
  for (const simulated_loss& loss : how.losses)
    schedule(loss);
  for (const simulated_speed& change : how.speeds)
    schedule(change);
  schedule(how.arrivals, how.requests, how.seed);
  listed_ = &how.arrivals;
  run();
  listed_ = nullptr;
  expects(records_.size() == how.requests, "a simulated request never came");
  return std::move(records_);
}

void virtual_stream::schedule(const arrivals& how, size_t requests, uint64_t seed) {
  if (how.how == arrivals::process::closed) {
    const size_t first = std::min(how.in_flight, requests);
    to_come_ = requests - first;
    for (size_t i = 0; i < first; ++i)
      world_.events.after(0, [this] { come(); });
    return;
  }
  for (const double at : arrival_times(how, requests, seed))
    world_.events.after(at, [this] { come(); });
}

size_t virtual_stream::find_device(const std::string& name, std::string_view for_what) const {
  const auto at =
      std::find_if(world_.infos.begin(), world_.infos.end(), [&](const device_info& d) { return d.name == name; });
  if (at == world_.infos.end())
    fail(errc::invalid_argument, "{}: the cluster has no device '{}'", for_what, name);
  return static_cast<size_t>(at - world_.infos.begin());
}

void virtual_stream::schedule(const simulated_speed& change) {
  const size_t device = find_device(change.device, "simulated_speed");
  world_.events.after(change.at_ms * 1e-3,
                      [this, device, pace = 100 / change.percent] { world_.devices.set_pace(device, pace); });
}

void virtual_stream::schedule(const simulated_loss& loss) {
  const size_t device = find_device(loss.device, "simulated_loss");
  world_.events.after(loss.at_ms * 1e-3, [this, device] { lose(device); });
  if (loss.back_ms > 0)
    world_.events.after(loss.back_ms * 1e-3, [this, device] { bring_back(device); });
}

void virtual_stream::come() {
  const size_t number = records_.size();
  records_.push_back({.came = world_.events.now(), .answered = 0, .why = {}});
  const named_tensors& inputs = inputs_of_request(number);
  if (!machine_)
    return sessions_.front()->run(inputs, [this, number](run_answer& a) { answered(number, a.why); });
  tell([&](stream_machine& m, run_time now) {
    const request_rows rows = rows_->measure(inputs);
    stream_request r{.rows = rows.rows, .key = rows.key, .divisible = rows.divisible, .deadline = {}, .pinned = {}};
    if (model_->options.stream.micro_batch == 0 && rows.divisible)
      r.micro_batch = micro_batch_of(model_->options.strategy, rows.rows, sets_.front().own.size());
    if (const seconds within = deadline_of(number); within > 0)
      r.deadline = time_of(world_.events.now() + within);
    requests_[*m.submit(r, now)] = number;
  });
}

const named_tensors& virtual_stream::inputs_of_request(size_t number) {
  return listed_ && !listed_->rows.empty() ? inputs_of(listed_->rows[number]) : inputs_;
}

seconds virtual_stream::deadline_of(size_t number) const {
  return listed_ && !listed_->deadlines_s.empty() ? listed_->deadlines_s[number] : 0;
}

void virtual_stream::answered(size_t request, const failure& why) {
  records_[request].answered = world_.events.now();
  records_[request].why = why;
  if (const seconds within = deadline_of(request), took = world_.events.now() - records_[request].came;
      !why.failed() && within > 0 && took > within)
    records_[request].why = {errc::timeout,
                             fmt::format("an answer took {:g} s, its deadline was {:g} s", took, within)};
  if (to_come_ == 0)
    return;
  --to_come_; // now: others may be answered before it comes
  world_.events.after(0, [this] { come(); });
}

// -- with a strategy

template <class Event>
void virtual_stream::tell(Event&& event) {
  event(*machine_, time_of(world_.events.now()));
  std::vector<stream_command> commands;
  machine_->take_commands(commands);
  for (stream_command& c : commands)
    std::visit([this](auto& what) { this->carry_out(what); }, c);
}

void virtual_stream::carry_out(start_piece& what) {
  int64_t rows = 0;
  for (const piece_part& part : what.parts)
    rows += part.rows;
  const piece_id id = what.piece;
  const size_t replica = what.replica;
  pieces_[id] = {std::move(what.parts), replica};
  const bool whole = rows_->symbol().empty();
  // After this event, which is being told.
  world_.events.after(0, [this, id, replica, &inputs = whole ? inputs_ : inputs_of(rows)] {
    sessions_[replica]->run(inputs, [this, id](run_answer& a) { ended(id, a); });
  });
}

void virtual_stream::carry_out(answer_request& what) {
  const auto request = requests_.extract(what.request);
  // What a queue costs, and the parts' way into one tensor.
  world_.events.after(queue_seconds,
                      [this, number = request.mapped(), why = std::move(what.why)] { answered(number, why); });
}

void virtual_stream::carry_out(wake_at& what) {
  const seconds at = std::chrono::duration<double>(what.time.time_since_epoch()).count();
  world_.events.at(at, [this] { tell([](stream_machine& m, run_time now) { m.tick(now); }); });
}

void virtual_stream::ended(piece_id id, const run_answer& answer) {
  const piece p = std::move(pieces_.extract(id).mapped());
  const bool lost = answer.why.failed() && answer.why.code == errc::device_lost;
  // Parts of a request are copied into one tensor, those that are there meanwhile.
  const auto request = requests_.find(p.parts.front().request); // none if it was given up
  const bool is_part = p.parts.size() == 1 && request != requests_.end() &&
                       p.parts.front().rows != rows_->measure(inputs_of_request(request->second)).rows;
  const double gather_s = is_part ? output_bytes_of(answer.result) / gather_bytes_per_s : 0;
  world_.events.after(gather_s, [this, id, lost, why = answer.why] {
    tell([&](stream_machine& m, run_time now) { m.piece_ended(id, {lost, true, why}, now); });
  });
}

const named_tensors& virtual_stream::inputs_of(int64_t rows) {
  const auto [found, is_new] = by_rows_.try_emplace(rows);
  if (!is_new)
    return found->second;
  const std::string& symbol = rows_->symbol();
  for (const auto& [name, t] : inputs_) {
    shape dims = t.dims();
    for (const value_info& input : model_->inputs)
      if (input.name == name && input.dims)
        for (size_t axis = 0; axis < dims.size(); ++axis)
          if ((*input.dims)[axis].symbol_name() == symbol)
            dims[axis] = rows;
    found->second[name] = dims == t.dims() ? t : world_.values.zeros(t.type(), std::move(dims));
  }
  return found->second;
}

// -- devices that are lost

void virtual_stream::lose(size_t device) {
  const std::string name = world_.infos[device].name;
  world_.lose(device);
  for (auto& s : sessions_)
    s->lose(device, "the simulation takes it out");
  if (!machine_)
    return;
  for (size_t r = 0; r < sets_.size(); ++r)
    if (const auto& own = sets_[r].own; own.size() == 1 && own.front() == name)
      tell([&](stream_machine& m, run_time now) { m.replica_lost(r, "device '" + name + "' is lost", now); });
}

void virtual_stream::bring_back(size_t device) {
  const size_t back = world_.bring_back(device);
  for (auto& s : sessions_)
    s->add(back);
  if (!machine_)
    return;
  for (size_t r = 0; r < sets_.size(); ++r)
    if (const auto& own = sets_[r].own;
        own.size() == 1 && own.front() == world_.infos[back].name && !machine_->replicas().is_living(r))
      tell([&](stream_machine& m, run_time now) { m.replica_joined(r, predicted_[r], now); });
}

} // namespace troupe::sim
