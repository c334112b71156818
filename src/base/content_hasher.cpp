#include "base/content_hasher.hpp"

#include "base/error.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

namespace troupe {
namespace {

constexpr size_t hashed_piece_bytes = size_t{1} << 20;
/// A thread that is started for fewer pieces costs more than it saves.
constexpr size_t hashed_pieces_a_thread = 4;
constexpr size_t most_hashing_threads = 8;

using digest_bytes = std::array<unsigned char, 32>;

void check_openssl(int result) {
  if (result != 1)
    fail(errc::internal, "OpenSSL cannot hash or give random bytes");
}

const EVP_MD* sha256() {
  static const EVP_MD* const fetched =
      EVP_MD_fetch(nullptr, "SHA256", nullptr); // kept: looking it up takes longer than a short hash
  return fetched;
}

} // namespace

/// Not in the anonymous namespace: a member of `content_hasher::state` is of this type.
class sha256_stream {
public:
  sha256_stream() : context_(EVP_MD_CTX_new()) {
    check_openssl(context_ ? EVP_DigestInit_ex2(context_, sha256(), nullptr) : 0);
  }
  ~sha256_stream() { EVP_MD_CTX_free(context_); }
  sha256_stream(const sha256_stream&) = delete;
  sha256_stream& operator=(const sha256_stream&) = delete;

  void add(const void* data, size_t size) { check_openssl(EVP_DigestUpdate(context_, data, size)); }
  digest_bytes end() {
    digest_bytes digest;
    check_openssl(EVP_DigestFinal_ex(context_, digest.data(), nullptr));
    return digest;
  }

private:
  EVP_MD_CTX* const context_;
};

namespace {

digest_bytes hash_piece(std::span<const std::byte> piece, const hash128& salt) {
  sha256_stream s;
  s.add(&salt.high, sizeof salt.high);
  s.add(&salt.low, sizeof salt.low);
  s.add(piece.data(), piece.size());
  return s.end();
}

std::vector<digest_bytes> hash_pieces(std::span<const std::byte> block, const hash128& salt) {
  std::vector<digest_bytes> digests((block.size() + hashed_piece_bytes - 1) / hashed_piece_bytes);
  std::atomic<size_t> next = 0;
  std::atomic<bool> has_failed = false;
  const auto work = [&] {
    try {
      for (size_t i = next++; i < digests.size(); i = next++) {
        const auto rest = block.subspan(i * hashed_piece_bytes);
        digests[i] = hash_piece(rest.first(std::min(hashed_piece_bytes, rest.size())), salt);
      }
    } catch (const error&) {
      has_failed = true;
    }
  };
  {
    const size_t wanted = std::min({most_hashing_threads, size_t{std::max(1u, std::thread::hardware_concurrency())},
                                    digests.size() / hashed_pieces_a_thread});
    std::vector<std::jthread> helpers;
    try {
      for (size_t i = 1; i < wanted; ++i)
        helpers.emplace_back(work);
    } catch (const std::system_error&) { // as many as there may be
    }
    work();
  }
  check_openssl(has_failed ? 0 : 1);
  return digests;
}

} // namespace

struct content_hasher::state {
  sha256_stream stream;
};

content_hasher::content_hasher() : state_(std::make_unique<state>()) {}
content_hasher::~content_hasher() = default;

void content_hasher::add_raw(const void* data, size_t size) {
  state_->stream.add(data, size);
}

void content_hasher::add(std::string_view text) {
  add(text.size());
  add_raw(text.data(), text.size());
}

void content_hasher::add_block(std::span<const std::byte> block, const hash128& salt) {
  add(block.size());
  if (block.size() <= hashed_piece_bytes) {
    add(salt);
    return add_raw(block.data(), block.size());
  }
  const std::vector<digest_bytes> digests = hash_pieces(block, salt);
  add_raw(digests.data(), digests.size() * sizeof(digest_bytes));
}

hash128 content_hasher::digest() {
  const digest_bytes whole = state_->stream.end();
  hash128 hash;
  std::memcpy(&hash.high, whole.data(), sizeof hash.high);
  std::memcpy(&hash.low, whole.data() + sizeof hash.high, sizeof hash.low);
  return hash;
}

hash128 random_key() {
  constexpr size_t keys = 64; // taken at once: one alone costs a microsecond
  static thread_local std::array<hash128, keys> made;
  static thread_local size_t left = 0;
  if (left == 0) {
    check_openssl(RAND_bytes(reinterpret_cast<unsigned char*>(made.data()), sizeof made));
    left = keys;
  }
  const hash128 key = made[--left];
  OPENSSL_cleanse(&made[left], sizeof key);
  return key;
}

} // namespace troupe
