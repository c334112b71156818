#include "support/network_hosts.hpp"

#include <thread>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

TEST_CASE("network: frames of all sizes go both ways in order", "[actors][network]") {
  const certificate_folder keys({"worker", "session"});
  const bool insecure = GENERATE(false, true);
  const host_credentials plain{.insecure = true};
  echo_host host(insecure ? plain : keys.of("worker"));
  tcp_network net(insecure ? plain : keys.of("session"));
  const opened_link opened = call(net, host.port());
  CHECK(text_of(opened.welcome) == "hello me");
  inbox in(opened.link);
  const size_t sizes[] = {0, 1, 100, 16384, 65536, 1 << 20, remote::max_frame_bytes, 7};
  for (const size_t size : sizes) {
    frame f(size);
    for (size_t i = 0; i < size; i += 97)
      f[i] = static_cast<uint8_t>(i / 97 + size);
    opened.link->send(std::move(f));
  }
  for (const size_t size : sizes) {
    const frame f = in.next();
    REQUIRE(f.size() == size);
    bool equal = true;
    for (size_t i = 0; i < size; i += 97)
      equal &= f[i] == static_cast<uint8_t>(i / 97 + size);
    CHECK(equal);
  }
}

TEST_CASE("network: frames that were sent before a close arrive before the end", "[actors][network]") {
  const certificate_folder keys({"worker", "session"});
  tcp_network a(keys.of("worker")), b(keys.of("session"));
  remote::link_ptr far;
  const uint16_t port = a.listen("127.0.0.1", 0, [&](const frame&, const remote::link_ptr& link) {
    far = link;
    return frame{};
  });
  const opened_link near = call(b, port);
  inbox in(near.link);
  for (uint8_t i = 0; i < 200; ++i)
    far->send(frame(10000, i));
  far->close();
  far->send(frame(1));
  CHECK_THAT(in.end(), Contains("other side has closed"));
  REQUIRE(in.waiting() == 200);
  for (uint8_t i = 0; i < 200; ++i)
    CHECK(in.next().front() == i);
  inbox after(far);
  CHECK_THAT(after.end(), Contains("this side has closed"));
}

TEST_CASE("network: a host has several links, and refuses in its own words", "[actors][network]") {
  const certificate_folder keys({"worker", "session"});
  echo_host host(keys.of("worker"));
  tcp_network net(keys.of("session"));
  CHECK_THAT(problem_of(net, host.port(), "nobody"), Contains("nobody is not welcome"));
  const opened_link first = call(net, host.port(), "a"), second = call(net, host.port(), "b");
  inbox in_first(first.link);
  {
    inbox in_second(second.link);
    second.link->send(text_frame("2"));
    CHECK(text_of(in_second.next()) == "2");
  }
  first.link->send(text_frame("1"));
  CHECK(text_of(in_first.next()) == "1");
  first.link->send(frame(remote::max_frame_bytes + 1));
  CHECK_THAT(in_first.end(), Contains("longer than links carry"));
}

TEST_CASE("network: many call at once", "[actors][network]") {
  const certificate_folder keys({"worker", "session"});
  echo_host host(keys.of("worker"));
  tcp_network net(keys.of("session")), other(keys.of("session"));
  std::vector<std::thread> callers;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&, i] {
      const opened_link opened = call(i % 2 ? net : other, host.port());
      inbox in(opened.link);
      opened.link->send(text_frame("x"));
      answered += text_of(in.next()) == "x";
    });
  for (std::thread& t : callers)
    t.join();
  CHECK(answered == 8);
}

TEST_CASE("network: two hosts call each other at once", "[actors][network]") {
  const certificate_folder keys({"worker", "session"});
  echo_host a(keys.of("worker")), b(keys.of("session"));
  for (int i = 0; i < 5; ++i) {
    opened_link ab, ba;
    std::thread other([&] { ba = call(b.net(), a.port()); });
    ab = call(a.net(), b.port());
    other.join();
    inbox in_ab(ab.link), in_ba(ba.link);
    ab.link->send(text_frame("x"));
    ba.link->send(text_frame("y"));
    CHECK(text_of(in_ab.next()) == "x");
    CHECK(text_of(in_ba.next()) == "y");
  }
}

TEST_CASE("network: the end of a host is told at once", "[actors][network]") {
  const certificate_folder keys({"worker", "session"});
  auto host = std::make_unique<echo_host>(keys.of("worker"));
  tcp_network net(keys.of("session"));
  const opened_link opened = call(net, host->port());
  inbox in(opened.link);
  opened.link->send(text_frame("x"));
  in.next();
  const auto start = std::chrono::steady_clock::now();
  host.reset();
  CHECK_THAT(in.end(), Contains("closed the link"));
  CHECK(seconds_since(start) < 1);
}
