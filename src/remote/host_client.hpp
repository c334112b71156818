// Another host as a session's process sees it: one link, the devices at its other end, and values that the host keeps.
//
// `remote_device` (remote_device.hpp) is what runs chunks there; all remote devices of a host share its client. When
// the link ends, everything that waits for an answer gets `errc::device_lost`, naming the host, and the client never
// comes back: a host that returns gets a new client, with devices of their own. So nothing that an old link might still
// carry can reach a new one. Thread-safe. No callback is called under the lock.
#pragma once

#include "remote/clocks.hpp"
#include "remote/outbox.hpp"
#include "remote/values.hpp"

#include <atomic>
#include <future>
#include <thread>

namespace troupe::remote {

/// What a link was measured to do.
struct link_figures {
  double round_trip_s = 0;
  double up_bytes_per_s = 0, down_bytes_per_s = 0; // to the host, from it
  bool up_tells = true, down_tells = true;         // whether the bytes took long enough to tell the speed
};

/// Returns what to believe of a link: what was just measured, with the speeds of an earlier, longer measurement where
/// the new one was too short to tell them.
link_figures believed(link_figures measured, const std::optional<link_figures>& earlier);

/// How much a measurement of a link may take: its loads grow until one takes `telling_s`, and as many round trips as
/// `telling_trips`, or has `last_load` bytes; `repeats` times that, of which the fastest counts.
struct measuring_effort {
  double telling_s = 0.02;
  double telling_trips = 4;
  size_t last_load = size_t{4} << 20;
  int repeats = 3;
};

/// Weights on their way to a host.
struct load_progress {
  int64_t came = 0, total = 0; // bytes
};

/// What a host has in hand for this process.
struct host_activity {
  size_t chunks = 0; // sent and not ended
  size_t pulls = 0;  // values on their way here
};

template <class Question>
struct answer_of;
template <>
struct answer_of<ping> {
  using type = pong;
};
template <>
struct answer_of<put_value> {
  using type = was_put;
};
template <>
struct answer_of<ask_stats> {
  using type = stats_told;
};
/// The message that answers one.
template <class Question>
using answer_to = typename answer_of<Question>::type;

/// See the top of this file.
class host_client : public std::enable_shared_from_this<host_client> {
public:
  /// Takes over a link whose other end has said `welcome`. `name` is the user's for the host, `address` its HOST:PORT,
  /// which other workers are told; `earlier`: what the link was measured to do at some other time.
  static std::shared_ptr<host_client> make(link_ptr connection, std::string name, std::string address, welcome greeting,
                                           std::shared_ptr<outbox> offers,
                                           const std::optional<link_figures>& earlier = {});
  ~host_client();
  host_client(const host_client&) = delete;
  host_client& operator=(const host_client&) = delete;

  const std::string& name() const { return name_; }
  const std::string& address() const { return address_; }
  /// Returns the troupe that the host runs.
  const std::string& version() const { return version_; }
  /// Returns the host's devices as a session calls them: "NAME/cpu".
  const std::vector<device_info>& devices() const { return devices_; }
  const link_figures& figures() const { return figures_; }
  /// Measures the link again, which is busy meanwhile. Throws `errc::timeout`, `errc::device_lost`.
  link_figures measure(const measuring_effort& effort);
  /// Returns how far the host's clock is ahead of this process's, by all exchanges so far and this one.
  int64_t clock_ahead_ns(const std::optional<clock_sample>& exchange);
  host_activity activity() const { return {chunks_, pulls_}; }
  load_progress loads() const;
  void count_chunk(bool begins) { begins ? ++chunks_ : --chunks_; }
  outbox& offers() { return *offers_; }
  /// Returns where values that the host keeps come from.
  const value_source& values() const { return values_; }

  /// Calls `told(why, need)` once when the host says that it leaves. The link ends with the last copy of `need` and the
  /// last value that is kept there: in order, if the host waits so long. If nobody is told, nobody needs it.
  using leaving_told = std::function<void(const std::string& why, const std::shared_ptr<const void>& need)>;
  void on_leaving(leaving_told told);
  /// Returns what is to be held by whoever needs the link after that; null if the link is about to end.
  std::shared_ptr<const void> need() const;
  /// Calls `told(device, bytes)` when sessions of other processes lack memory of a device (an index) that this one's
  /// hold; see `memory_wanted`.
  using memory_told = std::function<void(uint32_t device, int64_t bytes)>;
  void on_memory_wanted(memory_told told);
  /// Calls `told(why)` once when the link has ended, at once if it has.
  void on_end(std::function<void(const std::string& why)> told);
  void close() { link_->close(); }

  // -- for the host's devices
  void send(const message& m) { send_encoded(encode(m)); }
  void send_encoded(frame f) { link_->send(std::move(f)); }
  /// Who hears what the host says of device `index`.
  struct listener {
    std::function<void(chunk_made)> on_chunk;
    std::function<void(installed)> on_installed;
    std::function<void()> on_progress;          // weights of an install have come
    std::function<void(const failure&)> on_end; // once, last
  };
  void listen(uint32_t index, listener who);
  /// Sends what carries `request`, a number that `ask` gives, and returns the answer to come, or an `error` thrown. A
  /// host that answers by a message of another kind loses its link.
  template <class Question>
  std::future<answer_to<Question>> ask(Question question) {
    using answer = answer_to<Question>;
    const auto promised = std::make_shared<std::promise<answer>>();
    question.request = expect_answer<answer>([promised](answer* told, const failure& why) {
      if (told)
        promised->set_value(std::move(*told));
      else
        promised->set_exception(std::make_exception_ptr(error(why.code, why.message)));
    });
    send(std::move(question));
    return promised->get_future();
  }
  /// The same with a callback, on the link's thread; `why` is set if there is no answer. Returns the number to send.
  template <class Answer>
  uint64_t expect_answer(std::function<void(Answer*, const failure& why)> taken) {
    return expect_answer(
        {.fits = [](const message& m) { return std::holds_alternative<Answer>(m); },
         .taken = [taken = std::move(taken)](message* m,
                                             const failure& why) { taken(m ? &std::get<Answer>(*m) : nullptr, why); }});
  }
  /// Tells the host what plan an `install` names, and, if there are such, of which plans there will be none.
  offered_plan offer(const std::shared_ptr<const plan>& p);

private:
  host_client(link_ptr connection, std::string name, std::string address, std::shared_ptr<outbox> offers);
  void start(welcome greeting, const std::optional<link_figures>& earlier);
  /// Returns the seconds that bytes there and bytes back take, a round trip included.
  double exchange(size_t up, size_t down);
  /// Who waits for an answer, and of what kind.
  struct asker {
    bool (*fits)(const message&) = nullptr;
    std::function<void(message*, const failure& why)> taken;
  };
  uint64_t expect_answer(asker who);
  void on_frame(const frame& f);
  void on(message& m);
  void on_loading(const loading& told);
  void forget_loading(uint32_t device);
  /// Shows the host that weights of plans that it was offered are here; fails if no honest host would ask that.
  void prove(prove_weights wanted);
  void answer(uint64_t request, message& m);
  void leave(const std::string& why);
  void tell_memory(const memory_wanted& lack);
  void end(const std::string& why);

  const link_ptr link_;
  const std::string name_, address_;
  const std::shared_ptr<outbox> offers_;
  weight_routes::worker_id worker_ = 0;
  std::atomic<size_t> chunks_{0}, pulls_{0}; // the end of the puller still counts
  const std::shared_ptr<piece_puller> puller_;
  const value_source values_;
  std::vector<device_info> devices_;
  std::string version_;
  link_figures figures_;
  mutable std::mutex mutex_;
  std::shared_ptr<const void> need_; // until the host says that it leaves
  std::weak_ptr<const void> needed_; // by others
  leaving_told told_leaving_;
  std::string leaves_because_;
  memory_told told_memory_;
  std::optional<failure> ended_;
  uint64_t last_request_ = 0;
  std::unordered_map<uint64_t, asker> waiting_;
  std::map<uint32_t, listener> listeners_;
  std::map<uint32_t, load_progress> loads_; // by device
  clock_filter clock_;
  std::vector<std::function<void(const std::string&)>> enders_;
  struct told_plan {
    std::weak_ptr<const plan> of;
    std::shared_ptr<const std::unordered_set<hash128>> leaves;
  };
  std::map<uint64_t, told_plan> plans_; // that the host has been told of
  std::atomic<bool> is_proving_{false};
  std::jthread prover_; // of the link's thread; last, since it reads the members above
};

/// A value that a host keeps, outside of its devices' arenas: readable by its devices at once, by other hosts over the
/// network.
class kept_value : public away_value {
public:
  kept_value(std::shared_ptr<host_client> host, const hash128& key, dtype type, shape dims, int64_t size)
      : away_value(type, std::move(dims), host->name()), host_(std::move(host)), need_(host_->need()), key_(key),
        size_(size) {}
  ~kept_value() override { host_->send(remote::release{{key_}}); }
  kept_value(const kept_value&) = delete;
  kept_value& operator=(const kept_value&) = delete;

  const hash128& key() const { return key_; }
  /// Describes it for a device of `reader`.
  sent_value describe_for(const host_client& reader) const;

private:
  const std::shared_ptr<host_client> host_;
  const std::shared_ptr<const void> need_;
  const hash128 key_;
  const int64_t size_;
};

} // namespace troupe::remote
