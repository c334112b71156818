#include "remote/values.hpp"

#include "tensor/elements.hpp"

#include <algorithm>
#include <cstring>
#include <future>

namespace troupe::remote {
namespace {

tensor encode_strings(const tensor& t) {
  size_t size = 0;
  for (const std::string& text : t.values<std::string>())
    size += sizeof(uint64_t) + text.size();
  tensor blob(dtype::uint8, {static_cast<int64_t>(size)});
  auto* to = blob.mutable_data<uint8_t>();
  for (const std::string& text : t.values<std::string>()) {
    const uint64_t length = text.size();
    std::memcpy(to, &length, sizeof length);
    std::copy(text.begin(), text.end(), to + sizeof length);
    to += sizeof length + text.size();
  }
  return blob;
}

tensor decode_strings(shape dims, std::span<const uint8_t> bytes) {
  const auto count = static_cast<uint64_t>(volume(dims));
  if (count > bytes.size() / sizeof(uint64_t))
    fail(errc::invalid_input, "{} bytes cannot hold {} strings", bytes.size(), count);
  tensor t(dtype::string, std::move(dims));
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t length = 0;
    if (bytes.size() >= sizeof length)
      std::memcpy(&length, bytes.data(), sizeof length);
    if (bytes.size() < sizeof length || length > bytes.size() - sizeof length)
      fail(errc::invalid_input, "string {} of {} is cut off", i, count);
    t.mutable_data<std::string>()[i].assign(reinterpret_cast<const char*>(bytes.data() + sizeof length), length);
    bytes = bytes.subspan(sizeof length + length);
  }
  if (!bytes.empty())
    fail(errc::invalid_input, "{} bytes are left after {} strings", bytes.size(), count);
  return t;
}

/// What computes with truth values takes 0 and 1; another host may send anything.
tensor with_truth_values(tensor t) {
  const auto* bytes = static_cast<const uint8_t*>(t.data());
  if (t.type() != dtype::boolean || std::all_of(bytes, bytes + t.bytes(), [](uint8_t byte) { return byte <= 1; }))
    return t;
  tensor clean(dtype::boolean, t.dims());
  std::transform(bytes, bytes + t.bytes(), static_cast<uint8_t*>(clean.mutable_data()),
                 [](uint8_t byte) -> uint8_t { return byte != 0; });
  return clean;
}

/// The strings of one value, counted; what takes more than this on its way is an error, before anything is allocated.
constexpr int64_t max_string_bytes = int64_t{1} << 30;

/// Throws unless a value is what is expected, and its size what its type and dims say.
void check(const sent_value& value, const expected_value& expected) {
  const int64_t elements = checked_size(value, expected);
  if (value.from == origin::message && value.bytes.size() > static_cast<size_t>(message_bytes))
    fail(errc::invalid_input, "a message carries a value of {} bytes, but at most {} may be in one", value.bytes.size(),
         message_bytes);
  if (value.type != dtype::string && value.from != origin::message && value.size != bytes_of(value.type, elements))
    fail(errc::invalid_input, "a value of type {} and shape {} is said to have {} bytes", to_string(value.type),
         to_string(value.dims), value.size);
  if (value.type != dtype::string || value.from == origin::message)
    return;
  if (value.size > max_string_bytes)
    fail(errc::unsupported,
         "{} strings take {} bytes on their way to another host, at most {} can: pin the nodes that make and read them "
         "to one host",
         elements, value.size, max_string_bytes);
  if (value.size < 0 || value.size / static_cast<int64_t>(sizeof(uint64_t)) < elements)
    fail(errc::invalid_input, "{} bytes cannot hold {} strings", value.size, elements);
}

} // namespace

tensor to_blob(const tensor& t) {
  if (t.type() == dtype::string)
    return encode_strings(t);
  return {dtype::uint8, {t.bytes()}, std::make_shared<tensor>(t), t.data()};
}

tensor from_blob(dtype type, shape dims, const tensor& blob) {
  if (type == dtype::string)
    return decode_strings(std::move(dims), blob.values<uint8_t>());
  if (const int64_t wanted = bytes_of(type, volume(dims)); wanted != blob.bytes())
    fail(errc::invalid_input, "a value of type {} and shape {} came with {} bytes instead of {}", to_string(type),
         to_string(dims), blob.bytes(), wanted);
  return with_truth_values({type, std::move(dims), std::make_shared<tensor>(blob), blob.data()});
}

hash128 content_proof(const hash128& challenge, const tensor& blob) {
  content_hasher h;
  // Names of contents are hashes by the same function: a proof must never be one of them.
  h.add("proof");
  h.add(challenge);
  h.add_block({blob.data<std::byte>(), static_cast<size_t>(blob.bytes())}, challenge);
  return h.digest();
}

sent_value describe(const tensor& t, const hash128& key, piece_source& offers, int64_t room) {
  const tensor blob = to_blob(t);
  sent_value value{.type = t.type(), .dims = t.dims(), .key = key, .size = blob.bytes()};
  if (blob.bytes() <= std::min(message_bytes, room)) {
    value.bytes.assign(blob.data<uint8_t>(), blob.data<uint8_t>() + blob.bytes());
    return value;
  }
  value.from = origin::sender;
  offers.offer(key, blob);
  return value;
}

int64_t checked_size(const sent_value& value, const expected_value& expected) {
  if (expected.type != dtype::undefined && value.type != expected.type)
    fail(errc::invalid_input, "a value is {} instead of {}", to_string(value.type), to_string(expected.type));
  if (expected.dims && value.dims != *expected.dims)
    fail(errc::invalid_input, "a value has shape {} instead of {}", to_string(value.dims), to_string(*expected.dims));
  return volume(value.dims); // of a hostile peer: may throw
}

void pull_and_wait(const puller_of& pull, const hash128& key, const tensor& to) {
  std::promise<failure> ended;
  pull(key, to, [&](const failure& why) { ended.set_value(why); });
  if (const failure why = ended.get_future().get(); why.failed())
    fail(why.code, "{}", why.message);
}

void take(sent_value value, const expected_value& expected, const value_source& from, const value_taken& done) {
  tensor blob, made;
  const bool is_here = value.from == origin::message;
  const failure why = capture([&] {
    check(value, expected);
    if (!is_here) {
      blob = from.make(dtype::uint8, {value.size});
      return;
    }
    blob = tensor(dtype::uint8, {static_cast<int64_t>(value.bytes.size())});
    std::copy(value.bytes.begin(), value.bytes.end(), blob.mutable_data<uint8_t>());
    made = from_blob(value.type, std::move(value.dims), blob);
  });
  if (why.failed() || is_here)
    return done(std::move(made), why);
  from.pull(value.key, blob, [blob, type = value.type, dims = std::move(value.dims), done](const failure& failed) {
    tensor pulled;
    failure end = failed;
    if (!end.failed())
      end = capture([&] { pulled = from_blob(type, dims, blob); });
    done(std::move(pulled), std::move(end));
  });
}

} // namespace troupe::remote
