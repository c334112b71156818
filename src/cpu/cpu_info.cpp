#include "cpu/cpu_info.hpp"

#include <algorithm>
#include <fstream>
#include <sys/sysinfo.h>

namespace troupe {
namespace {

/// Returns the number a one-line file holds, -1 if there is none ("max", no file).
int64_t number_in(const char* file) {
  std::ifstream in(file);
  int64_t number = -1;
  return in >> number ? number : -1;
}

} // namespace

std::string cpu_model_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (const size_t colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  return "CPU";
}

int64_t usable_memory_bytes() {
  struct sysinfo s {};
  int64_t bytes = sysinfo(&s) == 0 ? static_cast<int64_t>(s.totalram) * s.mem_unit : int64_t{1} << 30;
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (const int64_t limit = number_in(file); limit > 0)
      bytes = std::min(bytes, limit);
  return bytes;
}

} // namespace troupe
