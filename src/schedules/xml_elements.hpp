// XML as a tree of elements that know their lines: for files that somebody wrote by hand, or a stranger sent.
//
// Entities are refused where they are declared, so that nothing grows, and no other file is read: a document type that
// is named is not looked at. Comments and processing instructions are passed over.
#pragma once

#include "base/error.hpp"

#include <fmt/ranges.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// See the top of this file.
class xml_element {
public:
  xml_element(std::string name, size_t line) : name_(std::move(name)), line_(line) {}

  const std::string& name() const { return name_; }
  size_t line() const { return line_; }
  const std::vector<xml_element>& children() const { return children_; }
  /// The first of its text, spaces before it aside.
  const std::string& content() const { return text_; }

  /// Throws `errc::invalid_argument`, naming the line and the element.
  template <class... Arguments>
  [[noreturn]] void complain(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    refuse(fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  /// Throws unless it has no other attributes than these, and no text.
  void allow(std::initializer_list<std::string_view> names) const;
  /// Returns an attribute; null if it is not there.
  const std::string* find(std::string_view attribute) const;
  /// Returns an attribute that must be there and not be empty.
  const std::string& text(std::string_view attribute) const;
  /// Returns an attribute, or something else if it is not there or empty.
  std::string text(std::string_view attribute, std::string_view otherwise) const;

private:
  friend class xml_parser;
  [[noreturn]] void refuse(std::string_view what) const;

  std::string name_;
  size_t line_ = 0;
  std::string text_; // the first of it, spaces aside
  std::vector<std::pair<std::string, std::string>> attributes_;
  std::vector<xml_element> children_;
};

/// Returns whether a text begins as XML does.
bool looks_like_xml(std::string_view text);

/// Returns the root. Throws `errc::invalid_argument`, naming the line, for what is no XML, declares entities, is nested
/// too deeply or has too many elements.
xml_element parse_xml(std::string_view text);

} // namespace troupe
