// Plain data as bytes and back: one description of a struct serves both directions.
//
//   template <class Archive>
//   void visit(Archive& a, link_speed& s) { a(s.bytes_per_s, s.latency_s); }
//
//   std::vector<uint8_t> bytes = encode(speed);
//   link_speed same = decode<link_speed>(bytes);
//
// `a(…)` takes numbers, booleans, enumerators, strings, optionals, pairs, arrays, vectors, maps, variants and structs
// that have a `visit` in their own namespace or in this one. Numbers are little endian, counts have 32 bits.
//
// Bytes come from other hosts and may be anything. Reading throws `errc::invalid_input`, saying what and at which byte;
// a count is refused before anything is allocated if the bytes that are left cannot hold the elements. No function
// recurses as deep as bytes say.
#pragma once

#include "base/error.hpp"
#include "base/hash.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace troupe::wire {

static_assert(std::endian::native == std::endian::little, "numbers and elements cross hosts as they are in memory");

/// How many enumerators an enumeration has, which are numbered from 0.
template <class E>
inline constexpr uint64_t count_of = 0;

/// Returns whether a number read is one of E's enumerators.
template <class E>
constexpr bool is_enumerator(E value) {
  static_assert(count_of<E> > 0, "say how many enumerators there are");
  return static_cast<uint64_t>(value) < count_of<E>;
}

class writer;

template <class T>
inline constexpr bool is_plain = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// Appends values to bytes (see the top of this file).
class writer {
public:
  static constexpr bool reads = false;

  explicit writer(std::vector<uint8_t>& out) : out_(out) {}

  template <class... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }

  void raw(const void* data, size_t size) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    out_.insert(out_.end(), bytes, bytes + size);
  }

  void count(size_t n) {
    if (n > UINT32_MAX)
      fail(errc::unsupported, "{} elements are more than a message to another host can count", n);
    put(static_cast<uint32_t>(n));
  }

private:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void put(T value) { raw(&value, sizeof value); }
  void put(const std::string& text) {
    count(text.size());
    raw(text.data(), text.size());
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value)
      put(*value);
  }
  template <class A, class B>
  void put(const std::pair<A, B>& both) {
    put(both.first);
    put(both.second);
  }
  template <class T, size_t N>
  void put(const std::array<T, N>& elements) {
    for (const T& element : elements)
      put(element);
  }
  template <class T>
  void put(const std::vector<T>& elements) {
    count(elements.size());
    if constexpr (is_plain<T>)
      raw(elements.data(), elements.size() * sizeof(T));
    else
      for (const T& element : elements)
        put(element);
  }
  template <class K, class V, class Less>
  void put(const std::map<K, V, Less>& entries) {
    count(entries.size());
    for (const auto& entry : entries)
      put(entry);
  }
  template <class... T>
  void put(const std::variant<T...>& value) {
    put(static_cast<uint8_t>(value.index()));
    std::visit([this](const auto& v) { this->put(v); }, value);
  }
  template <class T>
  requires(std::is_class_v<T>) void put(const T& value) { visit(*this, const_cast<T&>(value)); } // which only reads it

  std::vector<uint8_t>& out_;
};

/// The fewest bytes that a value of type T takes.
template <class T>
struct least {
  static size_t bytes() {
    static const size_t size = [] {
      std::vector<uint8_t> written;
      writer{written}(T{});
      return written.size();
    }();
    return size;
  }
};
template <class A, class B>
struct least<std::pair<A, B>> {
  static size_t bytes() { return least<std::remove_const_t<A>>::bytes() + least<B>::bytes(); }
};
template <class... T>
struct least<std::variant<T...>> {
  static size_t bytes() { return 1 + std::min({least<T>::bytes()...}); }
};

/// Reads values from bytes that may be anything (see the top of this file).
class reader {
public:
  static constexpr bool reads = true;

  /// `what` is what errors call the bytes.
  explicit reader(std::span<const uint8_t> bytes, std::string_view what = "a message from another host")
      : bytes_(bytes), what_(what) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
  }

  /// Throws if bytes are left.
  void finish() const {
    if (left() > 0)
      refuse("{} bytes are left at its end", left());
  }

  size_t left() const { return bytes_.size() - at_; }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(errc::invalid_input, "{} is malformed at byte {}: {}", what_, at_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  std::span<const uint8_t> raw(size_t size) {
    if (size > left())
      refuse("{} bytes are needed, {} are left", size, left());
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }

  /// Reads a count of elements that take at least `least_bytes` each.
  size_t count(size_t least_bytes) {
    uint32_t n = 0;
    get(n);
    if (n > left() / std::max<size_t>(least_bytes, 1))
      refuse("it counts {} elements of at least {} bytes, but {} bytes are left", n, least_bytes, left());
    return n;
  }

private:
  template <class T>
  requires is_plain<T>
  void get(T& value) { std::memcpy(&value, raw(sizeof value).data(), sizeof value); }
  void get(bool& value) {
    const uint8_t read = raw(1)[0];
    if (read > 1)
      refuse("{} is not a boolean (0 or 1)", read);
    value = read == 1;
  }
  template <class T>
  requires std::is_enum_v<T>
  void get(T& value) {
    std::underlying_type_t<T> read{};
    get(read);
    if (!is_enumerator(static_cast<T>(read)))
      refuse("{} is not one of the values that are possible here", read);
    value = static_cast<T>(read);
  }
  void get(std::string& text) {
    const auto characters = raw(count(1));
    text.assign(reinterpret_cast<const char*>(characters.data()), characters.size());
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    value.reset();
    if (there)
      get(value.emplace());
  }
  template <class A, class B>
  void get(std::pair<A, B>& both) {
    get(both.first);
    get(both.second);
  }
  template <class T, size_t N>
  void get(std::array<T, N>& elements) {
    for (T& element : elements)
      get(element);
  }
  template <class T>
  void get(std::vector<T>& elements) {
    const size_t n = count(least<T>::bytes());
    if constexpr (is_plain<T>) {
      const auto bytes = raw(n * sizeof(T));
      elements.resize(n);
      if (n > 0)
        std::memcpy(elements.data(), bytes.data(), bytes.size());
    } else {
      elements.clear();
      elements.reserve(n);
      for (size_t i = 0; i < n; ++i)
        get(elements.emplace_back());
    }
  }
  template <class K, class V, class Less>
  void get(std::map<K, V, Less>& entries) {
    entries.clear();
    for (size_t n = count(least<std::pair<K, V>>::bytes()); n > 0; --n) {
      K key{};
      get(key);
      const auto [entry, is_new] = entries.try_emplace(std::move(key));
      if (!is_new)
        refuse("a key stands there twice");
      get(entry->second);
    }
  }
  template <class... T>
  void get(std::variant<T...>& value) {
    uint8_t index = 0;
    get(index);
    size_t next = 0;
    const bool found = ((next++ == index ? (get(value.template emplace<T>()), true) : false) || ...);
    if (!found)
      refuse("{} is not one of the {} kinds", index, sizeof...(T));
  }
  template <class T>
  requires std::is_class_v<T>
  void get(T& value) { visit(*this, value); }

  std::span<const uint8_t> bytes_;
  std::string_view what_;
  size_t at_ = 0;
};

template <class Archive>
void visit(Archive& a, hash128& h) {
  a(h.high, h.low);
}

template <class T>
std::vector<uint8_t> encode(const T& value) {
  std::vector<uint8_t> bytes;
  writer{bytes}(value);
  return bytes;
}

/// Throws `errc::invalid_input` if the bytes are anything but one T, and what T's own checks throw. `what`: see
/// `reader`.
template <class T>
T decode(std::span<const uint8_t> bytes, std::string_view what = "a message from another host") {
  reader r(bytes, what);
  T value{};
  r(value);
  r.finish();
  return value;
}

} // namespace troupe::wire
