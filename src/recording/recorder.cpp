#include "recording/recorder.hpp"

#include <algorithm>

namespace troupe::recording {
namespace {

/// How many of the last runs are remembered whose values a bound session may hand on.
constexpr size_t remembered_runs = 8;

/// Returns whether an error is one that the run's caller has asked for.
bool is_callers(errc code) {
  return code == errc::cancelled || code == errc::timeout || code == errc::invalid_input ||
         code == errc::invalid_argument;
}

/// Returns how a value that a chunk of `e` has made is told.
made_form form_of(const moved_value& value, value_id v, const chunk& c, const execution& e) {
  const bool steers = !e.source().bodies.empty() || e.purpose(); // perhaps a body's condition
  const bool as_planned = value.filled() && !value.away() && !value.promised_for() &&
                          value.type() == e.source().program->values[v].type && value.dims() == e.bound()->dims[v];
  if (!as_planned || (steers && value.has_host() && value.host().bytes() <= few_bytes))
    return made_form::otherwise;
  if (!value.resident())
    return made_form::on_host;
  if (!is_on(*value.resident(), e.source().devices[c.device]))
    return made_form::otherwise;
  return value.has_host() ? made_form::on_both : made_form::on_device;
}

} // namespace

/// An account whose unusual answers are noted.
class recorder::watched_account final : public ledger_account {
public:
  watched_account(recorder& notes, std::shared_ptr<ledger_account> account)
      : notes_(notes), account_(std::move(account)) {}

  bool take(int64_t bytes) override {
    const bool taken = account_->take(bytes);
    notes_.note_answer(taken, 0);
    return taken;
  }
  void take_anyway(int64_t bytes) override { account_->take_anyway(bytes); }
  void give_back(int64_t bytes) override { account_->give_back(bytes); }
  bool waits() const override {
    const bool does = account_->waits();
    notes_.note_answer(!does, 1);
    return does;
  }
  void withdraw() override { account_->withdraw(); }
  std::optional<int64_t> missing_elsewhere() const override {
    const std::optional<int64_t> missing = account_->missing_elsewhere();
    notes_.note_answer(!missing, missing.value_or(0));
    return missing;
  }

private:
  recorder& notes_;
  const std::shared_ptr<ledger_account> account_;
};

ledger_accounts recorder::watch(ledger_accounts accounts) {
  for (std::shared_ptr<ledger_account>& account : accounts)
    account = std::make_shared<watched_account>(*this, std::move(account));
  return accounts;
}

void recorder::note_answer(bool usual, int64_t answer) {
  if (usual) {
    ++usual_answers_;
    return;
  }
  add(kind::ledger_answered, {}, {std::exchange(usual_answers_, 0), answer});
}

void recorder::write() {
  if (!over_)
    out_.add(next_);
}

void recorder::add(kind what, std::initializer_list<name> names, std::initializer_list<int64_t> numbers,
                   std::initializer_list<std::string_view> texts) {
  if (texts.size() == 0 && !over_)
    return out_.add(what, names, numbers);
  next_.reset(what, names, numbers);
  next_.texts.assign(texts.begin(), texts.end());
  write();
}

void recorder::add(kind what, std::initializer_list<name> names, std::initializer_list<int64_t> numbers,
                   const failure& why) {
  next_.reset(what, names, numbers);
  next_.add(why);
  write();
}

bool recorder::goes_on_with(dtype type) {
  if (has_facts(type) || over_)
    return !over_;
  add(kind::recording_ended, {}, {},
      {fmt::format("a run was given a value of type {}, which recordings do not hold", troupe::to_string(type))});
  over_ = true;
  out_.keep();
  return false;
}

int64_t recorder::add_inputs(const named_tensors& inputs) {
  const model& m = plans_->known_model();
  for (const auto& [input, value] : inputs) {
    if (!goes_on_with(value.type()))
      return 0;
    const bool decides = m.defaults.contains(input) || std::ranges::find(m.host_inputs, input) != m.host_inputs.end();
    next_.texts.push_back(input);
    next_.values.push_back(facts_of(value, decides ? INT64_MAX : few_bytes));
  }
  return static_cast<int64_t>(inputs.size());
}

void recorder::add(const run_request_ptr& started) {
  const run_request& request = *started;
  const run_options& how = request.options;
  runs_.emplace(request.ticket, started);
  next_.reset(kind::run_started, {{named::run, request.ticket}},
              {request.only_fetches, request.only_prepares, how.trace, how.timeout.count(),
               static_cast<int64_t>(how.keep.size())});
  next_.texts = how.keep;
  const int64_t inputs = add_inputs(request.inputs);
  for (const auto& [input, value] : how.device_inputs) {
    if (value && !goes_on_with(value->type()))
      return;
    next_.texts.push_back(input);
    next_.values.push_back(facts_of(value));
  }
  next_.numbers.push_back(inputs);
  next_.numbers.push_back(static_cast<int64_t>(how.device_inputs.size()));
  add_carried(request.carried);
  write();
}

void recorder::add_carried(const carried_values& carried) {
  const auto known = std::ranges::find(pairs_, carried.pairs);
  next_.numbers.push_back(known - pairs_.begin());
  if (known == pairs_.end()) {
    pairs_.push_back(carried.pairs);
    for (const carried_pair& pair : *carried.pairs) {
      next_.numbers.push_back(static_cast<int64_t>(pair.output));
      next_.numbers.push_back(static_cast<int64_t>(pair.input));
    }
  }
  if (carried.given->empty())
    return;
  const auto from = std::ranges::find_if(made_, [&](const auto& m) { return m.second.lock() == carried.given; });
  if (from != made_.end())
    next_.names.push_back({named::run, from->first});
  else
    for (const carried_value& value : *carried.given)
      next_.values.push_back(value ? facts_of(*value.value()) : value_facts());
}

void recorder::add_made(const session_machine& of, const chunk_place& place, const std::vector<uint32_t>* only) {
  of.for_each_made(place, [&](uint32_t position, const moved_value& value, const execution& e) {
    if (only && std::ranges::find(*only, position) == only->end())
      return;
    const chunk& c = e.source().chunks[place.chunk];
    const made_form form = form_of(value, c.downloads[position], c, e);
    if (form == made_form::on_host && !only)
      return;
    if (form == made_form::otherwise && (!value.filled() || goes_on_with(value.type())))
      next_.values.push_back(facts_of(value));
    next_.numbers.push_back(made_number(position, form));
  });
}

void recorder::add(const session_machine& of, const chunk_begun& begun) {
  next_.reset(kind::chunk_begun, {{named::execution, begun.execution}}, {begun.chunk});
  add_made(of, {begun.execution, begun.chunk}, &begun.made);
  write();
}

void recorder::add(const session_machine& of, const chunk_ended& ended) {
  next_.reset(kind::chunk_ended, {{named::execution, ended.execution}},
              {ended.chunk, ended.result.busy_ns, static_cast<int64_t>(ended.result.code)});
  if (ended.result.ok())
    add_made(of, {ended.execution, ended.chunk}, nullptr);
  else
    next_.texts.push_back(ended.result.message);
  write();
}

void recorder::add(const tensor_fetched& fetched) {
  const fetch_result& result = fetched.result;
  next_.reset(kind::value_fetched, {{named::run, fetched.ticket}}, {static_cast<int64_t>(result.code)});
  if (result.ok()) {
    add_inputs({{fetched.input, result.value}});
  } else {
    next_.texts.push_back(fetched.input);
    next_.texts.push_back(result.message);
  }
  write();
}

void recorder::add(uint64_t query, const named_tensors& inputs) {
  next_.reset(kind::plan_asked, {}, {static_cast<int64_t>(query)});
  add_inputs(inputs);
  write();
}

void recorder::add(const device_info& joined) {
  const std::vector<uint8_t> facts = encode(joined);
  add(kind::device_joined, {}, {}, {std::string_view(reinterpret_cast<const char*>(facts.data()), facts.size())});
}

void recorder::add_end(const failure& why) {
  add(kind::session_broke, {}, {}, why);
  out_.keep();
}

void recorder::add(const std::vector<command>& asked) {
  for (const command& c : asked) {
    describe(c, next_);
    write();
    const auto* answer = std::get_if<run_answer>(&c);
    if (!answer)
      continue;
    if (const auto run = runs_.extract(answer->ticket); !run.empty() && !answer->why.failed()) {
      made_.emplace_back(answer->ticket, run.mapped()->carried.made);
      if (made_.size() > remembered_runs)
        made_.pop_front();
    }
    if (answer->why.failed() && !is_callers(answer->why.code))
      out_.keep();
  }
}

} // namespace troupe::recording
