// A worker's side: lends its devices to the sessions that connect, each with a `session_service` of its own, and gives
// its peers the values that it keeps.
//
// Who connects has been let in by the network's credentials; here the version and the owner's limits are checked.
// Everything of a session is released when its link ends. Thread-safe.
#pragma once

#include "remote/messages.hpp"
#include "remote/model_folder.hpp"
#include "remote/peers.hpp"
#include "remote/served_device.hpp"
#include "remote/session_memory.hpp"
#include "remote/value_room.hpp"
#include "remote/weight_store.hpp"

#include <map>
#include <set>

namespace troupe::remote {

class session_service;

/// What a worker's owner allows, and what a worker is made of.
struct service_options {
  std::string version; // of troupe
  size_t sessions = 64;
  size_t sessions_per_host = 16; // fewer than all: a member that opens sessions and does nothing leaves room for others
  std::vector<std::string> allowed; // hosts (`link::other_host`) that may open sessions; empty: all
  std::filesystem::path weights;    // folder of the disk cache
  std::filesystem::path models;     // folder of models that are here: their weights need not come; empty for none
  peer_connector connect_peer;
  tensor_maker make = make_plain_tensor; // of values that come from others
  int64_t value_bytes = 0; // of all sessions (`value_room`); 0: as many as the devices lend, at least 4 GiB
  std::chrono::milliseconds peer_patience = std::chrono::seconds(3);
  std::chrono::milliseconds memory_patience =
      std::chrono::seconds(2); // of installs, while other sessions hold the memory
  /// Is told what happens, one event at a time: its name and what belongs to it.
  using facts = std::vector<std::pair<std::string, std::string>>;
  std::function<void(const std::string& event, const facts&)> log = [](const std::string&, const facts&) {};
};

/// What the sessions of a worker share.
struct shared_service {
  std::vector<served_device_ptr> devices;
  service_options options;
  weight_store weights;
  std::unique_ptr<model_folder> models; // null for none
  piece_source offers;                  // values, by keys that only those know who were told
  peers others;
  shared_ledgers memory; // of what devices lend, over all sessions
  std::shared_ptr<value_room> room;

  shared_service(std::vector<served_device_ptr> d, service_options o)
      : devices(std::move(d)), options(std::move(o)), weights({.folder = options.weights}),
        models(options.models.empty()
                   ? nullptr
                   : std::make_unique<model_folder>(options.models, default_model_index(options.models))),
        others(options.connect_peer, options.peer_patience) {
    int64_t lent = 0;
    for (const served_device_ptr& device : devices) {
      memory.push_back(std::make_shared<shared_ledger>(device->info().memory_bytes));
      lent += device->info().memory_bytes;
    }
    const int64_t usual = std::max(lent, int64_t{4} << 30);
    room = std::make_shared<value_room>(options.value_bytes > 0 ? options.value_bytes : usual);
  }

  /// Throws `errc::invalid_input` if there is no such device.
  served_device& device(uint32_t index) const {
    if (index >= devices.size())
      fail(errc::invalid_input, "there is no device {}", index);
    return *devices[index];
  }
};

/// See the top of this file.
class host_service {
public:
  host_service(std::vector<served_device_ptr> devices, service_options options);
  /// Ends all links.
  ~host_service();
  host_service(const host_service&) = delete;
  host_service& operator=(const host_service&) = delete;

  /// Answers the first frame of a new link, and serves the link from then on. Throws `errc::unsupported` if the other
  /// end is of another version, not allowed here, or the worker is full or leaves: the caller says so and ends the
  /// link.
  frame accept(const frame& first, const link_ptr& connection);

  /// Takes no more sessions, tells those that are there, once, and waits at most so long until they have left. Returns
  /// whether they have.
  bool drain(std::chrono::milliseconds limit);

  size_t sessions() const;
  /// Returns how many values and weights are on offer to sessions and peers.
  size_t offered() const { return shared_->offers.size(); }
  /// Returns how many bytes sessions hold of what devices lend, and of the room for values.
  int64_t held_bytes() const;

private:
  /// Links may end when the service has ended: they know this.
  struct book {
    std::mutex mutex;
    std::condition_variable left;
    bool draining = false;
    uint64_t last = 0;
    struct entry {
      std::shared_ptr<session_service> session;
      std::string host;
    };
    std::map<uint64_t, entry> sessions;
    std::set<link_ptr> peers;
  };

  frame serve(const hello& who, const link_ptr& connection);
  void check(const hello& who) const;
  /// Under the lock: throws unless one more session of `host` may be served.
  void check_limits(const std::string& host) const;
  void serve_session(const hello& who, const link_ptr& connection);
  void serve_peer(const link_ptr& connection);

  const std::shared_ptr<shared_service> shared_;
  const std::shared_ptr<book> book_ = std::make_shared<book>();
};

} // namespace troupe::remote
