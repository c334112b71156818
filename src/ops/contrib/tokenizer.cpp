// Tokenizer of com.microsoft: the tokens of each string, as ONNX Runtime takes them.
//
// x is [C] or [N, C] of UTF-8, y has one axis more, as long as the most tokens of a string; pad_value fills the others
// up. Tokens are what is left between matches of regular expressions, attribute separators, each applied to what the
// one before has left; or, without separators, the matches of tokenexp, each searched after the one before. Of matches
// at one place the longest counts. A token of less than mincharnum characters is dropped, and so is the character after
// a match of nothing. A single empty separator, or tokenexp ".", takes each character for a token. With `mark`, U+0002
// comes before the tokens of each string and U+0003 after them, unless no string has any.
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/onnx/text.hpp"

#include <algorithm>
#include <memory>
#include <re2/re2.h>

namespace troupe {
namespace {

/// What attributes ask for.
class token_rules {
public:
  explicit token_rules(const attributes& attrs)
      : least_(attrs.integer("mincharnum")), padding_(attrs.text("pad_value", "")), marks_(attrs.integer("mark") != 0),
        separates_(attrs.has("separators")) {
    if (!attrs.has("pad_value"))
      fail(errc::invalid_model, "attribute 'pad_value' is missing");
    if (least_ < 1)
      fail(errc::invalid_model, "attribute 'mincharnum' is {}; at least 1 is needed", least_);
    const auto patterns = separates_ ? attrs.texts("separators", {}) : std::vector{attrs.text("tokenexp", "")};
    if (patterns.empty() || (!separates_ && patterns[0].empty()))
      fail(errc::invalid_model, "attribute 'separators' or 'tokenexp' must say where tokens are");
    by_character_ = patterns.size() == 1 && patterns[0] == (separates_ ? "" : ".");
    if (by_character_ && least_ > 1)
      fail(errc::invalid_model, "attribute 'mincharnum' is {}, but each character is a token", least_);
    if (by_character_)
      return;
    RE2::Options options(RE2::Quiet);
    options.set_longest_match(true);
    for (const std::string& pattern : patterns) {
      expressions_.push_back(std::make_unique<RE2>(pattern, options));
      if (!expressions_.back()->ok())
        fail(errc::invalid_model, "attribute '{}' has '{}', which is not a regular expression: {}",
             separates_ ? "separators" : "tokenexp", pattern, expressions_.back()->error());
    }
  }

  /// Returns the tokens of a text.
  text_parts tokens_of(std::string_view text) const {
    if (by_character_)
      return characters(text);
    if (!separates_)
      return matches(text);
    text_parts parts{text};
    for (const auto& separator : expressions_) {
      text_parts tokens;
      for (const std::string_view part : parts)
        separate(part, *separator, tokens);
      parts = std::move(tokens);
    }
    return parts;
  }

  bool marks() const { return marks_; }
  const std::string& padding() const { return padding_; }

private:
  bool is_long_enough(std::string_view token) const {
    int64_t count = 0;
    for (size_t at = 0; at < token.size() && count < least_; ++count)
      next_code_point(token, at);
    return count >= least_;
  }

  static text_parts characters(std::string_view text) {
    text_parts parts;
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      next_code_point(text, at);
      parts.push_back(text.substr(begin, at - begin));
    }
    return parts;
  }

  /// Returns the first match in text from `at` on, and where it is; nullopt if there is none.
  static std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t at, const RE2& expression) {
    re2::StringPiece found;
    const re2::StringPiece whole(text.data(), text.size());
    if (at > text.size() || !expression.Match(whole, at, text.size(), RE2::UNANCHORED, &found, 1))
      return std::nullopt;
    return std::pair{static_cast<size_t>(found.data() - whole.data()), found.size()};
  }

  /// Returns the place after the character at `at`.
  static size_t after_character(std::string_view text, size_t at) {
    if (at >= text.size())
      return at + 1;
    next_code_point(text, at);
    return at;
  }

  /// Appends what is left of a text between matches of an expression.
  void separate(std::string_view text, const RE2& expression, text_parts& tokens) const {
    const auto add = [&](std::string_view token) {
      if (is_long_enough(token))
        tokens.push_back(token);
    };
    size_t at = 0;
    while (const auto match = find(text, at, expression)) {
      const auto [place, size] = *match;
      add(text.substr(at, place - at));
      at = size > 0 ? place + size : after_character(text, place);
    }
    if (at < text.size())
      add(text.substr(at));
  }

  /// Returns the matches of tokenexp; after one that is too short, the search goes on from its second character.
  text_parts matches(std::string_view text) const {
    text_parts tokens;
    size_t at = 0;
    while (const auto match = find(text, at, *expressions_[0])) {
      const auto [place, size] = *match;
      const std::string_view token = text.substr(place, size);
      if (is_long_enough(token))
        tokens.push_back(token);
      at = is_long_enough(token) ? place + size : after_character(text, place);
    }
    return tokens;
  }

  int64_t least_; // characters of a token
  std::string padding_;
  bool marks_, separates_, by_character_ = false;
  std::vector<std::unique_ptr<RE2>> expressions_; // separators, or tokenexp
};

void infer_tokens(infer_context& c) {
  const token_rules rules(c.attrs());
  if (c.rank(0) != 1 && c.rank(0) != 2)
    fail(errc::invalid_model, "strings of shape {}; [C] or [N, C] is needed", to_string(c.dims(0)));
  infer_parts(c);
}

void require_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();)
    if (const size_t place = at; !next_code_point(text, at))
      fail(errc::invalid_input, "byte {} of a string is not UTF-8", place);
}

void tokenize(kernel_context& c) {
  const token_rules rules(c.attrs());
  std::vector<text_parts> all;
  for (int64_t i = 0; i < c.input(0).size(); ++i) {
    const std::string& text = c.input(0).as<std::string>()[i];
    require_utf8(text);
    all.push_back(rules.tokens_of(text));
  }
  const bool any = std::any_of(all.begin(), all.end(), [](const text_parts& tokens) { return !tokens.empty(); });
  if (rules.marks() && any)
    for (text_parts& tokens : all) {
      tokens.insert(tokens.begin(), "\x02");
      tokens.emplace_back("\x03");
    }
  give_parts(c, all, rules.padding());
}

constexpr auto tokenizer_rows = std::to_array<op_def>({
    op_row("Tokenizer", 1, infer_tokens, tokenize,
           {.domain = microsoft, .types = types::string, .mixes = "fills all texts up to the tokens of the longest"}),
});

} // namespace

extern constinit const op_table contrib_tokenizer_ops = tokenizer_rows;

} // namespace troupe
