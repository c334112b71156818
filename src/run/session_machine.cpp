#include "run/session_machine.hpp"

namespace troupe {
namespace {

/// Throws if an input is given twice. Later it may be there twice: host copies are kept beside.
void check_given_once(const run_request& request) {
  for (const auto& [input, value] : request.options.device_inputs)
    if (request.inputs.contains(input))
      fail(errc::invalid_input, "input '{}' is given twice, as a host tensor and on a device", input);
}

/// Returns whether the device owes an answer to other than chunks.
bool owes_answer(const session_parts& s, size_t device) {
  return s.installed.is_installing(device) || s.copies.are_awaited_from(device);
}

/// Lets those devices go that leave and that nothing needs any more.
void let_devices_go(session_parts& s) {
  const auto needs = [&](size_t device) {
    return owes_answer(s, device) || s.book.has([&](const execution& e) { return runs_on(*e.planned(), device); });
  };
  for (const size_t device : s.devices.let_go(needs)) {
    if (s.installed.is_on(device)) // what runs in flight have bound meanwhile
      s.plans->bound().forget_all();
    s.memory.retire_evicted();
    s.commands.push_back(let_device_go{device});
  }
}

} // namespace

session_machine::session_machine(const std::vector<device_info>& devices, ledger_accounts accounts,
                                 std::shared_ptr<session_plans> plans, completion_mode completion, bool follows_speeds)
    : s_(devices, std::move(accounts), std::move(plans), completion, follows_speeds), recovery_(s_),
      attempts_(s_, recovery_, completion) {}

void session_machine::settle() {
  const auto others_in_flight = [this](const run_request_ptr& request) { return s_.book.others_in_flight(request); };
  const auto begin = [this](const run_request_ptr& request) { attempts_.begin(begin_run{request, false}); };
  std::optional<task> next;
  do {
    if (next)
      std::visit([&](const auto& what) { attempts_.begin(what, next->made); }, next->what);
    s_.memory.retire_evicted();
    while (s_.memory.wakes()) // before what is on the agenda: they have waited longer
      s_.memory.wake(others_in_flight, begin);
    next = s_.todo.next();
  } while (next);
  s_.changes.count(s_.book.runs().size());
}

void session_machine::start_run(const run_request_ptr& request) {
  s_.book.add(request);
  failure why;
  if (!request->only_fetches) {
    s_.plans->counters().runs += request->only_prepares ? 0 : 1;
    why = capture([&] {
      check_given_once(*request);
      if (const auto limit = time_limit(request->options.timeout, "run_options::timeout"))
        request->deadline = now_ + *limit;
    });
  }
  if (why.failed())
    return s_.book.answer(*request, {}, why);
  attempts_.begin(begin_run{request});
  settle();
}

void session_machine::on(chunk_ended& ended) {
  attempts_.on(ended);
  settle();
}

void session_machine::on(size_t device, const plan_installed& answer) {
  // First, so that an execution whose install failed has ended before those that were only to be prepared are answered.
  recovery_.on(device, answer);
  attempts_.on_installed(answer.bound_plan);
  settle();
}

void session_machine::on(tensor_fetched& answer) {
  const std::optional<size_t> device = s_.copies.source_of(answer);
  if (!device)
    return; // of a run that has ended
  const fetch_result& result = answer.result;
  if (result.ok()) {
    if (const run_request_ptr complete = s_.copies.take(answer))
      attempts_.begin(begin_run{complete, false});
  } else if (result.code == errc::device_lost) {
    recovery_.lose_device(*device, result.message);
  } else {
    end_run(run_request_ptr(s_.book.runs().at(answer.ticket)),
            {result.code, fmt::format("device '{}' could not give input '{}' back: {}", s_.devices.name(*device),
                                      answer.input, result.message)});
  }
  settle();
}

void session_machine::on(const continue_control& next) {
  attempts_.begin(begin_body{next.place});
  settle();
}

void session_machine::on(const planned& answer) {
  s_.todo.on(answer);
  settle();
}

void session_machine::ask_plan(uint64_t query, const named_tensors& inputs) {
  attempts_.begin(begin_answer{query, inputs});
  settle();
}

void session_machine::cancel(uint64_t ticket) {
  if (const auto found = s_.book.runs().find(ticket); found != s_.book.runs().end())
    end_run(run_request_ptr(found->second), {errc::cancelled, "the run was cancelled"});
  settle();
}

void session_machine::tick() {
  std::vector<run_request_ptr> late;
  for (const auto& [ticket, r] : s_.book.runs())
    if (r->deadline && *r->deadline <= now_)
      late.push_back(r);
  for (const run_request_ptr& r : late)
    end_run(r, {errc::timeout, fmt::format("the run did not end within {} ms", r->options.timeout.count())});
  settle();
}

void session_machine::end_run(const run_request_ptr& request, const failure& why) {
  s_.copies.forget(*request);
  s_.memory.forget(request);
  s_.book.answer(*request, {}, why);
  s_.book.end_all(request);
}

void session_machine::lose_device(size_t device, const std::string& why) {
  recovery_.lose_device(device, why);
  settle();
}

void session_machine::leave_device(size_t device, const std::string& why) {
  s_.devices.leave(device, why);
  settle();
}

void session_machine::add_device(const device_info& device, std::shared_ptr<ledger_account> account) {
  s_.installed.add_device(std::move(account));
  s_.devices.add(device);
  settle();
}

void session_machine::on_memory_changed() {
  s_.memory.freed(nullptr);
  settle();
}

void session_machine::take_commands(std::vector<command>& into) {
  let_devices_go(s_);
  // Last, since memory may be given back only after the orders that free it.
  s_.memory.share();
  into.clear();
  into.swap(s_.commands);
}

bool session_machine::use_spare_time() {
  s_.book.free_ended();
  s_.ahead.prepare();
  return !s_.commands.empty();
}

bool session_machine::has_work(size_t device) const {
  return owes_answer(s_, device) || s_.book.has([&](const execution& e) {
    const auto index = index_in(*e.planned(), device);
    return index && e.in_flight().owes_answer(*index);
  });
}

std::optional<run_time> session_machine::next_deadline() const {
  std::optional<run_time> next;
  for (const auto& [ticket, r] : s_.book.runs())
    if (r->deadline && (!next || *r->deadline < *next))
      next = r->deadline;
  return next;
}

} // namespace troupe
