// 128-bit content hashes (XXH3), for cache keys. Not cryptographic.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace troupe {

struct hash128 {
  uint64_t high = 0, low = 0;
  bool operator==(const hash128&) const = default;
};

/// Returns 32 hexadecimal digits.
std::string to_hex(const hash128& hash);

/// Reads 32 hexadecimal digits; nullopt if the text is anything else.
std::optional<hash128> from_hex(std::string_view digits);

/// Hashes a sequence of values. Strings carry their length, so that "ab","c" and "a","bc" differ.
class hasher {
public:
  hasher();
  ~hasher();
  hasher(const hasher&) = delete;
  hasher& operator=(const hasher&) = delete;

  void add_bytes(const void* data, size_t size);
  void add(std::string_view text);
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void add(T value) { add_bytes(&value, sizeof value); }
  void add(const hash128& value) {
    add(value.high);
    add(value.low);
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(std::span<const T> values) {
    add(values.size());
    add_bytes(values.data(), values.size_bytes());
  }

  hash128 digest() const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace troupe

template <>
struct std::hash<troupe::hash128> {
  size_t operator()(const troupe::hash128& h) const noexcept { return h.low; }
};
