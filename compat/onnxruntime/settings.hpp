// Which devices run a model, and how: what the client says, else what the environment says, else what troupe chooses.
//
//   session config entry   environment        what it is
//   troupe.devices         TROUPE_DEVICES     devices, with commas between: "cpu", "vulkan:0,vulkan:1"; default "all"
//   troupe.hosts           TROUPE_HOSTS       workers, with commas between: "NAME=HOST:PORT"
//   troupe.policy          TROUPE_POLICY      how nodes are placed; default "single"
//   troupe.strategy        TROUPE_STRATEGY    how devices share the work; default "standard"
//   troupe.precision       TROUPE_PRECISION   "fp32" (default), "fp16", "auto"
//   troupe.profile         TROUPE_PROFILE     the file of what `troupe profile` measured
//   troupe.kernels         TROUPE_KERNELS     when GPUs compile: "later" (default), "now"
//   troupe.tls_cert        TROUPE_TLS_CERT    who this process is to workers, with troupe.tls_key and troupe.tls_ca
//   troupe.insecure        TROUPE_INSECURE    "1": plain TCP to workers that say the same
#pragma once

#include "troupe/engine.hpp"

#include <map>
#include <memory>
#include <string>

namespace troupe::ort {

/// Strings by key, as the client's config entries are.
using config_entries = std::map<std::string, std::string>;

/// Numbers of threads that a client asks for; 0 and less: as troupe likes.
struct thread_counts {
  int inter_op = 0; // that send work to the devices
  int intra_op = 0; // of the CPU's kernels
};

/// Throws ORT_INVALID_ARGUMENT for an entry "troupe.…" that there is not, ORT_NOT_IMPLEMENTED for one of ONNX
/// Runtime's that troupe cannot keep. All others are hints.
void check_entry(const std::string& key, const std::string& value);

/// Returns how the devices for these entries are opened. Throws ORT_INVALID_ARGUMENT for words that are not known.
engine_options engine_options_of(const config_entries& entries, const thread_counts& threads);

/// Returns how a model is prepared. Throws like `engine_options_of`.
session_options session_options_of(const config_entries& entries);

/// Returns the process's one engine of these options, opened now if nothing holds it any more.
std::shared_ptr<engine> shared_engine(const engine_options& options);

} // namespace troupe::ort
