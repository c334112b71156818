// Operators on text: StringConcat, StringSplit, StringNormalizer. Text is UTF-8; bytes that are none stay as they are.
//
// StringSplit splits like Python's str.split: by a delimiter, or without one by runs of white space, of which none is
// at the ends; shorter results are filled up with empty strings. StringNormalizer drops stop words and changes case,
// character by character as Unicode's simple mappings do, whatever the locale is.
#include "ops/onnx/text.hpp"

#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/movement.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <clocale>
#include <cwctype>
#include <locale.h>
#include <set>

namespace troupe {
namespace {

/// More substrings, empty ones included, than a result may have: one long string makes all rows as long.
constexpr int64_t most_substrings = int64_t{1} << 26;

// -- StringConcat

void infer_string_concat(infer_context& c) {
  c.set_output(0, dtype::string, broadcast(c.dims(0), c.dims(1)));
}

void string_concat(kernel_context& c) {
  const const_view &a = c.input(0), &b = c.input(1);
  const shape out(c.output(0).dims.begin(), c.output(0).dims.end());
  const shape a_steps = broadcast_strides(a.dims, out), b_steps = broadcast_strides(b.dims, out);
  shape index(out.size(), 0);
  for (int64_t i = 0; i < c.output(0).size(); ++i) {
    int64_t from_a = 0, from_b = 0;
    for (size_t d = 0; d < out.size(); ++d) {
      from_a += index[d] * a_steps[d];
      from_b += index[d] * b_steps[d];
    }
    c.output(0).as<std::string>()[i] = a.as<std::string>()[from_a] + b.as<std::string>()[from_b];
    for (size_t d = out.size(); d-- > 0 && ++index[d] == out[d];)
      index[d] = 0;
  }
}

// -- StringSplit

constexpr std::string_view white_space = " \t\n\v\f\r";

text_parts split_by(std::string_view text, std::string_view delimiter, int64_t most) {
  text_parts parts;
  for (size_t at = 0; std::ssize(parts) < most && (at = text.find(delimiter)) != std::string_view::npos;) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + delimiter.size());
  }
  parts.push_back(text);
  return parts;
}

text_parts split_by_space(std::string_view text, int64_t most) {
  text_parts parts;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(white_space), text.size()));
    if (text.empty())
      return parts;
    const size_t end = std::ssize(parts) < most ? std::min(text.find_first_of(white_space), text.size()) : text.size();
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

void infer_string_split(infer_context& c) {
  infer_parts(c);
  c.set_output(1, dtype::int64, c.dims(0));
}

void string_split(kernel_context& c) {
  const const_view& x = c.input(0);
  const std::string delimiter = c.attrs().text("delimiter", "");
  const int64_t stated = c.attrs().integer("maxsplit", INT64_MAX), most = stated < 0 ? INT64_MAX : stated;
  std::vector<text_parts> all;
  for (int64_t i = 0; i < x.size(); ++i) {
    const std::string& text = x.as<std::string>()[i];
    all.push_back(delimiter.empty() ? split_by_space(text, most) : split_by(text, delimiter, most));
    if (c.has_output(1))
      c.output(1).as<int64_t>()[i] = std::ssize(all.back());
  }
  give_parts(c, all, "");
}

// -- StringNormalizer

enum class case_change : uint8_t { none, lower, upper };

void append_code_point(std::string& text, char32_t code) {
  const auto add = [&](uint32_t bits) { text += static_cast<char>(bits); };
  if (code < 0x80)
    return add(code);
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
  }
  add(0x80 | (code & 0x3f));
}

char32_t changed(char32_t code, case_change how) {
  // glibc's own locale of Unicode; where it is missing, only ASCII has cases.
  static const locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  const auto wide = static_cast<wint_t>(code);
  if (unicode)
    return static_cast<char32_t>(how == case_change::lower ? towlower_l(wide, unicode) : towupper_l(wide, unicode));
  if (code < 0x80)
    return static_cast<char32_t>(how == case_change::lower ? std::tolower(static_cast<int>(code))
                                                           : std::toupper(static_cast<int>(code)));
  return code;
}

std::string with_case(const std::string& text, case_change how) {
  if (how == case_change::none)
    return text;
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (const auto code = next_code_point(text, at))
      append_code_point(result, changed(*code, how));
    else
      result += text[begin];
  }
  return result;
}

case_change parse_case(const attributes& attrs) {
  return word_as<case_change>(attrs, "case_change_action", "NONE", {"NONE", "LOWER", "UPPER"});
}

void infer_string_normalizer(infer_context& c) {
  parse_case(c.attrs());
  symbolic_shape dims = c.dims(0);
  if (dims.empty() || dims.size() > 2)
    fail(errc::invalid_model, "strings of shape {}; [C] or [1, C] is needed", to_string(dims));
  if (dims.size() == 2)
    require_same(dims[0], 1, "rows of strings");
  dims.back() = c.data_dependent(0, dims.size() - 1);
  c.set_output(0, dtype::string, std::move(dims));
}

void string_normalizer(kernel_context& c) {
  const const_view& x = c.input(0);
  const case_change how = parse_case(c.attrs());
  const case_change compared = c.attrs().integer("is_case_sensitive", 0) != 0 ? case_change::none : case_change::lower;
  if (x.dims.size() == 2 && x.dims[0] != 1)
    fail(errc::invalid_input, "strings of shape {}; [C] or [1, C] is needed", to_string(x.dims));
  std::set<std::string> stop;
  for (const std::string& word : c.attrs().texts("stopwords", {}))
    stop.insert(with_case(word, compared));
  std::vector<std::string> kept;
  for (int64_t i = 0; i < x.size(); ++i)
    if (const std::string& word = x.as<std::string>()[i]; !stop.contains(with_case(word, compared)))
      kept.push_back(with_case(word, how));
  if (kept.empty())
    kept.emplace_back(); // nothing is one empty string
  shape dims(x.dims.begin(), x.dims.end());
  dims.back() = std::ssize(kept);
  std::move(kept.begin(), kept.end(), output_of(c, 0, dims).as<std::string>());
}

// -- rows

constexpr auto text_rows = std::to_array<op_def>({
    op_row("StringConcat", 20, infer_string_concat, string_concat,
           {.inputs = {2, 2}, .types = types::string, .axes = axes::broadcast}),
    op_row("StringNormalizer", 10, infer_string_normalizer, string_normalizer,
           {.types = types::string, .mixes = "removes words"}),
    op_row("StringSplit", 20, infer_string_split, string_split,
           {.max_outputs = 2, .types = types::string, .mixes = "fills all texts up to the parts of the longest"}),
});

} // namespace

std::optional<char32_t> next_code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const uint32_t first = byte(at);
  const size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  char32_t code = length == 1 ? first : first & (0x7fu >> length);
  bool valid = length > 0;
  for (size_t i = 1; i < length; ++i) {
    valid = valid && byte(at + i) >> 6 == 2;
    code = code << 6 | (byte(at + i) & 0x3f);
  }
  at += valid ? length : 1;
  return valid ? std::optional(code) : std::nullopt;
}

void infer_parts(infer_context& c) {
  symbolic_shape parts = c.dims(0);
  parts.push_back(c.data_dependent(0, parts.size()));
  c.set_output(0, dtype::string, std::move(parts));
}

void give_parts(kernel_context& c, std::span<const text_parts> all, std::string_view filler) {
  int64_t longest = 0;
  for (const text_parts& parts : all)
    longest = std::max<int64_t>(longest, std::ssize(parts));
  const const_view& x = c.input(0);
  if (longest > 0 && x.size() > most_substrings / longest)
    fail(errc::invalid_input, "{} strings of up to {} parts are more than {} together", x.size(), longest,
         most_substrings);
  shape dims(x.dims.begin(), x.dims.end());
  dims.push_back(longest);
  auto* out = output_of(c, 0, dims).as<std::string>();
  for (const text_parts& parts : all)
    for (size_t p = 0; p < static_cast<size_t>(longest); ++p)
      *out++ = p < parts.size() ? parts[p] : filler;
}

extern constinit const op_table onnx_text_ops = text_rows;

} // namespace troupe
