#include "universe/lying_host.hpp"

#include <utility>

namespace troupe::universe {
namespace {

using test::below;

constexpr size_t most_old_frames = 64;
/// Long frames are pieces of values; all else is in the first bytes of a frame.
constexpr size_t head_bytes = 96;

} // namespace

lying_host::lying_host(uint64_t seed, story& tale)
    : tale_(tale), random_(seed), sound_frames_(std::array{5, 20, 100}[below(random_, 3)]) {}

bool lying_host::lies() {
  return below(random_, sound_frames_ + 1) == 0;
}

std::vector<remote::frame> lying_host::instead_of(remote::frame sound) {
  old_.push_back(sound);
  if (old_.size() > most_old_frames)
    old_.pop_front();
  std::vector<remote::frame> said;
  if (!lies()) {
    said.push_back(std::move(sound));
  } else {
    static constexpr std::array names{"left out", "kept back", "said twice", "an old one after it",
                                      "changed",  "changed"};
    const size_t what = below(random_, names.size());
    tale_.count(fmt::format("lie: {}", names[what]));
    switch (what) {
      case 0: break;
      case 1: kept_back_.push_back(std::move(sound)); return said;
      case 2: said = {sound, sound}; break;
      case 3: said = {std::move(sound), old_[below(random_, old_.size())]}; break;
      default: said.push_back(changed(std::move(sound)));
    }
  }
  std::ranges::move(std::exchange(kept_back_, {}), std::back_inserter(said));
  return said;
}

remote::frame lying_host::changed(remote::frame f) {
  if (f.empty())
    return f;
  if (below(random_, 4) == 0) {
    f.resize(below(random_, f.size()));
    return f;
  }
  for (size_t n = 1 + below(random_, 3); n > 0; --n) {
    uint8_t& b = f[below(random_, std::min(f.size(), head_bytes))];
    switch (below(random_, 3)) {
      case 0: ++b; break;
      case 1: --b; break;
      default: b = static_cast<uint8_t>(below(random_, 256));
    }
  }
  return f;
}

} // namespace troupe::universe
