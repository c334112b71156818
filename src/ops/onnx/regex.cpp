// RegexFullMatch: whether the whole of each string matches attribute `pattern`, in the syntax of RE2, as ONNX asks for.
// RE2 takes time in proportion to the string and bounded memory, whatever the pattern; tokenizer.cpp uses it, too.
#include "ops/axes.hpp"
#include "ops/families.hpp"

#include <re2/re2.h>

namespace troupe {
namespace {

void infer_full_match(infer_context& c) {
  const std::string pattern = c.attrs().text("pattern", "");
  if (const RE2 compiled(pattern, RE2::Quiet); !compiled.ok())
    fail(errc::invalid_model, "attribute 'pattern' is not a regular expression: {}", compiled.error());
  c.set_output(0, dtype::boolean, c.dims(0));
}

void full_match(kernel_context& c) {
  const RE2 pattern(c.attrs().text("pattern", ""), RE2::Quiet);
  for (int64_t i = 0; i < c.input(0).size(); ++i)
    c.output(0).as<uint8_t>()[i] = RE2::FullMatch(c.input(0).as<std::string>()[i], pattern) ? 1 : 0;
}

constexpr auto regex_rows = std::to_array<op_def>({
    op_row("RegexFullMatch", 20, infer_full_match, full_match, {.types = types::string, .axes = axes::broadcast}),
});

} // namespace

extern constinit const op_table onnx_regex_ops = regex_rows;

} // namespace troupe
