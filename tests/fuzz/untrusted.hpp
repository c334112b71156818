// Calls that the fuzz targets make with a file's bytes; each may end in a result or in one clear error. Shared by the
// targets and by the test that replays their findings.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace troupe {
struct plan;
}

namespace troupe::test {

using untrusted = std::span<const std::byte>;

/// Steps beside loading a model; a set of bits, so that a file can choose (`variant_of`).
namespace variant {
inline constexpr unsigned unfused = 1, half = 2, two_devices = 4, on_gpu = 8, mapped = 16;
inline constexpr unsigned inputs_shift = 5, all = 127; // two bits choose the inputs
} // namespace variant

/// Returns the variant that a model asks for: its `model_version`, which the engine does not read; 0 if it is not a
/// model.
unsigned variant_of(untrusted model);

/// Loads, rewrites, plans and runs a model. Returns how it ended: "result", or the name of an error's code. Throws
/// `defect`, and every exception that is not a `troupe::error`.
std::string try_model(untrusted model, unsigned how);

/// Reads bytes as .npy, .npz and .pb; a tensor that can be read is written and read again.
void try_tensor_file(untrusted bytes);

/// Reads bytes as a saved plan, which is made again for each of `plan_models`, and as a file of profiles.
void try_plan_file(untrusted bytes);

/// The kinds of messages, by the first byte of the fuzzer's input.
namespace message_kind {
inline constexpr uint8_t plan = 0, binding = 1, device = 2, result = 3, stats = 4, tensor = 5, attributes = 6,
                         frame = 7, kinds = 8; // frame: one of `remote::message`
} // namespace message_kind

/// Reads bytes, after one that says their kind, as a message of another host; plans are bound, bindings are of the
/// first of `plan_models`.
void try_message(untrusted bytes);

/// Returns a plan's message.
std::vector<uint8_t> plan_message(const plan& p);

/// An ending that is troupe's fault: an internal error, an error without words, a kernel that threw something else.
struct defect : std::logic_error {
  using std::logic_error::logic_error;
};

} // namespace troupe::test
