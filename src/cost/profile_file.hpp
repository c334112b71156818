// Measured profiles on disk: what `troupe profile` found (`--calibrate`, `--keep`), read by every engine that opens the
// same devices.
//
// JSON, an object a device. A device is known by kind, description and units, so that equal GPUs share an entry and a
// changed machine does not use a wrong one. A network link is known by the other host's address. Missing entries keep
// the device's defaults. Nodes' times are a list of pairs, oldest first, and not an object, whose members have no order
// when they are read back.
#pragma once

#include "cost/device_profile.hpp"
#include "cost/node_times.hpp"

#include <filesystem>
#include <vector>

namespace troupe {

/// Which devices a profile is of.
struct profile_key {
  std::string kind; // "cpu", "vulkan"
  std::string description;
  int32_t units = 0;

  bool operator==(const profile_key&) const = default;
};

/// Most choices of kernels that are kept of a device, and the longest name of a kernel.
inline constexpr size_t max_kept_kernels = 20'000;
inline constexpr size_t max_kernel_name = 200;

/// The way to run a call that was measured to be the fastest on a device (`troupe profile MODEL --tune`).
struct kernel_choice {
  hash128 call;       // `key_of_call`
  hash128 kernel;     // `key_of_kernel`: of its code, the driver and its launches
  std::string name;   // of the kernel, for people
  double seconds = 0; // what it took …
  double usual_s = 0; // … and what the launch rules take first
};

/// One device's measurements.
struct measured_profile {
  profile_key device;
  std::vector<std::pair<std::string, double>> values; // by a field's name: "float32", "launch_s", "up.bytes_per_s" …
  measured_nodes nodes;
  std::vector<kernel_choice> kernels; // one a call, the oldest first
};

/// One network link's measurements: from here to another host's worker and back.
struct measured_link {
  std::string address; // HOST:PORT
  double round_trip_s = 0;
  double to_bytes_per_s = 0, from_bytes_per_s = 0;
};

/// Returns the kernels' keys by those of the calls.
std::unordered_map<hash128, hash128> by_call(const std::vector<kernel_choice>& choices);

/// What a file holds.
struct kept_profiles {
  std::vector<measured_profile> devices;
  std::vector<measured_link> links;
};

/// Returns `profile` with what was measured. Unknown fields and values that cannot be speeds or times throw
/// `errc::invalid_argument`, naming field and value; so do nodes' times as `node_times` says, and choices of kernels
/// that cannot be.
device_profile refine(device_profile profile, const measured_profile& measured);

/// Returns a profile's fields by name, those that are infinite aside: what `refine` takes.
std::vector<std::pair<std::string, double>> values_of(const device_profile& profile);

/// Returns the file's text for these devices and links, and back. `read_profiles` throws `errc::invalid_argument` for
/// text that is not of this form, naming what is wrong.
std::string write_profiles(const std::vector<measured_profile>& all, const std::vector<measured_link>& links = {});
kept_profiles read_profiles(std::string_view text);

/// Returns where an engine looks for the file; empty if the user has no cache folder.
std::filesystem::path profile_path();

/// What an engine knows from a file.
struct loaded_profiles : kept_profiles {
  std::string problem; // why the file could not be used; empty if it could, or if there is none
};

/// Reads a file; never throws. An empty path, or a file that does not exist, is not an error.
loaded_profiles load_profiles(const std::filesystem::path& path);

/// Returns what is known of a device: `old`, with what `fresh` has in its place. New values drop the old operators'
/// sums, which are of the roofline that they were taken against: the nodes' work is not known any more, so they cannot
/// be converted. Nodes' times are seconds and stay.
measured_profile merge(measured_profile old, const measured_profile& fresh);

/// Merges measurements into a file, beside those of other devices and links. A file that could not be used is replaced.
/// Throws `errc::io`.
void store_profiles(const std::filesystem::path& path, const std::vector<measured_profile>& fresh,
                    const std::vector<measured_link>& fresh_links = {});

} // namespace troupe
