// Pairs of strings, as several functions take and give them.
#pragma once

#include "compat/onnxruntime/api.hpp"

#include <map>
#include <string>
#include <vector>

/// Strings by key, in the order of the keys. `keys` and `values` point into `entries`.
struct OrtKeyValuePairs {
  std::map<std::string, std::string> entries;
  std::vector<const char*> keys, values;

  /// Makes the pointers again; called after each change.
  void refresh() {
    keys.clear();
    values.clear();
    for (const auto& [key, value] : entries) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
  }
};

namespace troupe::ort {

/// Makes pairs for a client to release.
OrtKeyValuePairs* make_pairs(std::map<std::string, std::string> entries);

} // namespace troupe::ort
