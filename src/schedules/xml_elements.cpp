#include "schedules/xml_elements.hpp"

#include "base/printable.hpp"

#include <expat.h>

#include <algorithm>
#include <climits>
#include <memory>

namespace troupe {
namespace {

constexpr size_t most_depth = 64, most_elements = 2'000'000, longest_shown = 60;
constexpr std::string_view spaces = " \t\r\n";

} // namespace

void xml_element::refuse(std::string_view what) const {
  const std::string* id = find("id");
  fail(errc::invalid_argument, "line {}: <{}{}>: {}", line_, printable(name_.substr(0, longest_shown)),
       id ? fmt::format(" id=\"{}\"", printable(id->substr(0, longest_shown))) : "", what);
}

void xml_element::allow(std::initializer_list<std::string_view> names) const {
  for (const auto& [name, unused] : attributes_)
    if (std::find(names.begin(), names.end(), name) == names.end())
      complain("there is no attribute '{}'; there are {}", printable(name.substr(0, longest_shown)),
               fmt::join(names, ", "));
  if (!text_.empty())
    complain("the text '{}' is not expected in it", printable(text_));
}

const std::string* xml_element::find(std::string_view attribute) const {
  for (const auto& [name, value] : attributes_)
    if (name == attribute)
      return &value;
  return nullptr;
}

const std::string& xml_element::text(std::string_view attribute) const {
  const std::string* found = find(attribute);
  if (!found || found->empty())
    complain("the attribute '{}' is missing", attribute);
  return *found;
}

std::string xml_element::text(std::string_view attribute, std::string_view otherwise) const {
  const std::string* found = find(attribute);
  return std::string(found && !found->empty() ? *found : otherwise);
}

/// Expat's events as elements. Expat is C: no exception may pass through it, so that what a handler throws waits.
class xml_parser {
public:
  xml_parser() : expat_(XML_ParserCreate(nullptr), XML_ParserFree) {
    if (!expat_)
      throw std::bad_alloc();
    XML_SetUserData(expat_.get(), this);
    XML_SetElementHandler(expat_.get(), on_begin, on_end);
    XML_SetCharacterDataHandler(expat_.get(), on_text);
    XML_SetEntityDeclHandler(expat_.get(), on_entity);
  }

  xml_element parse(std::string_view text) {
    if (text.size() > INT_MAX)
      fail(errc::invalid_argument, "the text has {} bytes; XML may have 2 GiB", text.size());
    const XML_Status status = XML_Parse(expat_.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
    if (problem_)
      std::rethrow_exception(problem_);
    if (status != XML_STATUS_OK)
      fail(errc::invalid_argument, "line {}: {}", line(), XML_ErrorString(XML_GetErrorCode(expat_.get())));
    return std::move(root_.front());
  }

private:
  size_t line() const { return XML_GetCurrentLineNumber(expat_.get()); }

  template <class Work>
  static void guarded(void* self, Work&& work) {
    auto& p = *static_cast<xml_parser*>(self);
    if (p.problem_)
      return;
    try {
      work(p);
    } catch (...) {
      p.problem_ = std::current_exception();
      XML_StopParser(p.expat_.get(), XML_FALSE);
    }
  }

  static void XMLCALL on_begin(void* self, const XML_Char* name, const XML_Char** attributes) {
    guarded(self, [&](xml_parser& p) { p.begin(name, attributes); });
  }
  static void XMLCALL on_end(void* self, const XML_Char*) {
    guarded(self, [](xml_parser& p) { p.end(); });
  }
  static void XMLCALL on_text(void* self, const XML_Char* text, int size) {
    guarded(self, [&](xml_parser& p) { p.read({text, static_cast<size_t>(size)}); });
  }
  static void XMLCALL on_entity(void* self, const XML_Char* name, int, const XML_Char*, int, const XML_Char*,
                                const XML_Char*, const XML_Char*, const XML_Char*) {
    guarded(self, [&](xml_parser& p) {
      fail(errc::invalid_argument, "line {}: entities are not read, and '{}' is one", p.line(), printable(name));
    });
  }

  void begin(const XML_Char* name, const XML_Char** attributes) {
    if (open_.size() == most_depth)
      fail(errc::invalid_argument, "line {}: elements are nested more than {} deep", line(), most_depth);
    if (++elements_ > most_elements)
      fail(errc::invalid_argument, "line {}: there are more than {} elements", line(), most_elements);
    xml_element& e = open_.emplace_back(name, line());
    for (; *attributes; attributes += 2)
      e.attributes_.emplace_back(attributes[0], attributes[1]);
  }

  void end() {
    xml_element done = std::move(open_.back());
    open_.pop_back();
    (open_.empty() ? root_ : open_.back().children_).push_back(std::move(done));
  }

  void read(std::string_view text) {
    const size_t first = text.find_first_not_of(spaces);
    if (first != std::string_view::npos && open_.back().text_.empty())
      open_.back().text_ = text.substr(first, longest_shown);
  }

  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> expat_;
  std::vector<xml_element> root_, open_;
  size_t elements_ = 0;
  std::exception_ptr problem_;
};

bool looks_like_xml(std::string_view text) {
  constexpr std::string_view mark = "\xef\xbb\xbf"; // of UTF-8
  if (text.starts_with(mark))
    text.remove_prefix(mark.size());
  const size_t first = text.find_first_not_of(spaces);
  return first != std::string_view::npos && text[first] == '<';
}

xml_element parse_xml(std::string_view text) {
  return xml_parser().parse(text);
}

} // namespace troupe
