#include "universe/story.hpp"

#include "universe/virtual_threads.hpp"

#include <cstdio>

namespace troupe::universe {

void story::add(const std::string& text) {
  lines_.push_back(fmt::format("{:10.6f} s  {}", 1e-9 * static_cast<double>(virtual_ns()), text));
}

void story::print() const {
  for (const std::string& line : lines_)
    std::fprintf(stderr, "%s\n", line.c_str());
}

} // namespace troupe::universe
