#include "remote/remote_device.hpp"

#include "device/tells_progress.hpp"
#include "remote/conversation.hpp"

namespace troupe::remote {
namespace {

class remote_device final : public device, public tells_progress {
public:
  explicit remote_device(std::shared_ptr<conversation> with) : with_(std::move(with)) { with_->begin(); }

  const device_info& info() const override { return with_->info(); }
  void install(bound_plan_ptr bound, device_index self) override { with_->install(bound, self); }
  void retire(uint64_t bound_plan) override { with_->retire(bound_plan); }
  void submit(chunk_work work, chunk_done done) override { with_->submit(std::move(work), std::move(done)); }
  void stop(execution_id execution) override { with_->host().send(stop_chunks{execution}); }
  void end(execution_id execution) override { with_->host().send(end_chunks{with_->index(), execution}); }
  void fetch(const device_tensor& value, const fetch_done& done) override { with_->fetch(value, done); }
  device_tensor put(const tensor& value) override { return with_->put(value); }
  device_stats stats() const override { return with_->stats(); }
  /// Heartbeats tell that the host's process lives, only its answers that its devices do.
  bool may_hang() const override { return true; }
  void on_progress(std::function<void()> told) override { with_->on_progress(std::move(told)); }

private:
  const std::shared_ptr<conversation> with_;
};

} // namespace

std::unique_ptr<device> make_remote_device(std::shared_ptr<host_client> host, uint32_t index) {
  return std::make_unique<remote_device>(std::make_shared<conversation>(std::move(host), index));
}

} // namespace troupe::remote
