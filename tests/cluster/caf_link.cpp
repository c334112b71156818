#include "cluster/caf_link.hpp"

#include "actors/network/link_end.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/openssl/all.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <chrono>

using troupe::host_credentials;
using troupe::actors::frame_message;

namespace {

std::unique_ptr<caf::actor_system_config> make_config(const host_credentials& c) {
  auto config = std::make_unique<caf::actor_system_config>();
  config->load<caf::io::middleman>();
  config->add_message_type<frame_message>("troupe::frame");
  config->set("middleman.workers", size_t{0}); // as the link has it; measured, too: its default is slower
  if (!c.insecure) {
    config->load<caf::openssl::manager>();
    config->openssl_certificate = c.certificate;
    config->openssl_key = c.key;
    config->openssl_cafile = c.ca;
  }
  return config;
}

template <class T>
T must(caf::expected<T> what, const char* doing) {
  if (!what)
    throw std::runtime_error(std::string("CAF cannot ") + doing);
  return *what;
}

} // namespace

caf_pair::caf_pair(const host_credentials& worker, const host_credentials& session)
    : far_config_(make_config(worker)), near_config_(make_config(session)),
      far_(std::make_unique<caf::actor_system>(*far_config_)),
      near_(std::make_unique<caf::actor_system>(*near_config_)) {
  echo_ = far_->spawn(
      [](caf::event_based_actor*) -> caf::behavior { return {[](const frame_message&) { return frame_message{}; }}; });
  if (worker.insecure) {
    const uint16_t port = must(far_->middleman().publish(echo_, 0, "127.0.0.1"), "publish an actor");
    reached_ = must(near_->middleman().remote_actor("127.0.0.1", port), "reach an actor");
  } else {
    const uint16_t port = must(caf::openssl::publish(echo_, 0, "127.0.0.1", false), "publish an actor by TLS");
    reached_ = must(caf::openssl::remote_actor(*near_, "127.0.0.1", port), "reach an actor by TLS");
  }
}

caf_pair::~caf_pair() {
  caf::anon_send_exit(echo_, caf::exit_reason::user_shutdown);
  echo_ = reached_ = nullptr;
}

double caf_pair::frames_a_second(size_t bytes, size_t in_flight, double seconds) {
  using clock = std::chrono::steady_clock;
  caf::scoped_actor self(*near_);
  const auto start = clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(clock::now() - start).count(); };
  size_t sent = 0, answered = 0;
  const auto answer = [&] { self->receive([&](const frame_message&) { ++answered; }); };
  while (passed() < seconds) {
    self->send(reached_, frame_message{troupe::remote::frame(bytes)});
    ++sent;
    while (sent - answered >= in_flight)
      answer();
  }
  while (answered < sent)
    answer();
  return static_cast<double>(sent) / passed();
}
