// A serialized model with other weights in it: values that the client gives take the place of the file's.
#pragma once

#include "troupe/tensor.hpp"

#include <map>
#include <set>
#include <span>
#include <string>

namespace troupe::ort {

/// Returns the model with `values` in place of the main graph's initializers of these names, and with the bytes of
/// `files` in place of external data of these names. Throws `errc::invalid_model` for bytes that are not a model,
/// `errc::invalid_argument` for a value of another type or shape than the initializer, or without one of its name,
/// unless `spare` has the name.
std::string with_initializers(std::span<const std::byte> model, const named_tensors& values,
                              const std::set<std::string>& spare,
                              const std::map<std::string, std::span<const std::byte>>& files);

/// Returns the names of the files of external data of the main graph's initializers, but for those that `values` has.
std::set<std::string> external_files(std::span<const std::byte> model, const named_tensors& values);

} // namespace troupe::ort
