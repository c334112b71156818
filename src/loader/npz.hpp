// The .npz format: a zip archive of .npy arrays, stored or deflated.
#pragma once

#include "tensor/elements.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace troupe {

/// Reads all arrays of an archive by name (without ".npy"). No more is inflated than each array's own header asks for,
/// and no byte of the archive is read for two arrays. Throws `errc::invalid_input`.
std::map<std::string, tensor> parse_npz(std::span<const std::byte> archive);

} // namespace troupe
