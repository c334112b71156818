#include "cpu/cpu_device.hpp"
#include "support/grammar_talk.hpp"

#include <condition_variable>
#include <future>
#include <thread>

namespace troupe::test {

using namespace std::chrono_literals;

namespace {

/// The other end of a session's link: answers as a worker does, but for one answer.
class spoken_worker {
public:
  spoken_worker(link_pair& joined, const round_trip& m, fault_source& random)
      : joined_(joined), link_(joined.end(1)), model_(m), random_(random), spoilt_(random.below(5)) {
    link_->receive({.on_frame = [this](const remote::frame& f) { on(remote::decode(f)); },
                    .on_closed = [](const std::string&) {}});
  }

private:
  void on(const remote::message& m) {
    if (const auto* p = std::get_if<remote::ping>(&m))
      link_->send(remote::encode(remote::pong{p->request, now_ns(), std::vector<uint8_t>(p->answer_bytes)}));
    else if (const auto* i = std::get_if<remote::install>(&m))
      answer(remote::installed{i->device, i->bound_plan, {}});
    else if (const auto* r = std::get_if<remote::run_chunk>(&m))
      answer(made_of(*r));
    else if (const auto* p = std::get_if<remote::put_value>(&m))
      answer(remote::was_put{p->request, {}});
    else if (const auto* a = std::get_if<remote::ask_stats>(&m))
      answer(remote::stats_told{a->request, {}});
  }

  remote::chunk_made made_of(const remote::run_chunk& order) const {
    remote::chunk_made made{.device = order.device, .execution = order.execution, .chunk = order.chunk, .result = {}};
    for (const value_id v : model_.bound->source->chunks[order.chunk].downloads) {
      const tensor t(dtype::float32, model_.bound->dims[v]);
      made.downloads.push_back({.type = dtype::float32,
                                .dims = t.dims(),
                                .bytes = std::vector<uint8_t>(static_cast<size_t>(t.bytes())),
                                .key = {},
                                .peer = {}});
    }
    return made;
  }

  void answer(remote::message m) {
    if (random_.what() == fault_source::kind::none || answers_++ != spoilt_)
      return link_->send(remote::encode(m));
    random_.name(fmt::format("worker: {}", spoil(m)));
    patience_ = std::jthread([this](const std::stop_token& done) { cut_later(done); });
  }

  /// After a wrong answer the session may wait without end for the right one. An honest link is never cut, however
  /// slow.
  void cut_later(const std::stop_token& done) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, done, 150ms, [] { return false; });
    if (!done.stop_requested())
      joined_.cut();
  }

  /// Changes `m`; returns the fault in words.
  std::string spoil(remote::message& m) {
    switch (random_.what()) {
      case fault_source::kind::omission: return "no answer";
      case fault_source::kind::repetition: link_->send(remote::encode(m)); break;
      case fault_source::kind::order: link_->send(remote::encode(remote::chunk_made{})); break;
      case fault_source::kind::owner:
        if (random_.below(2) == 0)
          link_->send(remote::encode(remote::prove_weights{{1, 2}, {{3, 4}}}));
        else
          m = remote::run_chunk{};
        break;
      case fault_source::kind::number:
        if (auto* told = std::get_if<remote::installed>(&m))
          random_.below(2) ? told->device = 9 : told->bound_plan += 1;
        else if (auto* made = std::get_if<remote::chunk_made>(&m))
          random_.below(2) ? made->chunk = 99 : made->execution += 1;
        else if (auto* put = std::get_if<remote::was_put>(&m))
          put->request += 1;
        else
          m = remote::loading{0, 5, 3};
        break;
      default:
        if (auto* made = std::get_if<remote::chunk_made>(&m))
          random_.below(2) ? made->downloads.clear() : made->downloads[0].bytes.resize(3);
        else
          m = remote::memory_wanted{7, 5};
    }
    link_->send(remote::encode(m));
    return fmt::format("{} in an answer", random_.what() == fault_source::kind::repetition ? "repetition"
                                          : random_.what() == fault_source::kind::order    ? "order"
                                          : random_.what() == fault_source::kind::owner    ? "owner"
                                          : random_.what() == fault_source::kind::number   ? "number"
                                                                                           : "size");
  }

  link_pair& joined_;
  const remote::link_ptr link_;
  const round_trip& model_;
  fault_source& random_;
  const uint64_t spoilt_; // which answer
  uint64_t answers_ = 0;
  std::jthread patience_;
};

/// Uses a device of a worker as a session does. Returns what is wrong with the results.
std::string use(device& far, const round_trip& m) {
  std::string wrong;
  const auto ended = std::make_shared<std::promise<chunk_result>>();
  auto result = ended->get_future();
  value_ref out;
  const failure why = capture([&] {
    far.install(m.bound, 0);
    chunk_work work{.bound_plan = m.bound->id, .chunk = m.first, .execution = 1};
    work.uploads.push_back(std::make_shared<moved_value>(tensor(dtype::float32, {8, 8})));
    work.downloads.push_back(out = std::make_shared<moved_value>());
    far.submit(std::move(work), [ended](chunk_result r) { ended->set_value(std::move(r)); });
    if (result.wait_for(10s) != std::future_status::ready)
      wrong = "a chunk is not answered";
    else if (result.get().ok() && (!out->filled() || out->dims() != shape{8, 8}))
      wrong = "a chunk is said to have made what it has not";
    far.put(tensor(dtype::float32, {4}));
  });
  capture([&] { far.retire(m.bound->id); });
  return why.code == errc::internal && why.failed() ? why.message : wrong;
}

} // namespace

std::string speak_as_worker(fault_source& random) {
  const device_info info = make_cpu_device("cpu")->info();
  link_pair joined;
  device_info named = info;
  named.name = "far/cpu";
  const round_trip m = there_and_back(named);
  const spoken_worker worker(joined, m, random);
  std::string wrong;
  const failure why = capture([&] {
    const auto client =
        remote::host_client::make(joined.end(0), "far", "far:1", remote::welcome{.version = "", .devices = {info}},
                                  std::make_shared<remote::outbox>());
    const auto far = remote::make_remote_device(client, 0);
    wrong = use(*far, m);
  });
  joined.stop();
  return random.what() == fault_source::kind::none && why.failed() ? why.message : wrong;
}

} // namespace troupe::test
