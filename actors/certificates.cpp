#include "actors/certificates.hpp"

#include "base/error.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

constexpr int ca_days = 3650;
constexpr long seconds_a_day = 24 * 60 * 60;
constexpr long clock_difference = 60 * 60; // that two hosts may have
constexpr size_t longest_name = 64;        // X.509's limit of a common name

template <class T, void (*Free)(T*)>
struct freeing {
  void operator()(T* p) const { Free(p); }
};
using key_ptr = std::unique_ptr<EVP_PKEY, freeing<EVP_PKEY, EVP_PKEY_free>>;
using certificate_ptr = std::unique_ptr<X509, freeing<X509, X509_free>>;
using extension_ptr = std::unique_ptr<X509_EXTENSION, freeing<X509_EXTENSION, X509_EXTENSION_free>>;
using bio_ptr = std::unique_ptr<BIO, freeing<BIO, BIO_free_all>>;

struct identity {
  key_ptr key;
  certificate_ptr certificate;
};

void check_openssl(bool succeeded, const char* what) {
  if (!succeeded)
    fail(errc::internal, "OpenSSL cannot {}: {}", what, ERR_error_string(ERR_get_error(), nullptr));
}

bool is_address(const std::string& name) {
  in6_addr storage;
  return inet_pton(AF_INET, name.c_str(), &storage) == 1 || inet_pton(AF_INET6, name.c_str(), &storage) == 1;
}

void check_name(const std::string& name) {
  const bool fits = !name.empty() && name.size() <= longest_name && name != "ca" && !name.starts_with('.') &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':';
                    });
  if (!fits)
    fail(errc::invalid_argument,
         "'{}' cannot be a member's name: 1 to {} letters, digits, '.', '-', '_' or ':' (of an IPv6 address), and not "
         "'ca'",
         name, longest_name);
}

void add_extension(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const extension_ptr extension(X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
  check_openssl(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "add to a certificate");
}

/// A certificate that lacks its extensions and its signature.
identity new_identity(const std::string& name, long first_second, long last_second) {
  identity made{key_ptr(EVP_EC_gen("P-256")), certificate_ptr(X509_new())};
  X509* const c = made.certificate.get();
  check_openssl(made.key && c, "make a key");
  unsigned char serial[16];
  check_openssl(RAND_bytes(serial, sizeof serial) == 1, "make a random number");
  serial[0] &= 0x7f; // a serial number is positive
  const std::unique_ptr<BIGNUM, freeing<BIGNUM, BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  X509_set_version(c, X509_VERSION_3);
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(c));
  X509_gmtime_adj(X509_getm_notBefore(c), first_second);
  X509_gmtime_adj(X509_getm_notAfter(c), last_second);
  X509_set_pubkey(c, made.key.get());
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(c), "CN", MBSTRING_UTF8, text, -1, -1, 0);
  return made;
}

void sign(X509* certificate, const identity& issuer) {
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer.certificate.get()));
  add_extension(certificate, issuer.certificate.get(), NID_subject_key_identifier, "hash");
  add_extension(certificate, issuer.certificate.get(), NID_authority_key_identifier, "keyid:always");
  check_openssl(X509_sign(certificate, issuer.key.get(), EVP_sha256()) > 0, "sign a certificate");
}

identity make_ca() {
  identity ca = new_identity("troupe cluster CA", -clock_difference, ca_days * seconds_a_day);
  X509* const c = ca.certificate.get();
  add_extension(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(c, c, NID_key_usage, "critical,keyCertSign,cRLSign");
  X509_set_issuer_name(c, X509_get_subject_name(c));
  add_extension(c, c, NID_subject_key_identifier, "hash");
  check_openssl(X509_sign(c, ca.key.get(), EVP_sha256()) > 0, "sign a certificate");
  return ca;
}

identity make_member(const std::string& name, int days, const identity& ca) {
  const long last = days * seconds_a_day;
  // A certificate that has expired already, as tests want it, still begins before it ends.
  identity member = new_identity(name, std::min(0L, 2 * last) - clock_difference, last);
  X509* const c = member.certificate.get();
  X509* const issuer = ca.certificate.get();
  add_extension(c, issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(c, issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(c, issuer, NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(c, issuer, NID_subject_alt_name, (is_address(name) ? "IP:" : "DNS:") + name);
  sign(c, ca);
  return member;
}

/// Writes a file. With `secret`, no other user could read it at any moment.
void write_pem(const fs::path& path, const bio_ptr& pem, bool secret) {
  const fs::path fresh = path.string() + ".new";
  fs::remove(fresh);
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, secret ? 0600 : 0644);
  char* text = nullptr;
  const long size = BIO_get_mem_data(pem.get(), &text);
  const bool written = fd >= 0 && write(fd, text, static_cast<size_t>(size)) == size && fsync(fd) == 0;
  const int problem = errno;
  if (fd >= 0)
    close(fd);
  if (!written || rename(fresh.c_str(), path.c_str()) != 0)
    fail(errc::io, "cannot write '{}': {}", path.string(), std::strerror(written ? errno : problem));
}

void write_identity(const identity& one, const fs::path& certificate, const fs::path& key) {
  const bio_ptr key_text(BIO_new(BIO_s_mem())), certificate_text(BIO_new(BIO_s_mem()));
  check_openssl(PEM_write_bio_PrivateKey(key_text.get(), one.key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1 &&
                    PEM_write_bio_X509(certificate_text.get(), one.certificate.get()) == 1,
                "write a key");
  write_pem(key, key_text, true);
  write_pem(certificate, certificate_text, false);
}

identity read_ca(const fs::path& certificate, const fs::path& key) {
  check_private(key);
  const bio_ptr key_file(BIO_new_file(key.c_str(), "r")), certificate_file(BIO_new_file(certificate.c_str(), "r"));
  identity ca;
  if (key_file && certificate_file) {
    ca.key.reset(PEM_read_bio_PrivateKey(key_file.get(), nullptr, nullptr, nullptr));
    ca.certificate.reset(PEM_read_bio_X509(certificate_file.get(), nullptr, nullptr, nullptr));
  }
  const bool fits = ca.key && ca.certificate && X509_check_private_key(ca.certificate.get(), ca.key.get()) == 1;
  ERR_clear_error();
  if (!fits)
    fail(errc::invalid_argument,
         "'{}' and '{}' are not a CA's certificate and its key; remove both to make a new CA, which the "
         "whole cluster then needs",
         certificate.string(), key.string());
  return ca;
}

} // namespace

void check_private(const fs::path& key) {
  struct stat found {};
  if (stat(key.c_str(), &found) != 0)
    return; // who reads it says what is wrong
  // As PostgreSQL has it: a key that an administrator owns may be read by the group of a service.
  const mode_t forbidden = found.st_uid == 0 ? 0037 : 0077;
  if ((found.st_mode & forbidden) != 0)
    fail(errc::invalid_argument,
         "others than its owner may use the key '{}' (its mode is {:o}), and anyone who has read it is a member of the "
         "cluster; make new certificates if that may have happened, else `chmod 600` it",
         key.string(), found.st_mode & 07777);
}

made_certificates make_certificates(const certificate_wish& wish) {
  if (wish.names.empty() || wish.days == 0 || std::abs(wish.days) > ca_days)
    fail(errc::invalid_argument, "certificates need a name each, and are valid for 1 to {} days", ca_days);
  const fs::path ca_file = wish.folder / "ca.crt", ca_key = wish.folder / "ca.key";
  made_certificates made{.made_ca = !fs::exists(ca_file) && !fs::exists(ca_key), .ca = ca_file};
  for (const std::string& name : wish.names) {
    check_name(name);
    made.members.emplace_back(wish.folder / (name + ".crt"), wish.folder / (name + ".key"));
    for (const fs::path& file : {made.members.back().first, made.members.back().second})
      if (!wish.force && fs::exists(file))
        fail(errc::invalid_argument, "'{}' is there already; --force makes a new one in its place", file.string());
  }
  std::error_code problem;
  const bool is_new = fs::create_directories(wish.folder, problem);
  if (is_new && !problem) // keys will be in it
    fs::permissions(wish.folder, fs::perms::owner_all, problem);
  if (problem)
    fail(errc::io, "cannot make the folder '{}': {}", wish.folder.string(), problem.message());
  const identity ca = made.made_ca ? make_ca() : read_ca(ca_file, ca_key);
  if (made.made_ca)
    write_identity(ca, ca_file, ca_key);
  for (size_t i = 0; i < wish.names.size(); ++i)
    write_identity(make_member(wish.names[i], wish.days, ca), made.members[i].first, made.members[i].second);
  return made;
}

} // namespace troupe::actors
