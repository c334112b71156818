#include "recording/recorded_machine.hpp"

namespace troupe::recording {

template <class Note, class Event>
auto recorded_machine::tell(Note&& note, Event&& event) {
  if (!notes_)
    return event();
  note(*notes_);
  try {
    return event();
  } catch (...) {
    notes_->add_end(capture([] { throw; }));
    throw;
  }
}

void recorded_machine::set_time(run_time now) {
  tell([&](recorder& r) { r.add(kind::time, {}, {now.time_since_epoch().count()}); }, [&] { machine_.set_time(now); });
}

void recorded_machine::start_run(const run_request_ptr& request) {
  tell([&](recorder& r) { r.add(request); }, [&] { machine_.start_run(request); });
}

void recorded_machine::on(const chunk_begun& begun) {
  tell([&](recorder& r) { r.add(machine_, begun); }, [&] { machine_.on(begun); });
}

void recorded_machine::on(chunk_ended& ended) {
  tell([&](recorder& r) { r.add(machine_, ended); }, [&] { machine_.on(ended); });
}

void recorded_machine::on(size_t device, const plan_installed& answer) {
  tell(
      [&](recorder& r) {
        r.add(kind::plan_installed, {{named::binding, answer.bound_plan}},
              {static_cast<int64_t>(device), static_cast<int64_t>(answer.self)}, answer.why);
      },
      [&] { machine_.on(device, answer); });
}

void recorded_machine::on(tensor_fetched& answer) {
  tell([&](recorder& r) { r.add(answer); }, [&] { machine_.on(answer); });
}

void recorded_machine::on(const continue_control& next) {
  tell(
      [&](recorder& r) {
        r.add(kind::control_continued, {{named::execution, next.place.execution}}, {next.place.chunk});
      },
      [&] { machine_.on(next); });
}

void recorded_machine::on(const planned& answer) {
  tell([&](recorder& r) { r.add(kind::plan_made, {}, {static_cast<int64_t>(answer.job)}, answer.why); },
       [&] { machine_.on(answer); });
}

void recorded_machine::ask_plan(uint64_t query, const named_tensors& inputs) {
  tell([&](recorder& r) { r.add(query, inputs); }, [&] { machine_.ask_plan(query, inputs); });
}

void recorded_machine::cancel(uint64_t ticket) {
  tell([&](recorder& r) { r.add(kind::run_cancelled, {{named::run, ticket}}, {}); }, [&] { machine_.cancel(ticket); });
}

void recorded_machine::lose_device(size_t device, const std::string& why) {
  tell([&](recorder& r) { r.add(kind::device_lost, {}, {static_cast<int64_t>(device)}, {why}); },
       [&] { machine_.lose_device(device, why); });
}

void recorded_machine::leave_device(size_t device, const std::string& why) {
  tell([&](recorder& r) { r.add(kind::device_leaves, {}, {static_cast<int64_t>(device)}, {why}); },
       [&] { machine_.leave_device(device, why); });
}

void recorded_machine::add_device(const device_info& device, std::shared_ptr<ledger_account> account) {
  if (notes_)
    account = notes_->watch({std::move(account)}).front();
  tell([&](recorder& r) { r.add(device); }, [&] { machine_.add_device(device, std::move(account)); });
}

void recorded_machine::on_memory_changed() {
  tell([](recorder& r) { r.add(kind::memory_changed, {}, {}); }, [&] { machine_.on_memory_changed(); });
}

void recorded_machine::tick() {
  tell([](recorder& r) { r.add(kind::ticked, {}, {}); }, [&] { machine_.tick(); });
}

void recorded_machine::close() {
  tell([](recorder& r) { r.add(kind::closed, {}, {}); }, [&] { machine_.close(); });
}

void recorded_machine::take_commands(std::vector<command>& into) {
  tell([](recorder&) {}, [&] { machine_.take_commands(into); });
  if (notes_)
    notes_->add(into);
}

bool recorded_machine::use_spare_time() {
  return tell([](recorder&) {}, [&] { return machine_.use_spare_time(); });
}

} // namespace troupe::recording
