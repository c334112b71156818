#include "support/spoken_session.hpp"

#include "remote/values.hpp"
#include "wire/plans.hpp"

#include <algorithm>
#include <future>

namespace troupe::test {

using namespace std::chrono_literals;

spoken_session::spoken_session(far_host& host) {
  remote::frame answer;
  link_ = host.open(remote::encode(remote::hello{.name = "spoken"}), answer);
  devices_ = std::get<remote::welcome>(remote::decode(answer)).devices;
  puller_ = std::make_shared<remote::piece_puller>(
      [l = link_](const remote::piece_request& wanted) { l->send(remote::encode(wanted)); });
  link_->receive({.on_frame =
                      [h = heard_, l = std::weak_ptr(link_), offers = offers_,
                       puller = std::weak_ptr(puller_)](const remote::frame& f) {
                        remote::message m = remote::decode(f);
                        const remote::link_ptr link = l.lock();
                        if (const auto* part = std::get_if<remote::piece>(&m)) {
                          if (const auto p = puller.lock())
                            p->on_piece(*part);
                        } else if (const auto* wanted = std::get_if<remote::piece_request>(&m)) {
                          if (link)
                            link->send(remote::encode(offers->offers().answer(*wanted)));
                        } else if (const auto* weight = std::get_if<remote::want_weight>(&m)) {
                          if (link)
                            link->send(remote::encode(remote::weight_source{.content = weight->content}));
                        } else {
                          const std::lock_guard lock(h->mutex);
                          h->messages.push_back(std::move(m));
                          h->changed.notify_all();
                        }
                      },
                  .on_closed =
                      [h = heard_, puller = std::weak_ptr(puller_)](const std::string& why) {
                        if (const auto p = puller.lock())
                          p->close(why);
                        const std::lock_guard lock(h->mutex);
                        h->ended = true;
                        h->changed.notify_all();
                      }});
}

spoken_session::~spoken_session() {
  link_->close();
}

void spoken_session::say(const remote::message& m) {
  link_->send(remote::encode(m));
}

bool spoken_session::await_end(std::chrono::milliseconds patience) {
  std::unique_lock lock(heard_->mutex);
  return heard_->changed.wait_for(lock, patience, [&] { return heard_->ended; });
}

bool spoken_session::has_ended() const {
  const std::lock_guard lock(heard_->mutex);
  return heard_->ended;
}

std::vector<uint8_t> spoken_session::pull(const hash128& key, int64_t bytes) {
  const tensor got(dtype::uint8, {bytes});
  const failure why = capture([&] { remote::pull_and_wait(remote::pulling_from(puller_), key, got); });
  const auto elements = got.values<uint8_t>();
  return why.failed() ? std::vector<uint8_t>() : std::vector<uint8_t>(elements.begin(), elements.end());
}

remote::install spoken_session::install_order(const bound_plan_ptr& bound, device_index self, uint32_t device) {
  const remote::offered_plan offered = offers_->offer(bound->source);
  return {.device = device,
          .plan = offered.id,
          .encoded = offered.encoded,
          .bound_plan = bound->id,
          .binding = wire::encode_binding(*bound),
          .self = self};
}

failure spoken_session::install(const bound_plan_ptr& bound, device_index self, uint32_t device) {
  say(install_order(bound, self, device));
  const auto answer = hear<remote::installed>();
  return answer ? answer->why : failure{errc::device_lost, "the worker has ended the link"};
}

remote::run_chunk spoken_session::chunk_order(const bound_plan_ptr& bound, chunk_id chunk, uint64_t execution,
                                              float value) {
  const plan& p = *bound->source;
  remote::run_chunk made{.bound_plan = bound->id, .chunk = chunk, .execution = execution};
  for (const value_id v : p.chunks[chunk].uploads) {
    tensor t(p.program->values[v].type, bound->dims[v]);
    std::fill_n(t.mutable_data<float>(), t.size(), value);
    made.uploads.push_back(remote::describe(t, remote::new_key(), offers_->offers()));
  }
  for (size_t i = 0; i < p.chunks[chunk].downloads.size(); ++i)
    made.downloads.push_back({.key = remote::new_key(), .send = true});
  return made;
}

} // namespace troupe::test
