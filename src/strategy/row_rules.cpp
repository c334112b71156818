#include "strategy/row_rules.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Element by element over broadcast operands.
row_axes broadcasts(const row_call& c) {
  const size_t rank = c.output_dims().size();
  const bool old_form = c.def().limited_broadcast || (c.def().name == "PRelu" && c.def().since < 7);
  if (old_form && c.rank(1) != rank)
    fail(errc::unsupported, "broadcasts as opsets before 7 did");
  return {c.broadcast_axis(rank)};
}

constexpr std::string_view on_text = "works on text, whose rows are not followed";
constexpr std::string_view in_sequences = "works with sequences or optionals, whose rows are not followed";

constexpr std::string_view across_images = "takes regions of images that count through the whole batch";

struct refusal {
  std::string_view name, reason, domain = {};
};

/// Operators that no rule could ever serve, with the reason.
constexpr auto refusals = std::to_array<refusal>({
    {"BlackmanWindow", "has a point for each row"},
    {"Compress", "picks rows by their position in the batch"},
    {"DynamicQuantizeLinear", "takes its scale from all rows together"},
    {"EyeLike", "gives each row a diagonal of its position in the batch"},
    {"HammingWindow", "has a point for each row"},
    {"HannWindow", "has a point for each row"},
    {"If", "is control flow over values of the batch"},
    {"ImageDecoder", "takes the bytes of one file"},
    {"Loop", "is control flow over values of the batch"},
    {"MaxRoiPool", across_images},
    {"MaxUnpool", "takes indices that count through the whole batch"},
    {"MelWeightMatrix", "takes its dims from the batch"},
    {"NonMaxSuppression", "returns as many boxes as the data asks for, whatever their row"},
    {"NonZero", "returns as many elements as the data asks for, whatever their row"},
    {"Range", "counts the rows"},
    {"RegexFullMatch", on_text},
    {"RoiAlign", across_images},
    {"Scan", "is control flow over values of the batch"},
    {"SequenceConstruct", in_sequences},
    {"SequenceEmpty", in_sequences},
    {"SplitToSequence", in_sequences},
    {"StringConcat", on_text},
    {"StringNormalizer", on_text},
    {"StringSplit", on_text},
    {"TfIdfVectorizer", on_text},
    {"Unique", "compares rows with each other"},
    {"CastMap", "makes one row of a map", "ai.onnx.ml"},
    {"DictVectorizer", "makes one row of a map", "ai.onnx.ml"},
    {"BifurcationDetector", "looks for one text in another", "com.microsoft"},
    {"CropAndResize", across_images, "com.microsoft"},
    {"DynamicTimeWarping", "looks for one path through all rows", "com.microsoft"},
    {"MaxpoolWithMask", "takes masks that count through the whole batch", "com.microsoft"},
    {"Tokenizer", on_text, "com.microsoft"},
    {"Deferred", "has a shape that the data decide", "troupe"},
});

/// Returns null for operators that are not refused by name.
const refusal* refusal_of(const op_def& def) {
  const auto* found = std::find_if(refusals.begin(), refusals.end(),
                                   [&](const refusal& r) { return r.domain == def.domain && r.name == def.name; });
  return found == refusals.end() ? nullptr : found;
}

} // namespace

row_rule find_row_rule(const op_def& def) {
  if (def.draws || refusal_of(def)) // also of operators whose layouts are those of elementwise ones
    return nullptr;
  for (const auto table : {axis_row_rules, domain_row_rules, movement_row_rules, product_row_rules, window_row_rules})
    for (const row_rule_entry& entry : table())
      if (entry.domain == def.domain && entry.name == def.name)
        return entry.rule;
  return is_elementwise(def.layouts) ? broadcasts : nullptr;
}

std::string_view why_no_row_rule(const op_def& def) {
  if (def.draws)
    return "draws the numbers of all rows one after another";
  if (const refusal* found = refusal_of(def))
    return found->reason;
  return def.types & types::containers ? in_sequences : "has no rule that says what it does with rows";
}

} // namespace troupe
