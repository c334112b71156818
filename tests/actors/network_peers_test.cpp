// Hosts that die, hang, or should not be let in.
#include "actors/network/gate.hpp"
#include "support/network_hosts.hpp"

#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <filesystem>
#include <thread>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

/// This program once more, as a process that listens.
class worker_process {
public:
  explicit worker_process(const certificate_folder& keys) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    id_ = fork();
    if (id_ == 0) {
      dup2(ends[1], 1);
      setenv("TROUPE_TEST_KEYS", keys.path().c_str(), 1);
      execl("/proc/self/exe", "troupe_tests", "network: a process that listens", nullptr);
      _exit(1);
    }
    close(ends[1]);
    FILE* said = fdopen(ends[0], "r");
    char line[256];
    int port = 0;
    while (port == 0 && fgets(line, sizeof line, said))
      sscanf(line, "port %d", &port);
    port_ = static_cast<uint16_t>(port);
    fclose(said);
    REQUIRE(port_ != 0);
  }
  ~worker_process() {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  worker_process(const worker_process&) = delete;
  worker_process& operator=(const worker_process&) = delete;

  uint16_t port() const { return port_; }
  void signal(int what) const { kill(id_, what); }

private:
  pid_t id_;
  uint16_t port_;
};

actors::file_descriptor connect_raw(uint16_t port) {
  return actors::connect_to("127.0.0.1", port, std::chrono::steady_clock::now() + 5s);
}

/// Whether the other side ends a connection within 5 s.
bool is_ended(int fd) {
  const auto end = std::chrono::steady_clock::now() + 5s;
  for (char bytes[256]; actors::wait_for(fd, POLLIN, end);)
    if (recv(fd, bytes, sizeof bytes, 0) <= 0)
      return true;
  return false;
}

/// Connects as a TLS client without a certificate; returns true if it gets no byte.
bool stays_out_without_certificate(uint16_t port) {
  const actors::file_descriptor fd = connect_raw(port);
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context.get()), &SSL_free);
  SSL_set_fd(ssl.get(), fd.get());
  SSL_set_connect_state(ssl.get());
  char byte = 0;
  const auto end = std::chrono::steady_clock::now() + 5s;
  for (;;) {
    const int got = SSL_read(ssl.get(), &byte, 1);
    const int problem = SSL_get_error(ssl.get(), got);
    if (got > 0 || (problem == SSL_ERROR_WANT_READ && !actors::wait_for(fd.get(), POLLIN, end)))
      return false;
    if (problem != SSL_ERROR_WANT_READ)
      return true;
  }
}

/// Checks that the link still carries frames.
void check_alive(const opened_link& opened, inbox& in) {
  opened.link->send(text_frame("still there?"));
  CHECK(text_of(in.next()) == "still there?");
}

} // namespace

TEST_CASE("network: a process that listens", "[.]") {
  const char* keys = std::getenv("TROUPE_TEST_KEYS");
  if (!keys)
    return;
  const std::string folder = keys;
  echo_host host({folder + "/worker.crt", folder + "/worker.key", folder + "/ca.crt"});
  printf("port %d\n", host.port());
  fflush(stdout);
  for (;;)
    pause();
}

TEST_CASE("network: a process that is killed or hangs is told", "[actors][network]") {
  const certificate_folder keys({"worker", "session"});
  tcp_network net(keys.of("session"));
  const bool hangs = GENERATE(false, true);
  const worker_process worker(keys);
  const opened_link opened = call(net, worker.port());
  inbox in(opened.link);
  check_alive(opened, in);
  const auto start = std::chrono::steady_clock::now();
  worker.signal(hangs ? SIGSTOP : SIGKILL);
  CHECK_THAT(in.end(), Contains("the connection was lost"));
  CHECK(seconds_since(start) < (hangs ? 2.5 : 0.5));
  if (!hangs)
    return;
  // It goes on, and is used again.
  worker.signal(SIGCONT);
  const opened_link again = call(net, worker.port());
  inbox in_again(again.link);
  check_alive(again, in_again);
}

TEST_CASE("network: a caller without a certificate of the CA stays out, and an honest link goes on",
          "[actors][network]") {
  const certificate_folder keys({"worker", "session"}), others({"session"});
  echo_host host(keys.of("worker"));
  tcp_network net(keys.of("session")), rogue(others.of("session")), plain({.insecure = true});
  const opened_link opened = call(net, host.port());
  inbox in(opened.link);

  CHECK_THAT(problem_of(rogue, host.port()), Contains("its certificate is not accepted"));
  host_credentials half = others.of("session"); // trusts the worker, but is not trusted
  std::filesystem::copy_file(keys.file("ca.crt"), others.file("both.crt"));
  FILE* both = fopen(others.file("both.crt").c_str(), "a");
  FILE* own = fopen(others.file("ca.crt").c_str(), "r");
  for (int c = 0; (c = fgetc(own)) != EOF;)
    fputc(c, both);
  fclose(own);
  fclose(both);
  half.ca = others.file("both.crt");
  tcp_network untrusted(half);
  CHECK_THAT(problem_of(untrusted, host.port()), Contains("it does not accept our certificate"));
  CHECK(stays_out_without_certificate(host.port()));
  CHECK_THAT(problem_of(plain, host.port()), Contains("expects TLS"));
  check_alive(opened, in);

  echo_host open({.insecure = true});
  CHECK_THAT(problem_of(net, open.port()), Contains("--insecure"));
  CHECK(problem_of(plain, open.port()).empty());
  CHECK_THAT(problem_of(net, 1), Contains("cannot be reached"));
}

TEST_CASE("network: strangers are limited in number and patience", "[actors][network]") {
  const certificate_folder keys({"worker", "session"});
  echo_host host(keys.of("worker"));
  tcp_network net(keys.of("session"));
  const opened_link opened = call(net, host.port());
  inbox in(opened.link);
  std::vector<actors::file_descriptor> silent;
  for (int i = 0; i < 300; ++i)
    silent.push_back(connect_raw(host.port()));
  CHECK(is_ended(silent.front().get())); // it had to make room
  check_alive(opened, in);
  CHECK(problem_of(net, host.port()).empty());
  const actors::file_descriptor garbage = connect_raw(host.port());
  const std::string bytes(4096, 'x');
  CHECK(send(garbage.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0);
  CHECK(is_ended(garbage.get()));
  check_alive(opened, in);
}

TEST_CASE("gate: who does not shake hands in time is sent away", "[actors][network]") {
  const certificate_folder keys({"worker"});
  auto [socket, port] = actors::listen_at("127.0.0.1", 0);
  std::atomic<int> admitted = 0;
  const actors::gate gate(
      std::move(socket), actors::make_tls_context(keys.of("worker")), [&](actors::channel) { ++admitted; }, 200ms);
  const auto start = std::chrono::steady_clock::now();
  const actors::file_descriptor silent = connect_raw(port), slow = connect_raw(port);
  const uint8_t hello_start[] = {22, 3, 1, 1, 0, 1}; // of TLS, to be continued
  CHECK(send(slow.get(), hello_start, sizeof hello_start, MSG_NOSIGNAL) > 0);
  for (bool ended = false; !ended && seconds_since(start) < 2;) { // goes on talking all the time
    const uint8_t more = 0;
    ended = send(slow.get(), &more, 1, MSG_NOSIGNAL) < 0;
    std::this_thread::sleep_for(20ms);
  }
  CHECK(is_ended(silent.get()));
  CHECK(is_ended(slow.get()));
  CHECK(seconds_since(start) > 0.15);
  CHECK(seconds_since(start) < 1);
  CHECK(admitted == 0);
}

TEST_CASE("network: host_credentials that no host would accept are errors at once", "[actors][network]") {
  const certificate_folder keys({"worker", "session"}), others({"worker"}), expired({"old"}, -3);
  const auto problem = [](const host_credentials& c) -> std::string {
    try {
      const tcp_network made(c);
      return "";
    } catch (const error& e) {
      return e.code() == errc::invalid_argument ? e.what() : "another code";
    }
  };
  CHECK_THAT(problem({}), Contains("--tls-cert") && Contains("--insecure"));
  host_credentials c = keys.of("worker");
  CHECK(problem(c).empty());
  c.key = keys.file("session.key");
  CHECK_THAT(problem(c), Contains("session.key") && Contains("mismatch"));
  c.key = keys.file("absent.key");
  CHECK_THAT(problem(c), Contains("absent.key"));
  c = keys.of("worker");
  c.ca = others.file("ca.crt");
  CHECK_THAT(problem(c), Contains("not valid with the CA"));
  c.certificate = keys.file("worker.key");
  CHECK_THAT(problem(c), Contains("cannot read the certificate"));
  CHECK_THAT(problem(expired.of("old")), Contains("expired"));
  c = keys.of("worker");
  c.insecure = true;
  CHECK_THAT(problem(c), Contains("--insecure"));
  CHECK_FALSE(tcp_network({.insecure = true}).exposes("127.0.0.1"));
  CHECK_FALSE(tcp_network({.insecure = true}).exposes("::1"));
  CHECK(tcp_network({.insecure = true}).exposes("10.1.2.3"));
  CHECK_FALSE(tcp_network(keys.of("worker")).exposes("10.1.2.3"));
}
