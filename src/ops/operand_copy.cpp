#include "ops/operand_copy.hpp"

namespace troupe {

void run_copies(kernel_context& c, const std::vector<operand_copy>& copies) {
  for (const operand_copy& copy : copies) {
    const const_view& in = c.input(copy.input);
    const mutable_view& out = c.output(copy.output);
    copy_strided(in.type, element_at(in.type, in.data, copy.from), element_at(in.type, out.data, copy.to), copy.axes);
  }
}

} // namespace troupe
