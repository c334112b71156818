#include "actors/network/channel.hpp"

#include "actors/certificates.hpp"
#include "base/error.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace troupe::actors {
namespace {

// Sent by either side first, so that a caller is told at once whom it has reached; never to be changed.
constexpr std::string_view greeting = "troupe\r\n";
// Bytes that one call reads at most, so that connections take turns.
constexpr size_t turn_bytes = size_t{1} << 20;
// Bytes that TLS makes into records, 16 KiB each, before they are sent together; and what is received at once.
constexpr size_t burst_bytes = size_t{256} << 10;
constexpr size_t ahead_bytes = size_t{64} << 10;

std::string openssl_reason(unsigned long code) {
  const char* text = ERR_reason_error_string(code);
  return text ? text : "unknown problem";
}

[[noreturn]] void refuse(std::string_view what, const std::string& file) {
  const std::string reason = openssl_reason(ERR_peek_last_error());
  ERR_clear_error();
  fail(errc::invalid_argument, "{} '{}': {}; `troupe keys` makes certificates and keys", what, file, reason);
}

bool is_for_later() {
  return errno == EAGAIN || errno == EINTR;
}

/// Returns a certificate's hash; empty for none.
std::string hash_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  if (!certificate || X509_digest(certificate, EVP_sha256(), hash.data(), &size) != 1)
    return {};
  return {hash.begin(), hash.begin() + size};
}

} // namespace

/// Other than OpenSSL's own socket it raises no SIGPIPE in whatever thread writes to it, and needs no system call for
/// each record.
struct record_buffer {
  int fd;
  bool reads_ahead = false; // no poll tells of what it has read
  std::vector<char> out{};  // records to be sent
  size_t sent = 0;
  std::vector<char> in{};
  size_t taken = 0, come = 0; // of `in`

  /// Sends what is there; `wants_output` if not all of it could be.
  progress flush();
  /// Reads at most `size` bytes; returns what `recv` returns.
  ssize_t take(char* to, size_t size);
};

progress record_buffer::flush() {
  while (sent < out.size()) {
    const ssize_t done = send(fd, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (done < 0)
      return is_for_later() ? progress::wants_output : progress::ended;
    sent += static_cast<size_t>(done);
  }
  sent = 0;
  out.clear();
  if (out.capacity() > ahead_bytes) // many connections are idle
    out.shrink_to_fit();
  return progress::done;
}

ssize_t record_buffer::take(char* to, size_t size) {
  if (!reads_ahead)
    return recv(fd, to, size, 0);
  if (taken == come) {
    in.resize(ahead_bytes);
    const ssize_t got = recv(fd, in.data(), in.size(), 0);
    if (got <= 0)
      return got;
    taken = 0;
    come = static_cast<size_t>(got);
  }
  const size_t part = std::min(size, come - taken);
  std::memcpy(to, in.data() + taken, part);
  taken += part;
  return static_cast<ssize_t>(part);
}

namespace {

record_buffer& buffer_of(BIO* bio) {
  return *static_cast<record_buffer*>(BIO_get_data(bio));
}

int write_record(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  std::vector<char>& out = buffer_of(bio).out;
  out.insert(out.end(), from, from + size);
  return size;
}

int read_record(BIO* bio, char* to, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = buffer_of(bio).take(to, static_cast<size_t>(size));
  if (got < 0 && is_for_later())
    BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long control_records(BIO* bio, int command, long, void*) {
  if (command != BIO_CTRL_FLUSH)
    return 0;
  BIO_clear_retry_flags(bio);
  const progress came = buffer_of(bio).flush();
  if (came == progress::wants_output)
    BIO_set_retry_write(bio);
  return came == progress::done ? 1 : -1;
}

BIO* make_bio(record_buffer& records) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(m, write_record);
    BIO_meth_set_read(m, read_record);
    BIO_meth_set_ctrl(m, control_records);
    return m;
  }();
  BIO* bio = BIO_new(method);
  BIO_set_data(bio, &records);
  BIO_set_init(bio, 1);
  return bio;
}

void check_given(const host_credentials& c) {
  const std::pair<const char*, const std::string&> files[] = {
      {"certificate", c.certificate}, {"key", c.key}, {"CA certificate", c.ca}};
  for (const auto& [what, file] : files) {
    if (file.empty())
      fail(errc::invalid_argument,
           "a link to another host needs a {} (--tls-cert, --tls-key, --tls-ca; `troupe keys` makes them), or "
           "--insecure on "
           "both sides",
           what);
    std::error_code problem;
    if (!std::filesystem::is_regular_file(file, problem))
      fail(errc::invalid_argument, "the {} '{}' is not a file that can be read; `troupe keys` makes one", what, file);
  }
}

/// Checks that the certificate is valid today and signed by the CA: else every other side would refuse it.
void check_certificate(SSL_CTX* context, const host_credentials& c) {
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> check(X509_STORE_CTX_new(),
                                                                              &X509_STORE_CTX_free);
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context), SSL_CTX_get0_certificate(context), chain);
  if (X509_verify_cert(check.get()) != 1)
    fail(errc::invalid_argument,
         "the certificate '{}' is not valid with the CA '{}': {}; make a new one by `troupe keys`", c.certificate, c.ca,
         X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get())));
}

} // namespace

tls_context make_tls_context(const host_credentials& c) {
  if (c.insecure) {
    if (!c.certificate.empty() || !c.key.empty() || !c.ca.empty())
      fail(errc::invalid_argument, "--insecure links use no certificate: leave one of the two out");
    return nullptr;
  }
  check_given(c);
  ERR_clear_error();
  tls_context context(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  SSL_CTX* raw = context.get();
  if (!raw)
    fail(errc::internal, "OpenSSL gives no context");
  SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
  // The fastest first: processors have instructions for AES.
  SSL_CTX_set_ciphersuites(raw, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_load_verify_locations(raw, c.ca.c_str(), nullptr) != 1)
    refuse("cannot read the CA certificate", c.ca);
  if (SSL_CTX_use_certificate_chain_file(raw, c.certificate.c_str()) != 1)
    refuse("cannot read the certificate", c.certificate);
  // Reading the key compares it with the certificate.
  check_private(c.key);
  if (SSL_CTX_use_PrivateKey_file(raw, c.key.c_str(), SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(raw) != 1)
    refuse(fmt::format("cannot use, for the certificate '{}', the key", c.certificate), c.key);
  check_certificate(raw, c);
  return context;
}

channel::channel(file_descriptor socket, const tls_context& tls, bool accepting)
    : socket_(std::move(socket)), ssl_(tls ? SSL_new(tls.get()) : nullptr, &SSL_free), fd_(socket_.get()),
      accepting_(accepting), shaken_(!tls) {
  if (!ssl_)
    return;
  records_.reset(new record_buffer{fd_});
  BIO* const bio = make_bio(*records_);
  SSL_set_bio(ssl_.get(), bio, bio);
  accepting ? SSL_set_accept_state(ssl_.get()) : SSL_set_connect_state(ssl_.get());
}

channel::channel(channel&&) noexcept = default;
channel& channel::operator=(channel&&) noexcept = default;
channel::~channel() = default;

int channel::release_socket() {
  return socket_.release();
}

progress channel::shake_hands() {
  if (!shaken_) {
    ERR_clear_error();
    const progress came = progress_of(SSL_do_handshake(ssl_.get()));
    if (came != progress::done)
      return came;
    shaken_ = true;
  }
  return greet();
}

/// The caller greets first: a side that expects TLS knows then that the other does not speak it.
progress channel::greet() {
  const bool may_send = !accepting_ || received_ == greeting.size();
  while (may_send && sent_ < greeting.size()) {
    size_t moved = 0;
    const progress came = write(greeting.data() + sent_, greeting.size() - sent_, moved);
    if (came == progress::ended && received_ < greeting.size())
      break; // the other side's last word, why it has ended the connection, may still be read
    if (came != progress::done)
      return came;
    sent_ += moved;
  }
  while (received_ < greeting.size()) {
    char part[greeting.size()];
    size_t moved = 0;
    if (const progress came = read(part, greeting.size() - received_, moved); came != progress::done)
      return came;
    heard_.append(part, moved);
    if (!greeting.starts_with(heard_))
      return progress::ended;
    received_ += moved;
  }
  if (sent_ < greeting.size())
    return greet();
  if (records_)
    records_->reads_ahead = true; // from now on, a reader asks `pending` before it waits
  return progress::done;
}

progress channel::progress_of(int result) {
  if (result > 0)
    return progress::done;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: return progress::wants_input;
    case SSL_ERROR_WANT_WRITE: return progress::wants_output;
    default:
      error_ = ERR_peek_last_error();
      verified_ = SSL_get_verify_result(ssl_.get());
      ERR_clear_error();
      return progress::ended;
  }
}

progress channel::read(void* to, size_t size, size_t& moved) {
  moved = 0;
  if (!ssl_) {
    const ssize_t got = recv(fd_, to, size, 0);
    if (got < 0)
      return errno == EAGAIN || errno == EINTR ? progress::wants_input : progress::ended;
    moved = static_cast<size_t>(got);
    return got == 0 ? progress::ended : progress::done;
  }
  // A call of OpenSSL gives one record, 16 KiB at most.
  for (ERR_clear_error(); moved < std::min(size, turn_bytes);) {
    size_t got = 0;
    const progress came = progress_of(SSL_read_ex(ssl_.get(), static_cast<char*>(to) + moved, size - moved, &got));
    if (came != progress::done)
      return moved > 0 ? progress::done : came;
    moved += got;
  }
  return progress::done;
}

progress channel::write(const void* from, size_t size, size_t& moved) {
  moved = 0;
  if (!ssl_) {
    const ssize_t sent = send(fd_, from, size, MSG_NOSIGNAL);
    if (sent < 0)
      return errno == EAGAIN || errno == EINTR ? progress::wants_output : progress::ended;
    moved = static_cast<size_t>(sent);
    return progress::done;
  }
  ERR_clear_error();
  records_->out.reserve(std::min(size, burst_bytes) + 4096); // and what TLS adds
  while (taken_ < std::min(size, burst_bytes)) {
    size_t sent = 0;
    const progress came =
        progress_of(SSL_write_ex(ssl_.get(), static_cast<const char*>(from) + taken_, size - taken_, &sent));
    if (came != progress::done)
      return came;
    taken_ += sent;
  }
  const progress came = records_->flush();
  if (came == progress::done) // else the caller, who must not forget them, comes again with the same bytes
    moved = std::exchange(taken_, 0);
  return came;
}

size_t channel::pending() const {
  return ssl_ ? static_cast<size_t>(SSL_pending(ssl_.get())) + records_->come - records_->taken : 0;
}

std::string channel::peer() const {
  const std::unique_ptr<X509, decltype(&X509_free)> shown(ssl_ ? SSL_get1_peer_certificate(ssl_.get()) : nullptr,
                                                          &X509_free);
  return hash_of(shown.get());
}

std::string own_certificate(const tls_context& tls) {
  return hash_of(tls ? SSL_CTX_get0_certificate(tls.get()) : nullptr);
}

std::string channel::other_host() const {
  if (!ssl_)
    return peer_address(fd_);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl_.get()), &X509_free);
  char name[256] = {};
  if (!certificate ||
      X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name, sizeof name) <= 0)
    return {};
  return name;
}

std::string channel::problem() const {
  if (!ssl_)
    return heard_.empty() || heard_.starts_with('\x15')
               ? "it ended the connection, as a worker that expects TLS does: give certificates instead of --insecure"
               : "it is not a troupe worker";
  if (verified_ != X509_V_OK)
    return fmt::format("its certificate is not accepted: {}", X509_verify_cert_error_string(verified_));
  const int reason = ERR_GET_REASON(error_);
  if (reason > SSL_AD_REASON_OFFSET)
    return fmt::format("it does not accept our certificate: {}", openssl_reason(error_));
  if (reason == SSL_R_WRONG_VERSION_NUMBER || error_ == 0 || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
    return "it ended the TLS handshake: it may have been started with --insecure, or not be a troupe worker";
  return fmt::format("TLS failed: {}", openssl_reason(error_));
}

} // namespace troupe::actors
