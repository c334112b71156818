#include "sim/virtual_devices.hpp"

#include <cmath>

namespace troupe::sim {
namespace {

/// How many jobs of a queue an event may concern: the next ones may copy while the first works.
constexpr size_t window = 4;

double total_s(const std::vector<leg>& legs) {
  double sum = 0;
  for (const leg& l : legs)
    sum += l.latency_s + l.bytes / l.bytes_per_s;
  return sum;
}

} // namespace

void virtual_devices::add(const device_info& device) {
  const size_t next = processors_.size();
  const size_t on =
      device.processor.empty() ? next : processor_of_.try_emplace({device.host, device.processor}, next).first->second;
  if (on == next)
    processors_.emplace_back();
  devices_.push_back({.info = device, .on = on, .host = {}, .use = {}, .waiting = 0, .pace = 1});
}

void virtual_devices::run(size_t device, const chunk_price& price, chunk_done done) {
  virtual_device& d = devices_[device];
  if (d.lost)
    return;
  const auto j = std::make_shared<job>();
  j->times.number = ++jobs_;
  j->device = device;
  j->price = &price;
  j->done = std::move(done);
  j->times.sent = events_.now();
  j->host_end = d.host.take(events_.now(), price.host_s);
  processor& p = processors_[d.on];
  j->beside_in = d.info.copies_beside_work && !p.jobs.empty() && price.in_bytes >= copies_beside_bytes;
  j->beside_out = d.info.copies_beside_work && price.next_is_free && price.out_bytes >= copies_beside_bytes;
  p.jobs.push_back(j);
  ++d.waiting;
  if (!price.net_in.empty()) {
    d.coming.push_back(j);
    if (d.coming.size() == 1)
      receive(device);
  } else if (j->host_end > events_.now()) {
    events_.at(j->host_end, [this, j] { arrive(j); });
  } else {
    arrive(j);
  }
}

void virtual_devices::arrive(const job_ptr& j) {
  j->is_here = true;
  look(devices_[j->device].on);
}

void virtual_devices::receive(size_t device) {
  const job_ptr j = devices_[device].coming.front();
  events_.at(j->host_end, [this, device, j] {
    if (j->has_ended())
      return;
    j->times.come_begin = events_.now();
    carry(j, j->price->net_in, 0, [this, device, j] {
      j->times.come_end = events_.now();
      devices_[device].coming.pop_front();
      if (!devices_[device].coming.empty())
        receive(device);
      arrive(j);
    });
  });
}

void virtual_devices::deliver(size_t device) {
  const job_ptr j = devices_[device].going.front();
  carry(j, j->price->net_out, 0, [this, device, j] {
    devices_[device].going.pop_front();
    if (!devices_[device].going.empty())
      deliver(device);
    answer(j);
  });
}

void virtual_devices::answer(const job_ptr& j) {
  --devices_[j->device].waiting;
  j->times.end = events_.now();
  const chunk_done done = std::move(j->done);
  done(j->times);
}

void virtual_devices::lose(size_t device) {
  virtual_device& d = devices_[device];
  processor& p = processors_[d.on];
  const auto forget = [&](const job_ptr& j) {
    if (j->moving)
      links_.cancel(*j->moving);
    j->at = stage::ended; // nothing that is scheduled for it does anything now
    j->done = nullptr;
    return true;
  };
  std::erase_if(p.jobs, [&](const job_ptr& j) { return j->device == device && forget(j); });
  std::ranges::for_each(d.going, forget);
  d.coming.clear();
  d.going.clear();
  d.waiting = 0;
  d.lost = true;
  p.work.free_s = events_.now();
  look(d.on);
}

void virtual_devices::look(size_t on) {
  processor& p = processors_[on];
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < std::min(p.jobs.size(), window); ++i)
      again = go_on(p, i) || again;
    while (!p.jobs.empty() && p.jobs.front()->has_ended()) {
      p.jobs.pop_front();
      again = true;
    }
  }
}

bool virtual_devices::may_begin(const processor& p, size_t i) const {
  const job& j = *p.jobs[i];
  if (!j.is_here)
    return false;
  if (!j.beside_in)
    return may_work(p, i);
  return (i < 1 || p.jobs[i - 1]->has_copied_in()) && (i < 2 || p.jobs[i - 2]->leaves_lane()) &&
         (i < 3 || p.jobs[i - 3]->has_ended());
}

bool virtual_devices::may_work(const processor& p, size_t i) const {
  return (i < 1 || p.jobs[i - 1]->leaves_lane()) && (i < 2 || p.jobs[i - 2]->has_ended());
}

bool virtual_devices::go_on(processor& p, size_t i) {
  const job_ptr j = p.jobs[i]; // what it calls may take jobs out
  switch (j->at) {
    case stage::waits:
      if (!may_begin(p, i))
        return false;
      if (j->beside_in)
        begin_copies_in(j);
      else
        submit(p, j);
      return true;
    case stage::waits_for_work:
      if (!may_work(p, i))
        return false;
      if (j->beside_in)
        submit(p, j);
      else
        work(j);
      return true;
    case stage::waits_for_out:
      if (i > 0 && !p.jobs[i - 1]->has_ended())
        return false;
      j->times.out_begin = events_.now();
      j->at = stage::copies_out;
      devices_[j->device].use.copy_s += total_s(j->price->out);
      carry(j, j->price->out, 0, [this, j] { end(j); });
      return true;
    default: return false;
  }
}

void virtual_devices::begin_copies_in(const job_ptr& j) {
  j->times.in_begin = events_.now();
  j->at = stage::copies_in;
  devices_[j->device].use.copy_s += total_s(j->price->in);
  carry(j, j->price->in, 0, [this, j] {
    if (!j->beside_in)
      return work(j); // it has the lane
    j->at = stage::waits_for_work;
    j->ready = events_.now();
  });
}

void virtual_devices::submit(processor& p, const job_ptr& j) {
  const device_info& info = devices_[j->device].info;
  if (!j->beside_in)
    j->ready = j->host_end;
  if (j->ready < p.work.free_s)
    j->times.after = p.last_number;
  p.last_number = j->times.number;
  j->at = stage::submits;
  const double wait_s = p.work.submit(j->device, info, j->price->work_s, j->ready);
  events_.after(wait_s, [this, j] {
    if (j->has_ended())
      return;
    if (j->beside_in)
      work(j);
    else
      begin_copies_in(j);
    look(devices_[j->device].on);
  });
}

void virtual_devices::work(const job_ptr& j) {
  j->at = stage::works;
  j->times.work_begin = events_.now();
  virtual_device& d = devices_[j->device];
  const double work_s = j->price->work_s * d.pace * noise();
  d.use.work_s += work_s;
  j->times.busy_s = total_s(j->price->in) + work_s + total_s(j->price->out);
  events_.after(work_s, [this, j] {
    if (j->has_ended())
      return;
    j->times.work_end = events_.now();
    j->at = stage::waits_for_out;
    if (j->beside_out)
      processors_[devices_[j->device].on].work.free_s = events_.now();
    look(devices_[j->device].on);
  });
}

void virtual_devices::carry(const job_ptr& j, const std::vector<leg>& legs, size_t i,
                            const std::function<void()>& then) {
  if (i == legs.size())
    return then();
  const leg& l = legs[i];
  const auto go_on = [this, j, &legs, i, then] {
    if (j->has_ended())
      return;
    j->moving.reset();
    carry(j, legs, i + 1, then);
    look(devices_[j->device].on);
  };
  if (l.route.empty())
    return events_.after(l.latency_s + l.bytes / l.bytes_per_s, go_on);
  events_.after(l.latency_s, [this, j, &l, go_on] {
    if (!j->has_ended())
      j->moving = links_.start(l.bytes, l.route, l.bytes_per_s, go_on);
  });
}

void virtual_devices::end(const job_ptr& j) {
  virtual_device& d = devices_[j->device];
  if (!j->beside_out)
    processors_[d.on].work.free_s = events_.now();
  ++d.use.chunks;
  d.use.bytes_in += j->price->in_bytes;
  d.use.bytes_out += j->price->out_bytes;
  const auto result = std::make_shared<job>(*j); // outlives the lanes, but not the device
  j->at = stage::ended;
  if (result->price->net_out.empty())
    return answer(result);
  d.going.push_back(result);
  if (d.going.size() == 1)
    deliver(j->device);
}

double virtual_devices::noise() {
  if (noise_ <= 0)
    return 1;
  // Of mean 1. Not std::normal_distribution, whose numbers differ between libraries: Box and Muller's (1958).
  const double radius = std::sqrt(-2 * std::log(random_.open_unit()));
  const double normal = radius * std::cos(6.283185307179586 * random_.open_unit());
  return std::exp(noise_ * normal - noise_ * noise_ / 2);
}

} // namespace troupe::sim
