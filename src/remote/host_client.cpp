#include "remote/host_client.hpp"

#include "remote/weakly.hpp"

namespace troupe::remote {
namespace {

failure lost(const std::string& host, const std::string& why) {
  return {errc::device_lost, fmt::format("host '{}' is gone: {}", host, why)};
}

} // namespace

std::shared_ptr<host_client> host_client::make(link_ptr connection, std::string name, std::string address,
                                               welcome greeting, std::shared_ptr<outbox> offers,
                                               const link_measuring& how) {
  std::shared_ptr<host_client> client(new host_client(std::move(connection), std::move(name), std::move(address),
                                                      std::move(greeting), std::move(offers)));
  client->start(how);
  return client;
}

host_client::host_client(link_ptr connection, std::string name, std::string address, welcome greeting,
                         std::shared_ptr<outbox> offers)
    : link_(std::move(connection)), name_(std::move(name)), address_(std::move(address)), offers_(std::move(offers)),
      puller_(std::make_shared<piece_puller>([l = link_](const piece_request& wanted) { l->send(encode(wanted)); })),
      values_{[this](const hash128& key, tensor blob, pull_done done) {
                ++pulls_;
                puller_->pull(key, std::move(blob), [this, done = std::move(done)](const failure& why) {
                  --pulls_;
                  done(why);
                });
              },
              offers_->maker()},
      devices_(std::move(greeting.devices)), questions_(link_), meter_(questions_, name_), news_(devices_.size()),
      plans_(*offers_, link_) {}

host_client::~host_client() {
  offers_->routes().leave(worker_);
  link_->close();
}

void host_client::start(const link_measuring& how) {
  worker_ = offers_->routes().join(address_, weakly(weak_from_this(), &host_client::send));
  // Makes no other call and points nowhere but to the client, if that is still there.
  need_ = std::shared_ptr<const void>(this, [weak = weak_from_this()](const void*) {
    if (const auto self = weak.lock())
      self->close();
  });
  needed_ = need_;
  link_->receive({.on_frame = weakly(weak_from_this(), &host_client::on_frame),
                  .on_closed = weakly(weak_from_this(), &host_client::end)});
  // Only now: the answers to the measurement come to the handler above.
  figures_ = believed(meter_.measure(how.effort), how.earlier);
  static std::atomic<uint64_t> last_incarnation{0};
  const uint64_t incarnation = ++last_incarnation;
  for (device_info& d : devices_) {
    d.name = fmt::format("{}/{}", name_, d.name);
    d.host = name_;
    d.incarnation = incarnation;
    d.peer_set = 0; // its host's sessions alone send chunks that wait there
    d.network_in = {figures_.up_bytes_per_s, figures_.round_trip_s / 2};
    d.network_out = {figures_.down_bytes_per_s, figures_.round_trip_s / 2};
    // The order to run a chunk and its answer cross the link.
    d.profile.chunk_s += figures_.round_trip_s;
  }
}

void host_client::on_leaving(leaving_told told) {
  const std::lock_guard lock(mutex_);
  told_leaving_ = std::move(told);
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

void host_client::on_frame(const frame& f) {
  const failure why = capture([&] {
    message m = decode(f);
    on(m);
  });
  if (!why.failed())
    return;
  // Before the link is closed, so that devices and callers hear this reason and not that of the close.
  end(fmt::format("it sent what cannot be understood: {}", why.message));
  link_->close();
}

void host_client::on(message& m) {
  if (const auto* wanted = std::get_if<piece_request>(&m))
    send(offers_->offers().answer(*wanted));
  else if (const auto* part = std::get_if<piece>(&m))
    puller_->on_piece(*part);
  else if (auto* made = std::get_if<chunk_made>(&m))
    news_.tell(std::move(*made));
  else if (const auto* how_far = std::get_if<loading>(&m))
    news_.tell(*how_far);
  else if (auto* done = std::get_if<installed>(&m))
    news_.tell(std::move(*done));
  else if (const auto* lack = std::get_if<memory_wanted>(&m))
    news_.tell(*lack);
  else if (const auto* value = std::get_if<fetched>(&m))
    questions_.answer(value->request, m);
  else if (const auto* put = std::get_if<was_put>(&m))
    questions_.answer(put->request, m);
  else if (const auto* told = std::get_if<stats_told>(&m))
    questions_.answer(told->request, m);
  else if (const auto* back = std::get_if<pong>(&m))
    questions_.answer(back->request, m);
  else if (const auto* weight = std::get_if<want_weight>(&m))
    offers_->routes().want(worker_, *weight);
  else if (auto* wanted_proofs = std::get_if<prove_weights>(&m))
    plans_.prove(std::move(*wanted_proofs));
  else if (const auto* weights = std::get_if<have_weights>(&m))
    offers_->routes().have(worker_, *weights);
  else if (const auto* unwanted = std::get_if<give_up_weight>(&m))
    offers_->routes().give_up(worker_, unwanted->content);
  else if (const auto* gone = std::get_if<leaving>(&m))
    leave(gone->why);
  else
    fail(errc::invalid_input, "message {} is not one of a worker's", m.index());
}

void host_client::end(const std::string& why) {
  decltype(enders_) enders;
  {
    const std::lock_guard lock(mutex_);
    if (ended_)
      return;
    ended_ = lost(name_, leaves_because_.empty() ? why : leaves_because_);
    told_leaving_ = nullptr;
    enders.swap(enders_);
  }
  news_.end();
  plans_.stop(); // no call of the link's other than this one is under way
  offers_->routes().leave(worker_);
  puller_->close(ended_->message);
  questions_.end(*ended_);
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
