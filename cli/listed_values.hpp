// Options whose help says NAME=VALUE …: they take several values in a row.
#pragma once

#include <string>
#include <vector>

namespace troupe::cli {

/// Returns the words of a command line in which each further value of such an option has the option before it: "--input
/// a=1 b=2 m.onnx" becomes "--input a=1 --input b=2 m.onnx". What names a file that is there is no such value.
std::vector<std::string> repeat_options(const std::vector<std::string>& words);

} // namespace troupe::cli
