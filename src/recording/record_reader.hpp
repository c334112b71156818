// The records of a recording, one after the other, and what is in one.
#pragma once

#include "recording/record.hpp"

namespace troupe::recording {

/// The records of a recording, one after the other, with a look at the next one.
class record_reader {
public:
  /// Throws `errc::invalid_input` if the first record is malformed, as `take` does for the one after.
  explicit record_reader(std::span<const uint8_t> bytes) : in_(bytes, "a record") { read(); }

  const record* next() const { return next_ ? &*next_ : nullptr; }
  /// The number of the next record, from 1.
  uint64_t number() const { return number_; }
  record take();

private:
  void read();

  wire::reader in_;
  std::optional<record> next_;
  uint64_t number_ = 0;
};

/// A record's lists, read from their beginnings. Throws `errc::invalid_input` where they are too short.
class fields {
public:
  explicit fields(record r) : r_(std::move(r)) {}

  recording::kind kind() const { return r_.kind; }
  int64_t number() { return take(r_.numbers, numbers_); }
  size_t count() { return static_cast<size_t>(std::max<int64_t>(number(), 0)); }
  bool has_numbers() const { return numbers_ < r_.numbers.size(); }
  std::string text() { return take(r_.texts, texts_); }
  bool has_texts() const { return texts_ < r_.texts.size(); }
  value_facts value() { return take(r_.values, values_); }
  bool has_values() const { return values_ < r_.values.size(); }
  recording::name next_name() { return take(r_.names, names_); }
  bool has_names() const { return names_ < r_.names.size(); }
  /// Reads a failure: its code, and its message if it is one.
  failure why();

private:
  template <class T>
  const T& take(const std::vector<T>& list, size_t& at) {
    if (at == list.size())
      malformed();
    return list[at++];
  }
  [[noreturn]] void malformed() const;

  const record r_;
  size_t names_ = 0, numbers_ = 0, texts_ = 0, values_ = 0;
};

} // namespace troupe::recording
