#include "support/small_worker.hpp"

#include "remote/values.hpp"

#include <cstdio>
#include <unistd.h>

namespace troupe::test {

using namespace std::chrono_literals;

namespace {

/// Returns whether a thread of this process waits, as the system says; or has ended.
bool sleeps_or_is_gone(pid_t thread) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> told(
      std::fopen(fmt::format("/proc/self/task/{}/stat", thread).c_str(), "r"), std::fclose);
  std::array<char, 256> text{};
  const size_t size = told ? std::fread(text.data(), 1, text.size(), told.get()) : 0; // a thread may end meanwhile
  const std::string_view line(text.data(), size);
  const size_t name_end = line.rfind(')'); // "NUMBER (NAME) STATE …"
  return name_end == std::string_view::npos || line.substr(name_end).starts_with(") S");
}

} // namespace

/// The worker's end of a link.
class small_worker::watched_link final : public remote::link {
public:
  watched_link(std::shared_ptr<worker_watch> w, size_t session) : watch_(std::move(w)), session_(session) {}

  void send(remote::frame f) override {
    remote::message m = remote::decode(f);
    const std::lock_guard lock(watch_->mutex);
    worker_watch::line& line = watch_->lines[session_];
    const auto* wanted = std::get_if<remote::piece_request>(&m);
    const bool is_question =
        wanted || std::holds_alternative<remote::want_weight>(m) || std::holds_alternative<remote::prove_weights>(m);
    if (watch_->on_thread_of_plans()) {
      watch_->threads[std::this_thread::get_id()] = session_;
      watch_->thread_numbers.insert(gettid());
      line.waits |= is_question && !line.closed && !(wanted && line.served.contains(wanted->key));
      if (std::holds_alternative<remote::installed>(m))
        watch_->end_job(session_);
    }
    if (!line.closed)
      (is_question ? line.asked : line.said).push_back(std::move(m));
    watch_->changed.notify_all();
  }
  void receive(remote::link_handler handler) override { this->handler = std::move(handler); }
  void close() override {
    const std::lock_guard lock(watch_->mutex);
    watch_->lines[session_].closed = true;
  }

  remote::link_handler handler;

private:
  const std::shared_ptr<worker_watch> watch_;
  const size_t session_;
};

small_worker::small_worker(size_t devices, int64_t memory) : watch_(std::make_shared<worker_watch>()) {
  std::vector<remote::served_device_ptr> lent;
  for (size_t d = 0; d < devices; ++d)
    lent.push_back(devices_.emplace_back(std::make_shared<ordered_device>(watch_, info(d, memory))));
  service_ = std::make_unique<remote::host_service>(
      std::move(lent), remote::service_options{.memory_patience = 0ms, .log = [](auto&&...) {}});
}

small_worker::~small_worker() {
  while (!links_.empty())
    end(links_.begin()->first);
  for (const auto& d : devices_)
    d->drop_all();
  await_nothing_left();
}

device_info small_worker::info(size_t device, int64_t memory) {
  return {.name = fmt::format("d{}", device), .kind = device_kind::null, .memory_bytes = memory};
}

bool small_worker::open(size_t session) {
  const auto link = std::make_shared<watched_link>(watch_, session);
  const failure refused = capture([&] { service_->accept(remote::encode(remote::hello{}), link); });
  if (refused.failed())
    return false;
  watch_->accepted.push_back(session);
  links_[session] = link;
  all_links_.push_back(link);
  return true;
}

void small_worker::say(size_t session, const remote::message& m) {
  if (std::holds_alternative<remote::install>(m)) {
    const std::lock_guard lock(watch_->mutex);
    ++watch_->lines[session].jobs;
  }
  links_.at(session)->handler.on_frame(remote::encode(m));
  if (std::holds_alternative<remote::install>(m) || std::holds_alternative<remote::forget_plan>(m))
    await_sleep();
  else
    await_quiet();
}

std::vector<remote::message> small_worker::take_said(size_t session) {
  const std::lock_guard lock(watch_->mutex);
  const auto said = std::exchange(watch_->lines[session].said, {});
  return {said.begin(), said.end()};
}

bool small_worker::has_asked(size_t session) const {
  const std::lock_guard lock(watch_->mutex);
  return !watch_->lines[session].asked.empty();
}

void small_worker::serve(size_t session, const remote::piece_source& offers, const remote::piece_source& values) {
  std::unique_lock lock(watch_->mutex);
  worker_watch::line& line = watch_->lines[session];
  line.waits = false;
  const auto is_served = [&](const remote::message& m) {
    const auto* wanted = std::get_if<remote::piece_request>(&m);
    return wanted && line.served.contains(wanted->key);
  };
  std::deque<remote::message> now = std::exchange(line.asked, {});
  for (const remote::message& m : now)
    if (const auto* wanted = std::get_if<remote::piece_request>(&m))
      line.served.insert(wanted->key);
  while (!now.empty()) {
    lock.unlock();
    for (const remote::message& m : now)
      answer_question(session, m, offers, values);
    lock.lock();
    now.clear();
    const auto is_more = [&] { return std::ranges::any_of(line.asked, is_served); };
    watch_->changed.wait_for(lock, 10s, [&] { return is_more() || watch_->is_quiet(); });
    std::ranges::copy_if(line.asked, std::back_inserter(now), is_served);
    std::erase_if(line.asked, is_served);
  }
  line.served.clear();
  lock.unlock();
  await_sleep();
}

void small_worker::answer_question(size_t session, const remote::message& asked, const remote::piece_source& offers,
                                   const remote::piece_source& values) {
  const auto tell = [&](const remote::message& m) { links_.at(session)->handler.on_frame(remote::encode(m)); };
  if (const auto* wanted = std::get_if<remote::piece_request>(&asked))
    tell((offers.find(wanted->key).defined() ? offers : values).answer(*wanted));
  else if (const auto* weight = std::get_if<remote::want_weight>(&asked))
    tell(remote::weight_source{.content = weight->content});
  else if (const auto* proofs = std::get_if<remote::prove_weights>(&asked)) {
    remote::weight_proofs shown{.challenge = proofs->challenge};
    for (const hash128& content : proofs->contents)
      shown.proofs.push_back(remote::content_proof(proofs->challenge, offers.find(content)));
    tell(shown);
  }
}

bool small_worker::has_closed(size_t session) const {
  const std::lock_guard lock(watch_->mutex);
  return watch_->lines[session].closed;
}

void small_worker::end(size_t session) {
  {
    const std::lock_guard lock(watch_->mutex);
    worker_watch::line& line = watch_->lines[session];
    line.jobs = std::exchange(line.waits, false) ? 1 : 0; // no other one begins any more
    line.closed = true;
    line.asked.clear();
  }
  const std::shared_ptr<watched_link> link = links_.extract(session).mapped();
  const remote::link_handler last = std::move(link->handler);
  last.on_closed("the test ends it");
  await_sleep();
}

void small_worker::await_quiet() {
  std::unique_lock lock(watch_->mutex);
  if (!watch_->changed.wait_for(lock, 10s, [&] { return watch_->is_quiet(); })) {
    watch_->accuse("a thread of the worker neither ends its work nor asks for anything");
    for (auto& [session, line] : watch_->lines)
      line.jobs = 0;
  }
}

void small_worker::await_sleep() {
  await_quiet();
  std::unique_lock lock(watch_->mutex);
  std::set<pid_t> awake = watch_->thread_numbers;
  lock.unlock();
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (!awake.empty() && std::chrono::steady_clock::now() < end) {
    std::erase_if(awake, sleeps_or_is_gone);
    std::this_thread::yield();
  }
  lock.lock();
  if (!awake.empty())
    watch_->accuse("a thread of the worker does not end its work");
}

std::vector<std::string> small_worker::orders(size_t device) const {
  std::vector<std::string> all;
  for (const auto& o : devices_[device]->orders())
    all.push_back(o.text + (o.stop && o.stop->load() ? " stopped" : ""));
  return all;
}

bool small_worker::can_fail(size_t device) const {
  return devices_[device]->orders().front().can_fail;
}

void small_worker::answer(size_t device, bool fails) {
  if (devices_[device]->orders().empty()) {
    const std::lock_guard lock(watch_->mutex);
    return watch_->accuse("the same choices have led to another place: a device has nothing to answer");
  }
  devices_[device]->pop().answer(fails);
  await_quiet();
}

std::string small_worker::held_by(size_t device) const {
  return devices_[device]->held();
}

bool small_worker::may_end_service() const {
  const bool is_idle = std::ranges::all_of(devices_, [](const auto& d) { return d->orders().empty(); });
  const std::lock_guard lock(watch_->mutex);
  return is_idle || std::ranges::none_of(watch_->lines, [](const auto& l) { return l.second.waits; });
}

void small_worker::end_service() {
  {
    const std::lock_guard lock(watch_->mutex);
    for (auto& [session, line] : watch_->lines) {
      line.jobs = std::exchange(line.waits, false) ? 1 : 0;
      line.closed = true;
    }
  }
  service_ = nullptr;
  await_sleep();
}

std::vector<std::string> small_worker::problems() const {
  const std::lock_guard lock(watch_->mutex);
  return watch_->problems;
}

bool small_worker::await_nothing_left() {
  const auto is_gone = [&] {
    return std::ranges::all_of(all_links_, [](const auto& l) { return l.expired(); }) &&
           (!service_ || (service_->offered() == 0 && service_->held_bytes() == 0));
  };
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (!is_gone() && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  return is_gone();
}

} // namespace troupe::test
