// Another host as a session's process sees it: one link, the devices at its other end, and values that the host keeps.
//
// `remote_device` (remote_device.hpp) is what runs chunks there; all remote devices of a host share its client. When
// the link ends, everything that waits for an answer gets `errc::device_lost`, naming the host, and the client never
// comes back: a host that returns gets a new client and new devices. So nothing that an old link might still carry can
// reach a new one. Thread-safe. No callback is called under the lock.
#pragma once

#include "remote/device_news.hpp"
#include "remote/link_meter.hpp"
#include "remote/told_plans.hpp"

namespace troupe::remote {

/// What a host has in hand for this process.
struct host_activity {
  size_t chunks = 0; // sent and not ended
  size_t pulls = 0;  // values on their way here
};

/// See the top of this file.
class host_client : public std::enable_shared_from_this<host_client> {
public:
  /// Takes over a link whose other end has said `welcome`. `name` is the user's for the host, `address` its HOST:PORT,
  /// which other workers are told. Measures the link.
  static std::shared_ptr<host_client> make(link_ptr connection, std::string name, std::string address, welcome greeting,
                                           std::shared_ptr<outbox> offers, const link_measuring& how = {});
  ~host_client();
  host_client(const host_client&) = delete;
  host_client& operator=(const host_client&) = delete;

  const std::string& name() const { return name_; }
  const std::string& address() const { return address_; }
  /// Returns the host's devices as a session calls them: "NAME/cpu".
  const std::vector<device_info>& devices() const { return devices_; }
  const link_figures& figures() const { return figures_; }
  host_activity activity() const { return {chunks_, pulls_}; }
  void count_chunk(bool begins) { begins ? ++chunks_ : --chunks_; }
  outbox& offers() { return *offers_; }
  /// Returns where values that the host keeps come from.
  const value_source& values() const { return values_; }

  /// Calls `told(why, need)` once when the host says that it leaves. The link ends with the last copy of `need` and the
  /// last value that is kept there: in order, if the host waits so long. Without a listener there is no need for it.
  using leaving_told = std::function<void(const std::string& why, const std::shared_ptr<const void>& need)>;
  void on_leaving(leaving_told told);
  /// Returns what a user must hold that needs the link after that; null if the link is about to end.
  std::shared_ptr<const void> need() const;
  /// Calls `told(why)` once when the link has ended, at once if it has.
  void on_end(std::function<void(const std::string& why)> told);
  void close() { link_->close(); }

  // -- for the host's devices
  void send(const message& m) { send_encoded(encode(m)); }
  void send_encoded(frame f) { link_->send(std::move(f)); }
  question_book& questions() { return questions_; }
  link_meter& meter() { return meter_; }
  device_news& news() { return news_; }
  offered_plan offer(const std::shared_ptr<const plan>& p) { return plans_.offer(p); }

private:
  host_client(link_ptr connection, std::string name, std::string address, welcome greeting,
              std::shared_ptr<outbox> offers);
  void start(const link_measuring& how);
  void on_frame(const frame& f);
  void on(message& m);
  void leave(const std::string& why);
  void end(const std::string& why);

  const link_ptr link_;
  const std::string name_, address_;
  const std::shared_ptr<outbox> offers_;
  weight_routes::worker_id worker_ = 0;
  std::atomic<size_t> chunks_{0}, pulls_{0}; // the end of the puller still counts
  const std::shared_ptr<piece_puller> puller_;
  const value_source values_;
  std::vector<device_info> devices_;
  question_book questions_;
  link_meter meter_;
  device_news news_;
  told_plans plans_;
  link_figures figures_;
  mutable std::mutex mutex_;         // guards the rest
  std::shared_ptr<const void> need_; // until the host says that it leaves
  std::weak_ptr<const void> needed_; // by others
  leaving_told told_leaving_;
  std::string leaves_because_;
  std::optional<failure> ended_;
  std::vector<std::function<void(const std::string&)>> enders_;
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
