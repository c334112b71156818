#include "remote/host_service.hpp"

#include "remote/session_service.hpp"

#include <algorithm>

namespace troupe::remote {

host_service::host_service(std::vector<served_device_ptr> devices, service_options options)
    : shared_(std::make_shared<shared_service>(std::move(devices), std::move(options))) {}

host_service::~host_service() {
  decltype(book::sessions) sessions;
  decltype(book::peers) peers;
  {
    const std::lock_guard lock(book_->mutex);
    book_->draining = true;
    sessions.swap(book_->sessions);
    peers.swap(book_->peers);
  }
  for (const auto& [number, s] : sessions)
    s.session->close();
  for (const link_ptr& l : peers)
    l->close();
  shared_->others.close(); // a job of a session may still wait for one
}

frame host_service::accept(const frame& first, const link_ptr& connection) {
  const message said = decode(first);
  const auto* who = std::get_if<hello>(&said);
  if (!who)
    fail(errc::invalid_input, "the first message is not a hello");
  try {
    return serve(*who, connection);
  } catch (const error& e) {
    shared_->options.log("refused", {{"host", connection->other_host()}, {"process", who->name}, {"why", e.what()}});
    throw;
  }
}

frame host_service::serve(const hello& who, const link_ptr& connection) {
  check(who);
  welcome answer{.version = shared_->options.version};
  if (who.role == role::peer) {
    serve_peer(connection);
  } else {
    serve_session(who, connection);
    for (const served_device_ptr& d : shared_->devices)
      answer.devices.push_back(d->info());
  }
  return encode(answer);
}

void host_service::serve_session(const hello& who, const link_ptr& connection) {
  const std::string host = connection->other_host();
  const std::lock_guard lock(book_->mutex);
  check_limits(host);
  const uint64_t number = ++book_->last;
  const std::string name = fmt::format("{}#{}", who.name, number);
  const auto leave = [all = book_, number] {
    const std::lock_guard lock(all->mutex);
    all->sessions.erase(number);
    all->left.notify_all();
  };
  const auto s = std::make_shared<session_service>(shared_, connection, name, number, leave);
  book_->sessions.emplace(number, book::entry{s, host});
  shared_->options.log("joined", {{"session", name}, {"host", host}});
  s->start();
}

void host_service::check(const hello& who) const {
  if (who.protocol != protocol || who.version != shared_->options.version)
    fail(errc::unsupported, "this worker is troupe {} (protocol {}), you are troupe {} (protocol {}): use one version",
         shared_->options.version, protocol, who.version, who.protocol);
}

void host_service::check_limits(const std::string& host) const {
  const service_options& o = shared_->options;
  if (book_->draining)
    fail(errc::unsupported, "the worker is leaving");
  if (!o.allowed.empty() && std::find(o.allowed.begin(), o.allowed.end(), host) == o.allowed.end())
    fail(errc::unsupported, "host '{}' is not one of those that the worker's owner allows", host);
  if (book_->sessions.size() >= o.sessions)
    fail(errc::unsupported, "the worker serves {} sessions already, as many as its owner allows",
         book_->sessions.size());
  const auto of_host = static_cast<size_t>(std::count_if(book_->sessions.begin(), book_->sessions.end(),
                                                         [&](const auto& entry) { return entry.second.host == host; }));
  if (of_host >= o.sessions_per_host)
    fail(errc::unsupported, "host '{}' has {} sessions here already, as many as the worker's owner allows one host",
         host, of_host);
}

void host_service::serve_peer(const link_ptr& connection) {
  {
    const std::lock_guard lock(book_->mutex);
    book_->peers.insert(connection);
  }
  connection->receive({.on_frame =
                           [weak = std::weak_ptr(connection), shared = shared_](const frame& f) {
                             const link_ptr l = weak.lock();
                             const failure why = capture([&] {
                               const message m = decode(f);
                               const auto* wanted = std::get_if<piece_request>(&m);
                               if (!wanted)
                                 fail(errc::invalid_input, "message {} is not one of a peer's", m.index());
                               if (l)
                                 l->send(encode(shared->offers.answer(*wanted)));
                             });
                             if (why.failed() && l)
                               l->close();
                           },
                       .on_closed =
                           [all = book_, weak = std::weak_ptr(connection)](const std::string&) {
                             const std::lock_guard lock(all->mutex);
                             all->peers.erase(weak.lock());
                           }});
}

bool host_service::drain(std::chrono::milliseconds limit) {
  std::unique_lock lock(book_->mutex);
  if (!std::exchange(book_->draining, true))
    for (const auto& [number, s] : book_->sessions)
      s.session->say(leaving{"its owner ends it"});
  return book_->left.wait_for(lock, limit, [&] { return book_->sessions.empty(); });
}

size_t host_service::sessions() const {
  const std::lock_guard lock(book_->mutex);
  return book_->sessions.size();
}

int64_t host_service::held_bytes() const {
  int64_t bytes = shared_->room->held();
  for (const auto& ledger : shared_->memory)
    bytes += ledger->used();
  return bytes;
}

} // namespace troupe::remote
