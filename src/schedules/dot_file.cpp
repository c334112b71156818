// Task graphs as directed graphs of DOT: a node's `size` is its operations, an edge's its bytes, as SimGrid reads them
// (https://simgrid.org/doc/latest/app_s4u.html); `work` and `bytes` say the same. What has neither, or less than 0, has
// none. Other attributes are for drawings.
#include "base/error.hpp"
#include "base/printable.hpp"
#include "schedules/graph_draft.hpp"
#include "schedules/graph_file.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace troupe {
namespace {

constexpr int max_depth = 64; // of braces
constexpr double most_size = 1e30;

struct token {
  enum class kind : uint8_t { end, name, mark };
  kind is = kind::end;
  std::string text;
  size_t line = 1;
};

template <class... Arguments>
[[noreturn]] void complain(size_t line, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fail(errc::invalid_argument, "line {}: {}", line, fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Says where something is wrong.
template <class Action>
auto at_line(size_t line, Action&& action) {
  try {
    return action();
  } catch (const error& e) {
    complain(line, "{}", e.what());
  }
}

/// A text as names and marks; comments are none.
class dot_tokens {
public:
  explicit dot_tokens(std::string_view text) : text_(text) { take(); }

  const token& now() const { return now_; }
  bool is(std::string_view mark) const { return now_.is == token::kind::mark && now_.text == mark; }
  /// Whether it is a word of the language, in any case; a name in quotes is none.
  bool is_word(std::string_view word) const {
    return now_.is == token::kind::name && !quoted_ &&
           std::equal(word.begin(), word.end(), now_.text.begin(), now_.text.end(),
                      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  }
  token take() {
    token last = std::move(now_);
    read();
    return last;
  }
  bool take_if(std::string_view mark) {
    const bool there = is(mark);
    if (there)
      take();
    return there;
  }
  void expect(std::string_view mark) {
    if (!take_if(mark))
      complain(now_.line, "'{}' is needed there, not '{}'", mark,
               now_.is == token::kind::end ? "the end" : printable(now_.text.substr(0, 40)));
  }
  std::string name(const char* what) {
    if (now_.is != token::kind::name)
      complain(now_.line, "{} is needed there, not '{}'", what,
               now_.is == token::kind::end ? "the end" : printable(now_.text.substr(0, 40)));
    return take().text;
  }

private:
  static bool is_letter(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || static_cast<unsigned char>(c) >= 128;
  }

  void skip(size_t count) {
    const std::string_view gone = text_.substr(0, count);
    line_ += static_cast<size_t>(std::count(gone.begin(), gone.end(), '\n'));
    text_.remove_prefix(gone.size());
  }

  void skip_spaces() {
    for (;;) {
      skip(std::min(text_.find_first_not_of(" \t\r\n"), text_.size()));
      if (text_.starts_with("//") || text_.starts_with("#")) {
        skip(std::min(text_.find('\n'), text_.size()));
      } else if (text_.starts_with("/*")) {
        if (text_.find("*/", 2) == std::string_view::npos)
          complain(line_, "the comment that begins there has no end");
        skip(text_.find("*/", 2) + 2);
      } else {
        return;
      }
    }
  }

  void read() {
    skip_spaces();
    now_ = {.line = line_};
    quoted_ = text_.starts_with("\"");
    if (text_.empty())
      return;
    if (quoted_)
      return read_quoted();
    if (text_.starts_with("<"))
      complain(line_, "names in HTML are not read");
    size_t length = text_.starts_with("-") && text_.size() > 1 && is_digit(text_[1]) ? 1 : 0;
    while (length < text_.size() && is_letter(text_[length]))
      ++length;
    now_.is = length > 0 ? token::kind::name : token::kind::mark;
    if (length == 0)
      length = text_.starts_with("->") || text_.starts_with("--") ? 2 : 1;
    now_.text = text_.substr(0, length);
    skip(length);
  }

  static bool is_digit(char c) { return (c >= '0' && c <= '9') || c == '.'; }

  void read_quoted() {
    now_.is = token::kind::name;
    size_t at = 1;
    for (; at < text_.size() && text_[at] != '"'; ++at) {
      if (text_[at] == '\\' && at + 1 < text_.size() && text_[at + 1] == '"')
        ++at;
      now_.text += text_[at];
    }
    if (at == text_.size())
      complain(line_, "the name that begins there has no end");
    skip(at + 1);
  }

  std::string_view text_;
  token now_;
  bool quoted_ = false;
  size_t line_ = 1;
};

using drawn_attributes = std::map<std::string, std::string, std::less<>>;

/// What nodes and edges of a pair of braces have unless they say otherwise.
struct defaults {
  drawn_attributes node, edge;
};

class dot_reader {
public:
  explicit dot_reader(std::string_view text) : tokens_(text) {}

  task_graph read(std::string name) {
    if (tokens_.is_word("strict"))
      tokens_.take();
    if (!tokens_.is_word("digraph"))
      complain(tokens_.now().line, "a task graph is directed: 'digraph' is needed there");
    tokens_.take();
    if (tokens_.now().is == token::kind::name)
      name = tokens_.take().text;
    statements({}, 0);
    if (tokens_.now().is != token::kind::end)
      complain(tokens_.now().line, "there is something after the graph");
    return draft_.finish(std::move(name));
  }

private:
  using ends = std::vector<uint32_t>;

  /// Reads what is in braces; returns the nodes that it mentions.
  ends statements(defaults known, int depth) {
    if (depth > max_depth)
      complain(tokens_.now().line, "there are more than {} braces in each other", max_depth);
    tokens_.expect("{");
    ends mentioned;
    while (!tokens_.take_if("}")) {
      if (tokens_.take_if(";"))
        continue;
      const ends here = statement(known, depth);
      mentioned.insert(mentioned.end(), here.begin(), here.end());
    }
    return mentioned;
  }

  ends statement(defaults& known, int depth) {
    for (const auto& [word, into] : {std::pair("node", &known.node), std::pair("edge", &known.edge)})
      if (tokens_.is_word(word)) {
        tokens_.take();
        list_into(*into);
        return {};
      }
    if (tokens_.is_word("graph")) {
      tokens_.take();
      drawn_attributes of_drawing;
      list_into(of_drawing);
      return {};
    }
    return chain(known, depth);
  }

  /// Reads nodes, or edges between groups of nodes; "a = b" says something of the drawing.
  ends chain(const defaults& known, int depth) {
    std::vector<ends> groups;
    std::vector<size_t> lines;
    do {
      lines.push_back(tokens_.now().line);
      groups.push_back(group(known, depth));
      if (groups.size() == 1 && tokens_.take_if("=")) {
        tokens_.name("a value");
        return {};
      }
      if (tokens_.is("--"))
        complain(tokens_.now().line, "a task graph is directed: '->' is needed there, not '--'");
    } while (tokens_.take_if("->"));
    drawn_attributes said = groups.size() > 1 ? known.edge : drawn_attributes();
    if (tokens_.is("["))
      list_into(said);
    if (groups.size() == 1)
      set_work(groups[0], said, lines[0]);
    for (size_t i = 1; i < groups.size(); ++i)
      join(groups[i - 1], groups[i], size_of(said, "bytes", lines[i]), lines[i]);
    ends all;
    for (const ends& each : groups)
      all.insert(all.end(), each.begin(), each.end());
    return all;
  }

  ends group(const defaults& known, int depth) {
    if (tokens_.is_word("subgraph")) {
      tokens_.take();
      if (tokens_.now().is == token::kind::name)
        tokens_.take();
    }
    if (tokens_.is("{"))
      return statements(known, depth + 1);
    const size_t line = tokens_.now().line;
    const std::string id = tokens_.name("a node");
    while (tokens_.take_if(":"))
      tokens_.name("a port");
    if (tokens_.is("="))
      return {};
    if (const auto found = draft_.find(id))
      return {*found};
    return {at_line(line, [&] { return draft_.add(id, size_of(known.node, "work", line)); })};
  }

  void set_work(const ends& nodes, const drawn_attributes& said, size_t line) {
    if (said.contains("size") || said.contains("work"))
      for (const uint32_t n : nodes)
        draft_.work(n) = size_of(said, "work", line);
  }

  void join(const ends& from, const ends& to, double bytes, size_t line) {
    at_line(line, [&] {
      for (const uint32_t a : from)
        for (const uint32_t b : to)
          draft_.join(a, b, bytes);
    });
  }

  void list_into(drawn_attributes& all) {
    tokens_.expect("[");
    do
      while (!tokens_.take_if("]")) {
        const std::string name = tokens_.name("an attribute");
        all[name] = tokens_.take_if("=") ? tokens_.name("a value") : "true";
        if (!tokens_.take_if(","))
          tokens_.take_if(";");
      }
    while (tokens_.take_if("["));
  }

  static double size_of(const drawn_attributes& said, const char* also, size_t line) {
    const auto found = said.contains("size") ? said.find("size") : said.find(also);
    if (found == said.end())
      return 0;
    const std::string& text = found->second;
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || end != text.data() + text.size() || !(value <= most_size))
      complain(line, "'{}' is no {}", printable(text.substr(0, 40)), found->first);
    return std::max(value, 0.0);
  }

  dot_tokens tokens_;
  graph_draft draft_;
};

} // namespace

task_graph parse_dot(std::string_view text, const std::string& name) {
  return dot_reader(text).read(name);
}

} // namespace troupe
