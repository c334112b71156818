#include "remote/host_client.hpp"

#include "remote/weakly.hpp"

#include <algorithm>

namespace troupe::remote {
namespace {

using namespace std::chrono_literals;

/// An answer to a measurement must come within this.
constexpr auto ping_timeout = 10s;
constexpr int pings = 5;
/// Of a measurement, in bytes.
constexpr size_t first_load = size_t{64} << 10;
constexpr size_t piece_load = size_t{256} << 10;

failure lost(const std::string& host, const std::string& why) {
  return {errc::device_lost, fmt::format("host '{}' is gone: {}", host, why)};
}

} // namespace

link_figures believed(link_figures measured, const std::optional<link_figures>& earlier) {
  if (earlier && !measured.up_tells)
    measured.up_bytes_per_s = earlier->up_bytes_per_s;
  if (earlier && !measured.down_tells)
    measured.down_bytes_per_s = earlier->down_bytes_per_s;
  return measured;
}

std::shared_ptr<host_client> host_client::make(link_ptr connection, std::string name, std::string address,
                                               welcome greeting, std::shared_ptr<outbox> offers,
                                               const std::optional<link_figures>& earlier) {
  std::shared_ptr<host_client> client(
      new host_client(std::move(connection), std::move(name), std::move(address), std::move(offers)));
  client->start(std::move(greeting), earlier);
  return client;
}

host_client::host_client(link_ptr connection, std::string name, std::string address, std::shared_ptr<outbox> offers)
    : link_(std::move(connection)), name_(std::move(name)), address_(std::move(address)), offers_(std::move(offers)),
      puller_(std::make_shared<piece_puller>([l = link_](const piece_request& wanted) { l->send(encode(wanted)); })),
      values_{[this](const hash128& key, tensor blob, pull_done done) {
                ++pulls_;
                puller_->pull(key, std::move(blob), [this, done = std::move(done)](const failure& why) {
                  --pulls_;
                  done(why);
                });
              },
              offers_->maker()} {}

host_client::~host_client() {
  offers_->routes().leave(worker_);
  link_->close();
}

void host_client::start(welcome greeting, const std::optional<link_figures>& earlier) {
  version_ = std::move(greeting.version);
  worker_ = offers_->routes().join(address_, weakly(weak_from_this(), &host_client::send));
  // Calls nobody and points nowhere but to the client, if that is still there.
  need_ = std::shared_ptr<const void>(this, [weak = weak_from_this()](const void*) {
    if (const auto self = weak.lock())
      self->close();
  });
  needed_ = need_;
  link_->receive({.on_frame = weakly(weak_from_this(), &host_client::on_frame),
                  .on_closed = weakly(weak_from_this(), &host_client::end)});
  figures_ = believed(measure({}), earlier);
  static std::atomic<uint64_t> last_incarnation{0};
  const uint64_t incarnation = ++last_incarnation;
  for (device_info& d : greeting.devices) {
    d.name = fmt::format("{}/{}", name_, d.name);
    d.host = name_;
    d.incarnation = incarnation;
    d.network_in = {figures_.up_bytes_per_s, figures_.round_trip_s / 2};
    d.network_out = {figures_.down_bytes_per_s, figures_.round_trip_s / 2};
    d.profile.chunk_s += figures_.round_trip_s;
    devices_.push_back(std::move(d));
  }
}

double host_client::exchange(size_t up, size_t down) {
  std::vector<std::future<pong>> answers;
  const int64_t begin = now_ns();
  do { // as values travel: in pieces, several under way
    const size_t some_up = std::min(up, piece_load), some_down = std::min(down, piece_load);
    answers.push_back(
        ask(ping{.answer_bytes = static_cast<uint32_t>(some_down), .load = std::vector<uint8_t>(some_up)}));
    up -= some_up;
    down -= some_down;
  } while (up + down > 0);
  for (const auto& answer : answers)
    if (answer.wait_for(ping_timeout) != std::future_status::ready)
      fail(errc::timeout, "host '{}' does not answer", name_);
  const int64_t end = now_ns();
  const pong there = answers.back().get();
  clock_ahead_ns(clock_sample{begin, there.clock_ns, there.clock_ns, end});
  return static_cast<double>(end - begin) * 1e-9;
}

link_figures host_client::measure(const measuring_effort& effort) {
  link_figures measured;
  measured.round_trip_s = exchange(0, 0);
  for (int i = 1; i < pings; ++i)
    measured.round_trip_s = std::min(measured.round_trip_s, exchange(0, 0));
  const auto speed = [&](auto taken_for, bool& tells) {
    const double telling_s = std::max(effort.telling_s, effort.telling_trips * measured.round_trip_s);
    size_t load = first_load;
    double taken = taken_for(load) - measured.round_trip_s;
    while (taken < telling_s && load < effort.last_load)
      taken = taken_for(load = std::min(load * 4, effort.last_load)) - measured.round_trip_s;
    tells = taken >= telling_s;
    for (int i = 1; i < effort.repeats; ++i)
      taken = std::min(taken, taken_for(load) - measured.round_trip_s);
    return static_cast<double>(load) / std::max(taken, 1e-6);
  };
  measured.up_bytes_per_s = speed([&](size_t load) { return exchange(load, 0); }, measured.up_tells);
  measured.down_bytes_per_s = speed([&](size_t load) { return exchange(0, load); }, measured.down_tells);
  return measured;
}

int64_t host_client::clock_ahead_ns(const std::optional<clock_sample>& exchange) {
  const std::lock_guard lock(mutex_);
  if (exchange)
    clock_.add(*exchange);
  return clock_.ahead_ns();
}

load_progress host_client::loads() const {
  load_progress all;
  const std::lock_guard lock(mutex_);
  for (const auto& [device, load] : loads_) {
    all.came += load.came;
    all.total += load.total;
  }
  return all;
}

void host_client::on_leaving(leaving_told told) {
  const std::lock_guard lock(mutex_);
  told_leaving_ = std::move(told);
}

void host_client::on_memory_wanted(memory_told told) {
  const std::lock_guard lock(mutex_);
  told_memory_ = std::move(told);
}

void host_client::tell_memory(const memory_wanted& lack) {
  if (lack.device >= devices_.size() || lack.bytes < 0)
    fail(errc::invalid_input, "{} bytes of device {} are wanted", lack.bytes, lack.device);
  memory_told told;
  {
    const std::lock_guard lock(mutex_);
    told = told_memory_;
  }
  if (told)
    told(lack.device, lack.bytes);
}

std::shared_ptr<const void> host_client::need() const {
  const std::lock_guard lock(mutex_);
  return needed_.lock();
}

void host_client::leave(const std::string& why) {
  std::shared_ptr<const void> need; // let go of outside of the lock
  leaving_told told;
  {
    const std::lock_guard lock(mutex_);
    need.swap(need_);
    told.swap(told_leaving_);
    leaves_because_ = why;
  }
  if (need && told)
    told(why, need);
}

void host_client::on_end(std::function<void(const std::string&)> told) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_)
      return enders_.push_back(std::move(told));
  }
  told(ended_->message); // never changes again
}

void host_client::listen(uint32_t index, listener who) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) {
      listeners_[index] = std::move(who);
      return;
    }
  }
  who.on_end(*ended_);
}

uint64_t host_client::expect_answer(asker who) {
  {
    const std::lock_guard lock(mutex_);
    ++last_request_;
    if (!ended_) {
      waiting_.emplace(last_request_, std::move(who));
      return last_request_;
    }
  }
  who.taken(nullptr, *ended_);
  return 0;
}

offered_plan host_client::offer(const std::shared_ptr<const plan>& p) {
  const offered_plan offered = offers_->offer(p);
  std::vector<uint64_t> dead;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(plans_, [&](const auto& known) {
      if (!known.second.of.expired())
        return false;
      dead.push_back(known.first);
      return true;
    });
    plans_[offered.id] = {p, offered.leaves};
  }
  for (uint64_t id : dead)
    send(forget_plan{id});
  return offered;
}

void host_client::on_frame(const frame& f) {
  const failure why = capture([&] {
    message m = decode(f);
    on(m);
  });
  if (!why.failed())
    return;
  end(fmt::format("it sent what cannot be understood: {}", why.message));
  link_->close();
}

void host_client::on(message& m) {
  const auto listener_of = [&](uint32_t device) {
    const std::lock_guard lock(mutex_);
    const auto found = listeners_.find(device);
    return found == listeners_.end() ? listener{} : found->second;
  };
  if (auto* wanted = std::get_if<piece_request>(&m))
    send(offers_->offers().answer(*wanted));
  else if (auto* part = std::get_if<piece>(&m))
    puller_->on_piece(*part);
  else if (auto* made = std::get_if<chunk_made>(&m)) {
    if (const listener who = listener_of(made->device); who.on_chunk)
      who.on_chunk(std::move(*made));
  } else if (const auto* told = std::get_if<loading>(&m)) {
    on_loading(*told);
  } else if (auto* done = std::get_if<installed>(&m)) {
    forget_loading(done->device);
    if (const listener who = listener_of(done->device); who.on_installed)
      who.on_installed(std::move(*done));
  } else if (auto* value = std::get_if<fetched>(&m))
    answer(value->request, m);
  else if (auto* put = std::get_if<was_put>(&m))
    answer(put->request, m);
  else if (auto* told = std::get_if<stats_told>(&m))
    answer(told->request, m);
  else if (auto* back = std::get_if<pong>(&m))
    answer(back->request, m);
  else if (const auto* weight = std::get_if<want_weight>(&m))
    offers_->routes().want(worker_, *weight);
  else if (auto* wanted_proofs = std::get_if<prove_weights>(&m))
    prove(std::move(*wanted_proofs));
  else if (const auto* weights = std::get_if<have_weights>(&m))
    offers_->routes().have(worker_, *weights);
  else if (const auto* unwanted = std::get_if<give_up_weight>(&m))
    offers_->routes().give_up(worker_, unwanted->content);
  else if (const auto* gone = std::get_if<leaving>(&m))
    leave(gone->why);
  else if (const auto* lack = std::get_if<memory_wanted>(&m))
    tell_memory(*lack);
  else
    fail(errc::invalid_input, "message {} is none of a worker's", m.index());
}

void host_client::on_loading(const loading& told) {
  if (told.came < 0 || told.came > told.total)
    fail(errc::invalid_input, "{} of {} bytes of weights cannot have come", told.came, told.total);
  std::function<void()> on_progress;
  {
    const std::lock_guard lock(mutex_);
    const auto who = listeners_.find(told.device);
    if (who == listeners_.end())
      return;
    load_progress& known = loads_[told.device];
    if (told.came <= known.came) // bytes that are there do not go away: else a host keeps a run waiting for ever
      return;
    on_progress = who->second.on_progress;
    known = {told.came, told.total};
  }
  if (on_progress)
    on_progress();
}

void host_client::forget_loading(uint32_t device) {
  const std::lock_guard lock(mutex_);
  loads_.erase(device);
}

void host_client::prove(prove_weights wanted) {
  std::vector<std::shared_ptr<const std::unordered_set<hash128>>> offered;
  size_t most = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, known] : plans_)
      if (!known.of.expired()) {
        offered.push_back(known.leaves);
        most += known.leaves->size();
      }
  }
  // Each weight that is named makes this process read all of it, however short the question is.
  const std::vector<hash128>& asked = wanted.contents;
  if (asked.size() > most || std::unordered_set(asked.begin(), asked.end()).size() < asked.size())
    fail(errc::invalid_input, "proofs of {} weights are wanted, of {} on offer, or of one twice", asked.size(), most);
  if (is_proving_.exchange(true))
    fail(errc::invalid_input, "proofs are wanted before the last ones were given");
  // All bytes of a model are read: not on the link's thread. The thread before this one has sent its answer.
  prover_ = std::jthread([this, offered = std::move(offered), wanted = std::move(wanted)](const std::stop_token& stop) {
    weight_proofs answer{.challenge = wanted.challenge, .proofs = {}};
    const failure why = capture([&] {
      for (auto next = wanted.contents.begin(); next != wanted.contents.end() && !stop.stop_requested(); ++next) {
        const bool is_named = std::ranges::any_of(offered, [&](const auto& leaves) { return leaves->contains(*next); });
        const tensor blob = is_named ? offers_->offers().find(*next) : tensor();
        answer.proofs.push_back(blob.defined() ? content_proof(wanted.challenge, blob) : hash128{});
      }
    });
    answer.proofs.resize(wanted.contents.size()); // what is not proven is sent
    is_proving_ = false;                          // before the host can ask again
    link_->send(encode(answer));
  });
}

void host_client::answer(uint64_t request, message& m) {
  asker who;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(request);
    if (found == waiting_.end())
      return; // nobody waits any more
    if (!found->second.fits(m))
      fail(errc::invalid_input, "question {} is answered by a message of another kind, {}", request, m.index());
    who = std::move(found->second);
    waiting_.erase(found);
  }
  who.taken(&m, {});
}

void host_client::end(const std::string& why) {
  decltype(waiting_) waiting;
  decltype(listeners_) listeners;
  decltype(enders_) enders;
  {
    const std::lock_guard lock(mutex_);
    if (ended_)
      return;
    ended_ = lost(name_, leaves_because_.empty() ? why : leaves_because_);
    told_leaving_ = nullptr;
    waiting.swap(waiting_);
    listeners.swap(listeners_);
    enders.swap(enders_);
  }
  prover_.request_stop(); // no call of the link's other than this one is under way
  offers_->routes().leave(worker_);
  puller_->close(ended_->message);
  for (auto& [number, who] : waiting)
    who.taken(nullptr, *ended_);
  for (auto& [index, who] : listeners)
    who.on_end(*ended_);
  for (const auto& told : enders)
    told(ended_->message);
}

sent_value kept_value::describe_for(const host_client& reader) const {
  const bool there = &reader == host_.get();
  return {.from = there ? origin::kept : origin::peer,
          .type = type(),
          .dims = dims(),
          .key = key_,
          .size = size_,
          .peer = there ? "" : host_->address()};
}

} // namespace troupe::remote
