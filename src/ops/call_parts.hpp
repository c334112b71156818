// Calls that stand for several others, one after the other: what fused operators are by definition (projections.cpp,
// fused_attention.cpp). The reference kernel, the CPU's and some of the GPU's launches run them.
#pragma once

#include "ops/call.hpp"
#include "ops/op.hpp"

namespace troupe {

/// Returns the attributes of a part: those whose names end with '.' and `part` ("norm", "rotary", "0", "1" …), without
/// that end.
attributes attributes_of_part(const attributes& attrs, std::string_view part);
/// Adds the attributes of a part to those of the whole call.
void add_part(attributes& whole, const attributes& own, std::string_view part);

/// An operand of a part: absent, an input or output of the whole call, or a value between parts.
struct part_operand {
  enum class source : uint8_t { absent, input, output, between };
  source from = source::absent;
  size_t index = 0;
  std::optional<shape> dims = {}; // that the part sees, if others
};

/// One call; its output is its only one.
struct call_part {
  const op_def* def;
  attributes attrs;
  std::vector<part_operand> inputs;
  part_operand output;
  uint32_t step;                 // parts of equal steps do not read each other's results
  bool has_alternatives = false; // GPUs have kernels without tiles for it that are worth measuring
};

struct call_parts {
  std::vector<call_part> parts; // in the order of their steps
  std::vector<operand> between;
};

/// Adds a call of the newest version of an operator, without absent operands at the end of its inputs.
void add_call(call_parts& calls, std::string_view domain, std::string_view op, attributes attrs,
              std::vector<part_operand> inputs, part_operand output, uint32_t step);

/// Returns an operand of a part, of a call with these operands; one that is absent has no type.
operand operand_of(const part_operand& o, const call_parts& calls, std::span<const operand> inputs,
                   std::span<const operand> outputs);

/// Returns the calls that make up a call of some operator with these operands; throws `errc::invalid_model` if it is
/// not valid.
using parts_function = call_parts (*)(const attributes& attrs, std::span<const operand> inputs,
                                      std::span<const operand> outputs);

/// Infers the parts of a call whose outputs have been inferred, all of `type`, if all its dims are numbers. Throws what
/// a part's operator says against its operands, and `errc::invalid_model` if a part's result is not what the others
/// take it for.
void infer_parts(const infer_context& c, dtype type, parts_function parts_of);

/// Runs the parts' reference kernels.
void run_parts(kernel_context& c, parts_function parts_of);

} // namespace troupe
