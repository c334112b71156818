#include "remote/session_service.hpp"

#include "remote/weakly.hpp"

namespace troupe::remote {

session_service::session_service(std::shared_ptr<shared_service> shared, link_ptr connection, std::string name,
                                 uint64_t number, std::function<void()> ended)
    : shared_(std::move(shared)), number_(number), when_ended_(std::move(ended)),
      puller_(std::make_shared<piece_puller>([l = connection](const piece_request& p) { l->send(encode(p)); })),
      from_session_{pulling_from(puller_), shared_->options.make},
      line_(std::make_shared<session_line>(shared_, std::move(connection), std::move(name))), values_(shared_, line_),
      installs_(std::make_shared<session_installs>(shared_, line_, puller_)), queues_(shared_->devices.size()) {}

session_service::~session_service() {
  close();
  line_->end();
  // The link's end may come too late to be heard here; installs that wait for weights hold devices until they hear.
  installs_->end("the worker ends");
  puller_->close("the worker ends");
}

void session_service::start() {
  // The host service holds the session until its link has ended.
  line_->receive({.on_frame = weakly(weak_from_this(), &session_service::on_frame),
                  .on_closed = weakly(weak_from_this(), &session_service::on_closed)});
}

void session_service::on_frame(const frame& f) {
  const failure why = capture([&] {
    message m = decode(f);
    on(m);
  });
  if (why.failed())
    line_->refuse(why);
}

void session_service::on(message& m) {
  if (!line_->budget().take(m))
    return;
  if (auto* order = std::get_if<run_chunk>(&m))
    run(std::move(*order));
  else if (const auto* wanted = std::get_if<piece_request>(&m))
    say(shared_->offers.answer(*wanted));
  else if (const auto* part = std::get_if<piece>(&m))
    puller_->on_piece(*part);
  else if (auto* plan = std::get_if<remote::install>(&m))
    installs_->install(std::move(*plan));
  else if (auto* source = std::get_if<weight_source>(&m))
    installs_->weights().tell(std::move(*source));
  else if (auto* proofs = std::get_if<weight_proofs>(&m))
    installs_->weights().tell(std::move(*proofs));
  else if (const auto* old = std::get_if<remote::retire>(&m))
    installs_->retire(*old);
  else if (const auto* over = std::get_if<stop_chunks>(&m))
    stop(over->execution);
  else if (const auto* over_there = std::get_if<end_chunks>(&m))
    end(*over_there);
  else if (const auto* gone = std::get_if<forget_plan>(&m))
    installs_->forget(gone->plan);
  else if (const auto* keys = std::get_if<release>(&m))
    for (const hash128& key : keys->keys)
      values_.forget(key);
  else if (const auto* question = std::get_if<fetch_kept>(&m))
    fetch(*question);
  else if (auto* value = std::get_if<put_value>(&m))
    put(std::move(*value));
  else if (const auto* asked = std::get_if<ask_stats>(&m))
    shared_->device(asked->device)
        .stats([self = shared_from_this(), request = asked->request](const device_stats& stats) {
          self->say(stats_told{request, stats});
        });
  else if (const auto* measured = std::get_if<ping>(&m)) {
    if (measured->answer_bytes > max_frame_bytes / 2)
      fail(errc::invalid_input, "an answer of {} bytes is asked for", measured->answer_bytes);
    say(pong{measured->request, now_ns(), std::vector<uint8_t>(measured->answer_bytes)});
  } else
    fail(errc::invalid_input, "message {} is not one of a session's", m.index());
}

void session_service::on_closed(const std::string& why) {
  line_->end();
  installs_->end(why);
  puller_->close(why);
  std::vector<served_chunk_ptr> waiting;
  std::vector<served_executions::place> idle;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    for (device_queue& queue : queues_) { // emptied, not replaced: somebody may be pumping
      waiting.insert(waiting.end(), queue.waiting.begin(), queue.waiting.end());
      queue.waiting.clear();
    }
    executions_.stop_all();
    for (const served_chunk_ptr& chunk : waiting)
      executions_.finish(chunk->at, chunk->work.chunk, false);
    idle = executions_.take_idle(); // the others when their chunks have ended
  }
  values_.end();
  for (const auto& at : idle)
    shared_->devices[at.device]->end(local(at.execution));
  waiting.clear(); // lets go of their plans
  line_->log("left", {{"why", why}});
  when_ended_();
}

// -- values

void session_service::fetch(const fetch_kept& question) {
  const value_ref value = values_.find(question.key);
  if (value->resident() && value->resident()->device() != shared_->device(question.device).info().name)
    fail(errc::invalid_input, "a value of device {} is asked for that another device has", question.device);
  const auto tell = [self = shared_from_this(), request = question.request](const fetch_result& result) {
    fetched answer{.request = request, .why = {result.code, result.message}};
    // A device's thread may call this, and has no use for what is thrown: the session waits for its answer.
    if (result.ok())
      answer.why = capture([&] {
        answer.value = self->values_.keep({.key = new_key(), .home = destination::host, .send = true},
                                          std::make_shared<moved_value>(result.value));
      });
    self->say(std::move(answer));
  };
  if (value->resident())
    shared_->device(question.device).fetch(value->resident(), tell);
  else
    tell({.value = value->host()});
}

void session_service::put(put_value order) {
  shared_->device(order.device);
  held_memory held;
  if (const failure full = capture([&] { held = values_.hold(order.value); }); full.failed())
    return say(was_put{order.request, full});
  const auto finish = [self = shared_from_this(), request = order.request, key = order.key,
                       held](const device_tensor& value, failure why) {
    if (!why.failed())
      why = capture([&] {
        self->values_.keep({.key = key, .home = destination::device},
                           std::make_shared<moved_value>(value->host(), value), inline_bytes, held);
      });
    self->say(was_put{request, why});
  };
  take(std::move(order.value), {}, from_session_,
       [self = shared_from_this(), finish, device = order.device](const tensor& value, const failure& why) {
         if (why.failed())
           finish(nullptr, why);
         else
           self->shared_->device(device).put(value, finish);
       });
}

} // namespace troupe::remote
