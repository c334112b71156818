#include "actors/host_names.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace troupe;
using namespace troupe::actors;
using Catch::Contains;

namespace {

std::string text_of_hosts(const std::vector<std::string>& entries) {
  std::string text;
  for (const host_address& h : parse_hosts(entries))
    text += h.name + "=" + h.host + "|" + std::to_string(h.port) + " ";
  return text;
}

} // namespace

TEST_CASE("host names: a name, else the host, with its port if it is shared", "[actors]") {
  CHECK(text_of_hosts({"gpu-box:4242"}) == "gpu-box=gpu-box|4242 ");
  CHECK(text_of_hosts({"a:1,b:2", "big=10.0.0.7:3"}) == "a=a|1 b=b|2 big=10.0.0.7|3 ");
  CHECK(text_of_hosts({"a:1, a:2,x=a:3"}) == "a:1=a|1 a:2=a|2 x=a|3 ");
  CHECK(text_of_hosts({"[fe80::1]:4242,[::1]:1,[::1]:2"}) == "fe80::1=fe80::1|4242 [::1]:1=::1|1 [::1]:2=::1|2 ");
  CHECK(text_of_hosts({}).empty());
}

TEST_CASE("host names: a file has one a line, with comments", "[actors]") {
  const auto file = std::filesystem::temp_directory_path() / ("troupe-hosts-" + std::to_string(getpid()));
  std::ofstream(file) << "# the cluster\n\n  big = x:1\n";
  CHECK_THROWS_AS(parse_hosts({"@" + file.string()}), error); // no spaces in a name
  std::ofstream(file) << "# the cluster\n\n  big=x:1 # the big one\r\ny:2\n";
  CHECK(text_of_hosts({"@" + file.string() + ",z:3"}) == "big=x|1 y=y|2 z=z|3 ");
  std::ofstream(file) << "@" << file.string() << "\n";
  CHECK_THAT(test::thrown_by([&] { parse_hosts({"@" + file.string()}); }).what(), Contains("may not name another"));
  std::filesystem::remove(file);
  CHECK(test::thrown_by([&] { parse_hosts({"@" + file.string()}); }).code() == errc::io);
}

TEST_CASE("host names: wrong entries are named", "[actors]") {
  for (const char* wrong : {"", "a", "a:", "a:0", "a:65536", "a:x", "a:1x", ":1", "[::1]", "::1:5", "=a:1", "n/m=a:1",
                            "a:1,", "[]:1", "x=y=a:1", "a b:1"}) {
    INFO(wrong);
    CHECK(test::thrown_by([&] { parse_hosts({wrong}); }).code() == errc::invalid_argument);
  }
  CHECK_THAT(test::thrown_by([] { parse_hosts({"a:1,b:x"}); }).what(), Contains("'b:x'") && Contains("1 to 65535"));
  CHECK_THAT(test::thrown_by([] { parse_hosts({"a:1,x=a:1"}); }).what(), Contains("has this address"));
  CHECK_THAT(test::thrown_by([] { parse_hosts({"x=a:1,x=b:1"}); }).what(), Contains("called 'x'"));
  CHECK(parse_endpoint("0.0.0.0:0").port == 0);
  CHECK(parse_endpoint("[::]:4242").host == "::");
  CHECK_THROWS_AS(parse_endpoint("4242"), error);
}
