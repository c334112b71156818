#include "recording/replay.hpp"

#include "recording/recorded_machine.hpp"
#include "recording/recorded_runs.hpp"
#include "recording/scripted_ledger.hpp"

#include <algorithm>

namespace troupe::recording {
namespace {

/// Returns what a device says of a value that it made as the plan says.
value_facts planned_facts(made_form form, const chunk& c, uint32_t position, const execution& e) {
  const value_id v = c.downloads[position];
  const device_info& device = e.source().devices[c.device];
  return {.type = e.source().program->values[v].type,
          .dims = e.bound()->dims[v],
          .on_host = form != made_form::on_device,
          .is_resident = form != made_form::on_host,
          .device = form == made_form::on_host ? std::string() : device.name,
          .incarnation = form == made_form::on_host ? 0 : device.incarnation};
}

class replayer {
public:
  replayer(const recorded_session& recorded, const model_ptr& model, const measure_device& measure)
      : records_(recorded.records()), measure_(measure), runs_(model) {
    const session_facts& s = recorded.session;
    std::vector<device_info> devices;
    ledger_accounts accounts;
    for (device_facts d : s.devices) {
      measure_(d);
      devices.push_back(d.info);
      accounts.push_back(std::make_shared<scripted_account>(ledgers_));
    }
    device_count_ = devices.size();
    const std::vector<size_t> lost(s.lost.begin(), s.lost.end());
    const auto plans = std::make_shared<session_plans>(model, devices, lost, s.only);
    plans->prepare_ahead();
    machine_.emplace(devices, std::move(accounts), plans, s.completion, s.follows_speeds, nullptr);
  }

  replay_result run() {
    while (records_.next() && result_.difference.empty() && result_.ended.empty())
      step();
    return std::move(result_);
  }

private:
  /// Tells the machine of the next event, and compares what it asks for then.
  void step() {
    const uint64_t number = records_.number();
    fields event(records_.take());
    if (event.kind() == kind::recording_ended) {
      result_.ended = event.text();
      return;
    }
    const failure broke = read_outcome();
    ++result_.events;
    made_ = {};
    tell(number, event.kind(), event);
    if (!result_.difference.empty())
      return;
    if (made_.message != broke.message)
      return differ(number, broke.failed() ? "broke: " + broke.message : "went on",
                    made_.failed() ? "broke: " + made_.message : "went on");
    compare();
    if (broke.failed())
      result_.ended = "the session broke: " + broke.message;
  }

  /// Reads what followed an event: commands, and answers of ledgers. Returns why the session broke, if it did.
  failure read_outcome() {
    failure broke;
    recorded_.clear();
    for (; records_.next() && !is_event(records_.next()->kind) && records_.next()->kind != kind::recording_ended;) {
      const uint64_t number = records_.number();
      record r = records_.take();
      if (is_command(r.kind)) {
        recorded_.emplace_back(number, std::move(r));
        continue;
      }
      fields f(std::move(r));
      if (f.kind() == kind::session_broke) {
        broke = f.why();
      } else {
        const int64_t after = f.number();
        ledgers_->unusual.emplace_back(after, f.number());
      }
    }
    return broke;
  }

  /// Compares the commands of this session with those of the recorded one.
  void compare() {
    for (size_t i = 0; i < std::max(asked_.size(), recorded_.size()) && result_.difference.empty(); ++i) {
      const record was = i < recorded_.size() ? runs_.numbered_there(std::move(recorded_[i].second)) : record();
      const record is = i < asked_.size() ? runs_.numbered_here(std::move(asked_[i])) : record();
      ++result_.commands;
      result_.runs += is.kind == kind::answer_run ? 1 : 0;
      if (was != is)
        differ(i < recorded_.size() ? recorded_[i].first : records_.number(),
               i < recorded_.size() ? to_text(was) : "nothing", i < asked_.size() ? to_text(is) : "nothing");
    }
    asked_.clear();
  }

  void differ(uint64_t number, std::string_view was, std::string_view is) {
    result_.difference = fmt::format("record {}: the recorded session: {}; this one: {}", number, was, is);
  }

  /// Calls the machine with an event, and takes its commands if it is to be asked for them.
  template <class Event>
  void say(Event&& event, bool asks = true) {
    made_ = capture([&] {
      event(*machine_);
      if (!asks)
        return;
      machine_->carry_out(commands_, [this](const command& c) { take(c); });
    });
  }

  void tell(uint64_t number, kind what, fields& f) {
    switch (what) {
      case kind::time: {
        const run_time at{run_time::duration(f.number())};
        return say([&](recorded_machine& m) { m.set_time(at); }, false);
      }
      case kind::run_started: {
        const run_request_ptr request = runs_.make(f);
        return say([&](recorded_machine& m) { m.start_run(request); });
      }
      case kind::memory_changed: return say([&](recorded_machine& m) { m.on_memory_changed(); });
      case kind::ticked: return say([&](recorded_machine& m) { m.tick(); });
      case kind::closed: return say([&](recorded_machine& m) { m.close(); });
      case kind::run_cancelled: {
        const uint64_t run = runs_.in_process(f);
        return say([&](recorded_machine& m) { m.cancel(run); });
      }
      case kind::plan_asked: {
        const uint64_t query = f.count();
        const named_tensors inputs = recorded_runs::read_inputs(f);
        return say([&](recorded_machine& m) { m.ask_plan(query, inputs); });
      }
      case kind::device_lost:
      case kind::device_leaves:
      case kind::device_joined: return tell_of_device(what, f);
      default: return tell_answer(number, what, f);
    }
  }

  void tell_of_device(kind what, fields& f) {
    if (what == kind::device_joined) {
      const std::string bytes = f.text();
      device_facts d = decode_device(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
      measure_(d);
      ++device_count_;
      return say([&](recorded_machine& m) { m.add_device(d.info, std::make_shared<scripted_account>(ledgers_)); });
    }
    const size_t device = device_of(f);
    const std::string why = f.text();
    say([&](recorded_machine& m) {
      what == kind::device_lost ? m.lose_device(device, why) : m.leave_device(device, why);
    });
  }

  /// An answer to something that the session has asked for.
  void tell_answer(uint64_t number, kind what, fields& f) {
    switch (what) {
      case kind::chunk_begun: {
        chunk_begun begun = {.execution = runs_.in_process(f), .chunk = static_cast<chunk_id>(f.number()), .made = {}};
        begun.made = fill_made({begun.execution, begun.chunk}, f, true);
        return say([&](recorded_machine& m) { m.on(begun); }, false);
      }
      case kind::chunk_ended: {
        chunk_ended ended = {
            .execution = runs_.in_process(f), .chunk = static_cast<chunk_id>(f.number()), .result = {}};
        ended.result.busy_ns = f.number();
        const failure why = f.why();
        ended.result.code = why.code;
        ended.result.message = why.message;
        if (!why.failed())
          fill_made({ended.execution, ended.chunk}, f, false);
        return say([&](recorded_machine& m) { m.on(ended); });
      }
      case kind::plan_installed: {
        const uint64_t bound = runs_.in_process(f);
        const size_t device = device_of(f);
        plan_installed answer{.bound_plan = bound, .self = static_cast<device_index>(f.number()), .why = {}};
        answer.why = f.why();
        return say([&](recorded_machine& m) { m.on(device, answer); });
      }
      case kind::value_fetched: {
        tensor_fetched answer = read_fetched(f);
        return say([&](recorded_machine& m) { m.on(answer); });
      }
      case kind::control_continued: {
        const uint64_t execution = runs_.in_process(f);
        const continue_control next{{execution, static_cast<chunk_id>(f.number())}};
        return say([&](recorded_machine& m) { m.on(next); });
      }
      case kind::plan_made: return make_plan(number, f);
      default: fail(errc::invalid_input, "record {} ('{}') has no place there", number, to_string(what));
    }
  }

  void make_plan(uint64_t number, fields& f) {
    planned answer{.job = f.count(), .why = {}};
    answer.why = f.why();
    const auto job = jobs_.extract(answer.job); // empty if it was made before
    const failure made = job.empty() ? failure() : capture(job.mapped());
    if (made.failed() && !answer.why.failed())
      return differ(number, "a plan, which was made", "a plan that cannot be made: " + made.message);
    say([&](recorded_machine& m) { m.on(answer); });
  }

  void take(const command& c) {
    describe(c, asked_.emplace_back());
    if (const auto* job = std::get_if<plan_wanted>(&c))
      jobs_[job->job] = job->make;
    if (const auto* answer = std::get_if<run_answer>(&c))
      runs_.answered(*answer);
  }

  size_t device_of(fields& f) const {
    const size_t device = f.count();
    if (device >= device_count_)
      fail(errc::invalid_input, "a record names device {} of {}", device, device_count_);
    return device;
  }

  tensor_fetched read_fetched(fields& f) {
    tensor_fetched answer{.ticket = runs_.in_process(f), .input = {}, .result = {}};
    answer.result.code = static_cast<errc>(f.number());
    answer.input = f.text();
    if (f.has_values())
      answer.result.value = make_tensor(f.value());
    else
      answer.result.message = f.text();
    return answer;
  }

  /// Fills what a chunk has made: with `listed` only what the record lists. Returns the positions of that.
  std::vector<uint32_t> fill_made(const chunk_place& place, fields& f, bool listed) {
    std::map<uint32_t, made_form> forms;
    std::vector<uint32_t> positions;
    while (f.has_numbers()) {
      const auto [position, form] = made_of(f.count());
      positions.push_back(position);
      forms[position] = form;
    }
    machine_->state().for_each_made(place, [&](uint32_t position, moved_value& value, const execution& e) {
      const auto form = forms.find(position);
      if (listed && form == forms.end())
        return;
      const made_form how = form == forms.end() ? made_form::on_host : form->second;
      const value_facts facts =
          how == made_form::otherwise ? f.value() : planned_facts(how, e.source().chunks[place.chunk], position, e);
      if (!value.is_told())
        fill(value, facts);
    });
    return positions;
  }

  record_reader records_;
  const measure_device& measure_;
  std::shared_ptr<ledger_script> ledgers_ = std::make_shared<ledger_script>();
  size_t device_count_ = 0;
  std::optional<recorded_machine> machine_; // which is not recorded itself
  std::vector<command> commands_;
  std::vector<std::pair<uint64_t, record>> recorded_; // commands after an event, with their records' numbers …
  std::vector<record> asked_;                         // … and those of this session
  failure made_;                                      // what the machine threw at the last event
  recorded_runs runs_;
  std::map<uint64_t, std::function<void()>> jobs_;
  replay_result result_;
};

} // namespace

replay_result replay(const recorded_session& recorded, graph source, const measure_device& measure,
                     const std::string& policy_plugin) {
  if (recorded.dropped > 0)
    fail(errc::invalid_input,
         "the first {} records were dropped for want of memory: what is left can be printed, but not done again",
         recorded.dropped);
  session_options options = recorded.session.options;
  if (!options.policy_plugin.empty() && policy_plugin.empty())
    fail(errc::invalid_argument, "the session's policy was the plug-in '{}', which is opened only if it is given",
         options.policy_plugin);
  options.policy_plugin = policy_plugin;
  return replayer(recorded, make_model(std::move(source), options, 0, recorded.session.model_file), measure).run();
}

void for_each_text(const recorded_session& recorded, const std::function<void(uint64_t, const std::string&)>& each) {
  for (record_reader records(recorded.records()); records.next();) {
    const uint64_t number = records.number() + recorded.dropped;
    each(number, to_text(records.take()));
  }
}

} // namespace troupe::recording
