// Where the files of this checkout and its build are. Only places.cpp and worker_process.cpp are compiled with paths,
// so that ccache serves all other tests from one checkout to another.
#pragma once

#include <string>

namespace troupe::test {

/// Returns the path of the `troupe` command.
std::string command_path();

/// Returns the folder tests/data.
std::string test_data();

/// Returns the folder of the test plug-ins, which tests/plugins holds the sources of.
std::string test_plugins();

} // namespace troupe::test
