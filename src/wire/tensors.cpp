#include "wire/tensors.hpp"

#include "base/limits.hpp"

#include <algorithm>

namespace troupe::wire {

void check_dims(const reader& r, dtype type, const shape& dims) {
  constexpr int64_t most = int64_t{1} << 47;
  int64_t count = type == dtype::undefined ? most + 1 : 1;
  for (int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(count, std::max<int64_t>(d, 1), &count) || count > most)
      count = most + 1;
  if (count > most || dims.size() > limits::max_rank)
    r.refuse("no tensor is {} of {} dims", to_string(type), dims.size());
}

void put_elements(writer& w, const tensor& t) {
  if (t.type() == dtype::string)
    for (const std::string& text : t.values<std::string>())
      w(text);
  else
    w.raw(t.data(), static_cast<size_t>(t.bytes()));
}

tensor get_elements(reader& r, dtype type, shape dims) {
  check_dims(r, type, dims);
  const int64_t count = volume(dims), bytes = type == dtype::string ? count * 4 : bytes_of(type, count);
  if (bytes > static_cast<int64_t>(r.left()))
    r.refuse("a tensor has {} bytes, but {} are left", bytes, r.left());
  tensor t(type, std::move(dims));
  if (type == dtype::string) {
    for (std::string& text : std::span(t.mutable_data<std::string>(), static_cast<size_t>(count)))
      r(text);
    return t;
  }
  const auto elements = r.raw(static_cast<size_t>(bytes));
  std::copy(elements.begin(), elements.end(), t.mutable_data<uint8_t>());
  if (type == dtype::boolean) // any other byte is not a bool
    for (uint8_t& e : std::span(t.mutable_data<uint8_t>(), elements.size()))
      e = e != 0;
  return t;
}

std::shared_ptr<const graph> stand_in(uint32_t captures) {
  if (captures > limits::max_operands)
    fail(errc::invalid_input, "a body from another host captures {} values", captures);
  auto body = std::make_shared<graph>();
  body->name = "a body";
  for (uint32_t i = 0; i < captures; ++i)
    body->captured.push_back(body->add_value({}));
  body->inputs = body->captured;
  return body;
}

} // namespace troupe::wire
