#include "support/far_device.hpp"

#include <thread>

namespace troupe::test {
namespace {

class inline_device final : public remote::served_device {
public:
  explicit inline_device(std::shared_ptr<device> d) : device_(std::move(d)) {}
  /// A device's own thread may have the last hold of the host, in an answer: it cannot wait for itself to end.
  ~inline_device() override {
    if (std::this_thread::get_id() != home_)
      std::thread([device = std::move(device_)]() mutable { device = nullptr; }).detach();
  }
  inline_device(const inline_device&) = delete;
  inline_device& operator=(const inline_device&) = delete;

  const device_info& info() const override { return device_->info(); }
  void install(bound_plan_ptr bound, device_index self, std::function<void(failure)> done) override {
    done(call([&] { device_->install(std::move(bound), self); }));
  }
  void retire(uint64_t bound_plan) override {
    call([&] { device_->retire(bound_plan); });
  }
  void run(chunk_work work, chunk_done done) override {
    call([&] { device_->submit(std::move(work), std::move(done)); });
  }
  void end(execution_id execution) override {
    call([&] { device_->end(execution); });
  }
  void fetch(device_tensor value, fetch_done done) override {
    call([&] { device_->fetch(value, done); });
  }
  void put(tensor value, std::function<void(device_tensor, failure)> done) override {
    device_tensor kept;
    const failure why = call([&] { kept = device_->put(value); });
    done(std::move(kept), why);
  }
  void stats(std::function<void(const device_stats&)> done) override {
    device_stats stats;
    call([&] { stats = device_->stats(); });
    done(stats);
  }

private:
  template <class Work>
  failure call(Work&& work) {
    const std::lock_guard lock(mutex_);
    return capture(std::forward<Work>(work));
  }

  const std::thread::id home_ = std::this_thread::get_id();
  std::shared_ptr<device> device_;
  std::recursive_mutex mutex_; // an answer may ask again
};

/// The workers of `open_far`, which find each other by their addresses.
class neighbourhood {
public:
  static neighbourhood& instance() {
    static neighbourhood all;
    return all;
  }
  std::shared_ptr<far_host> open(std::shared_ptr<device> near) {
    const std::lock_guard lock(mutex_);
    const std::string name = fmt::format("far{}", ++last_);
    auto host = std::make_shared<far_host>(
        std::vector{std::move(near)},
        remote::service_options{.connect_peer = [this](const std::string& a) { return call(a); }}, name);
    hosts_[host->address()] = host;
    return host;
  }

private:
  remote::link_ptr call(const std::string& address) {
    std::shared_ptr<far_host> host;
    {
      const std::lock_guard lock(mutex_);
      host = hosts_.at(address).lock();
    }
    remote::frame answer;
    return host->open(remote::encode(remote::hello{.role = remote::role::peer}), answer);
  }

  std::mutex mutex_;
  int last_ = 0;
  std::map<std::string, std::weak_ptr<far_host>> hosts_;
};

/// A remote device that keeps the worker at the other end.
class kept_far_device final : public device {
public:
  kept_far_device(std::shared_ptr<far_host> host, std::unique_ptr<device> inner)
      : host_(std::move(host)), inner_(std::move(inner)) {}

  const device_info& info() const override { return inner_->info(); }
  void install(bound_plan_ptr bound, device_index self) override { inner_->install(std::move(bound), self); }
  void retire(uint64_t bound_plan) override { inner_->retire(bound_plan); }
  void submit(chunk_work work, chunk_done done) override { inner_->submit(std::move(work), std::move(done)); }
  void stop(execution_id execution) override { inner_->stop(execution); }
  void end(execution_id execution) override { inner_->end(execution); }
  void fetch(const device_tensor& value, const fetch_done& done) override { inner_->fetch(value, done); }
  device_tensor put(const tensor& value) override { return inner_->put(value); }
  bool may_hang() const override { return inner_->may_hang(); }
  device_stats stats() const override { return inner_->stats(); }

private:
  std::shared_ptr<far_host> host_;
  std::unique_ptr<device> inner_;
};

} // namespace

remote::served_device_ptr lend_inline(std::shared_ptr<device> d) {
  return std::make_shared<inline_device>(std::move(d));
}

far_host::far_host(std::vector<std::shared_ptr<device>> devices, remote::service_options options, std::string name)
    : name_(std::move(name)) {
  std::vector<remote::served_device_ptr> lent;
  for (auto& d : devices)
    lent.push_back(lend_inline(std::move(d)));
  service_ = std::make_unique<remote::host_service>(std::move(lent), std::move(options));
}

far_host::~far_host() {
  for (const auto& l : links_)
    l->stop();
  service_ = nullptr;
}

remote::link_ptr far_host::open(const remote::frame& first, remote::frame& answer, const link_conditions& conditions) {
  const std::lock_guard lock(mutex_);
  link_pair& joined = *links_.emplace_back(std::make_unique<link_pair>(conditions));
  answer = service_->accept(first, joined.end(1));
  return joined.end(0);
}

std::shared_ptr<remote::host_client> far_host::connect(std::shared_ptr<remote::outbox> offers,
                                                       const link_conditions& conditions) {
  remote::frame answer;
  remote::link_ptr link = open(remote::encode(remote::hello{.name = "test"}), answer, conditions);
  remote::message greeting = remote::decode(answer);
  return remote::host_client::make(std::move(link), name_, address(), std::move(std::get<remote::welcome>(greeting)),
                                   std::move(offers));
}

bool far_host::drop_newest() {
  links_.back()->cut();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (service_->sessions() >= links_.size() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  links_.back()->stop();
  links_.pop_back();
  return service_->sessions() == links_.size();
}

std::unique_ptr<device> open_far(std::unique_ptr<device> near) {
  std::shared_ptr<far_host> host = neighbourhood::instance().open(std::move(near));
  auto inner = remote::make_remote_device(host->connect(), 0);
  return std::make_unique<kept_far_device>(std::move(host), std::move(inner));
}

} // namespace troupe::test
