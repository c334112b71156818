// What a session is made of, for a recording: enough to make one that does the same. The model itself is not kept, only
// which file it was loaded from; nor are measured times of nodes, only that there were some.
#pragma once

#include "run/session_plans.hpp"

namespace troupe::recording {

/// A device, with what `wire` does not tell other hosts.
struct device_facts {
  device_info info;
  hash128 measured; // of `device_profile::measured`; zero if there is none
};

struct session_facts {
  std::string version; // of troupe
  std::string model_file;
  uint64_t model_bytes = 0; // of the file …
  hash128 model_hash;       // … and of its content
  std::string profile_file; // from which measured times came, if any did
  session_options options;  // those that plans depend on
  std::vector<device_facts> devices;
  std::vector<uint64_t> lost;    // of the devices, by index
  std::vector<std::string> only; // `session_plans`
  completion_mode completion{};
  bool follows_speeds = false;
};

/// Returns what a session is made of, but for version and profile; `devices` as its machine has them.
session_facts facts_of(const session_plans& plans, const std::vector<device_info>& devices, completion_mode completion,
                       bool follows_speeds);

/// As bytes, and back: throws `errc::invalid_input` for other bytes.
std::vector<uint8_t> encode(const session_facts& facts);
session_facts decode_session(std::span<const uint8_t> bytes);
/// The same of a device that joins.
std::vector<uint8_t> encode(const device_info& device);
device_facts decode_device(std::span<const uint8_t> bytes);

} // namespace troupe::recording
