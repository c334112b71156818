// Prints compat/onnxruntime/functions.txt: the state of each function of the table in this library.
#include "compat/onnxruntime/table.hpp"

#include <cstdio>

int main() {
  std::printf(
      "# What the library does with each function of OrtApi: its slot, the version that first has it (14: that or\n"
      "# an earlier one), its name, and \"works\", \"accepted\" without effect, or \"refused\", and why.\n"
      "# `troupe_onnxruntime_functions` prints this file; CTest compares.\n");
  constexpr const char* states[] = {"works", "accepted", "refused"};
  for (const troupe::ort::slot_row& row : troupe::ort::all_slots())
    std::printf("%3u 1.%u %s: %s%s%s\n", row.slot, row.since, row.name, states[static_cast<int>(row.state)],
                *row.why ? ": " : "", row.why);
}
