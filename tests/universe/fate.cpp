// What fate does to a world: hosts and ways between them.
#include "universe/world.hpp"

#include <thread>

namespace troupe::universe {

using namespace std::chrono_literals;
using test::below;

namespace {

std::chrono::milliseconds up_to(random_source& r, size_t ms) {
  return std::chrono::milliseconds(below(r, ms));
}

} // namespace

void world::make_troubles() {
  for (size_t i = 0; i < rules_.troubles; ++i) {
    static constexpr std::array pauses{5, 40, 40, 400, 1500};
    std::this_thread::sleep_for(up_to(random_, pauses[below(random_, pauses.size())]));
    site& at = sites_[below(random_, sites_.size())];
    const bool is_there = at.worker != nullptr;
    await_activity(at);
    switch (below(random_, 7)) {
      case 0:
      case 1:
        if (is_there)
          kill(at);
        break;
      case 2:
        if (is_there)
          drain(at);
        break;
      case 3: replace_device(homes_[below(random_, homes_.size())]); break;
      case 4: {
        const site& other = sites_[below(random_, sites_.size())];
        if (&other != &at) {
          excuses_.parted_workers = true;
          trouble_way(other.name, at);
        }
        break;
      }
      default: trouble_way(homes_[below(random_, homes_.size())].name, at);
    }
    site& gone = sites_[below(random_, sites_.size())];
    if (!gone.worker) {
      if (!rules_.failing_devices && below(random_, 3) == 0) { // a device that hangs would read them later
        gone.await_end();                                      // it has the files mapped
        damage_weights(gone);
      }
      tale_.tell("{} begins again", gone.name);
      open_worker(gone);
    }
  }
}

/// Says what is in flight between homes and a worker.
const char* world::activity_at(const site& at) const {
  bool has_chunks = false;
  for (const home& from : homes_) {
    const remote::host_activity a = activity_of(*from.lives, at.name);
    if (a.pulls > 0)
      return "transfer in flight";
    has_chunks = has_chunks || a.chunks > 0;
  }
  return has_chunks ? "chunk in flight" : "idle";
}

/// Mostly, troubles wait a while for something that they can meet: work in flight, or one of the next messages.
void world::await_activity(const site& at) {
  const size_t kind = below(random_, 4);
  if (kind == 1)
    internet_.await_frames(at.name, 1 + below(random_, 30), 200ms);
  else if (kind > 1)
    for (int i = 0; i < 50 && activity_at(at) == std::string_view("idle"); ++i)
      std::this_thread::sleep_for(2ms);
}

void world::note(const std::string& what, const site& at) {
  tale_.count(fmt::format("{}: {}", what, activity_at(at)));
}

/// A device of a home is lost, and perhaps another one joins. The first of a home stays.
void world::replace_device(home& at) {
  if (rules_.home_devices < 2)
    return;
  const std::string name = fmt::format("h{}", 1 + below(random_, rules_.home_devices - 1));
  tale_.tell("{} loses {}", at.name, name);
  tale_.count("device lost");
  excuses_.lost_devices = true;
  lose_devices(
      *at.lives, [&](const device_info& d) { return d.name == name; }, "fate took it");
  std::this_thread::sleep_for(up_to(random_, 20));
  if (below(random_, 2) == 0)
    return;
  const std::string other = fmt::format("j{}", ++joined_);
  tale_.tell("{} gets {}", at.name, other);
  tale_.count("device joined");
  add_devices(*at.lives, {device_of(other, script_of(false))});
}

void world::kill(site& at) {
  tale_.tell("{} is killed", at.name);
  note("kill", at);
  excuses_.lost_devices = true;
  internet_.kill(at.name);
  at.await_end();
  at.killed = std::thread([gone = std::move(at.worker)]() mutable { gone = nullptr; });
}

void world::drain(site& at) {
  const auto limit = up_to(random_, 3000);
  tale_.tell("{} leaves, within {} ms", at.name, limit.count());
  note("drain", at);
  excuses_.lost_devices = true; // as a place for values that nothing runs on
  const bool in_order = at.worker->drain(limit);
  tale_.tell("{} has left{}", at.name, in_order ? " in order" : ", though it was needed");
  tale_.count(in_order ? "drain in order" : "drain cut short");
  at.worker = nullptr;
}

void world::trouble_way(const std::string& a, const site& at) {
  const std::string& b = at.name;
  switch (below(random_, 4)) {
    case 0:
      tale_.tell("the links between {} and {} are cut", a, b);
      note("cut", at);
      excuses_.lost_devices = true;
      internet_.cut(a, b);
      break;
    case 1: {
      const auto length = up_to(random_, 3000);
      const size_t ways = below(random_, 3);
      tale_.tell("nothing gets {} {} {} for {} ms", ways == 0 ? "between" : "from", ways == 2 ? b : a,
                 ways == 0 ? "and " + b : "to " + (ways == 2 ? a : b), length.count());
      note(length > actors::network::silence_limit ? "silence" : "short silence", at);
      excuses_.lost_devices = excuses_.silences = true; // fate's own thread may stall: a short one may be long
      if (ways != 2)
        internet_.set_way(a, b, {.held = true});
      if (ways != 1)
        internet_.set_way(b, a, {.held = true});
      std::this_thread::sleep_for(length);
      set_usual_ways(a, b);
      break;
    }
    default: {
      const way slow{.delay = up_to(random_, 400),
                     .bytes_per_second = 1e4 * static_cast<double>(1 + below(random_, 1000))};
      tale_.tell("what goes between {} and {} takes {} ms, {:.0f} KB/s", a, b, slow.delay.count() / 1'000'000,
                 slow.bytes_per_second / 1e3);
      tale_.count("slow way");
      excuses_.lost_devices = excuses_.silences = true; // one that is silent for too long
      internet_.set_way(a, b, slow);
      internet_.set_way(b, a, slow);
    }
  }
}

/// Cuts off or changes what is on a worker's disk, as a power failure may.
void world::damage_weights(const site& at) {
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(at.weights, ignored)) {
    const auto size = file.file_size(ignored);
    if (size == 0 || below(random_, 2) == 0)
      continue;
    tale_.tell("{} finds a weight of {} bytes cut off", at.name, size);
    tale_.count("torn weight");
    std::filesystem::resize_file(file, below(random_, size), ignored);
  }
}

void world::mend_all() {
  tale_.tell("all is mended");
  for (site& a : sites_) {
    for (const home& b : homes_)
      set_usual_ways(a.name, b.name);
    for (const site& b : sites_)
      set_usual_ways(a.name, b.name);
    if (!a.worker)
      open_worker(a);
  }
}

void world::set_usual_ways(const std::string& a, const std::string& b) {
  const way usual{.delay = std::chrono::microseconds(50 + below(random_, rules_.is_busy ? 8'000 : 200))};
  internet_.set_way(a, b, usual);
  internet_.set_way(b, a, usual);
}

} // namespace troupe::universe
