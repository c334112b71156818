#include "support/catch.hpp"
#include "support/certificate_folder.hpp"
#include "support/command.hpp"
#include "support/thrown.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

std::string content_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

bool is_private(const std::string& file) {
  using std::filesystem::perms;
  return (std::filesystem::status(file).permissions() & perms::mask) == (perms::owner_read | perms::owner_write);
}

} // namespace

TEST_CASE("certificates: one CA for all, keys for their owner alone, nothing overwritten unasked",
          "[actors][network]") {
  const certificate_folder keys({"a", "10.0.0.7", "::1"});
  for (const char* name : {"ca", "a", "10.0.0.7", "::1"})
    CHECK(is_private(keys.file(std::string(name) + ".key")));
  CHECK_NOTHROW(actors::tcp_network(keys.of("10.0.0.7")));
  const std::string ca = content_of(keys.file("ca.crt")), a = content_of(keys.file("a.crt"));

  const auto again = thrown_by([&] { actors::make_certificates({.folder = keys.path(), .names = {"b", "a"}}); });
  CHECK_THAT(again.what(), Contains("a.crt") && Contains("--force"));
  CHECK_FALSE(std::filesystem::exists(keys.file("b.crt")));
  CHECK(content_of(keys.file("a.crt")) == a);
  CHECK_FALSE(actors::make_certificates({.folder = keys.path(), .names = {"a", "b"}, .force = true}).made_ca);
  CHECK(content_of(keys.file("a.crt")) != a);
  CHECK(content_of(keys.file("ca.crt")) == ca);
  CHECK(is_private(keys.file("a.key")));
  CHECK_NOTHROW(actors::tcp_network(keys.of("a")));
  CHECK_NOTHROW(actors::tcp_network(keys.of("b")));
}

TEST_CASE("certificates: keys that others may read are refused, their folder is private", "[actors][network]") {
  using std::filesystem::perms;
  const certificate_folder keys({"a"});
  const std::filesystem::path fresh = keys.path() / "fresh" / "folder";
  actors::make_certificates({.folder = fresh, .names = {"a"}});
  CHECK((std::filesystem::status(fresh).permissions() & perms::mask) == perms::owner_all);
  for (const perms more : {perms::others_read, perms::group_write}) {
    std::filesystem::permissions(keys.file("a.key"), perms::owner_read | perms::owner_write | more);
    const error refused = thrown_by([&] { actors::tcp_network(keys.of("a")); });
    CHECK(refused.code() == errc::invalid_argument);
    CHECK_THAT(refused.what(), Contains("a.key") && Contains("chmod 600"));
  }
  std::filesystem::permissions(keys.file("ca.key"), perms::owner_read | perms::others_read);
  CHECK_THAT(thrown_by([&] { actors::make_certificates({.folder = keys.path(), .names = {"b"}}); }).what(),
             Contains("ca.key"));
}

TEST_CASE("certificates: invalid requests are errors", "[actors][network]") {
  const certificate_folder keys({"a"});
  const auto refused = [&](const std::vector<std::string>& names, int days = 90) {
    return thrown_by([&] { actors::make_certificates({.folder = keys.path(), .names = names, .days = days}); });
  };
  for (const char* wrong : {"", "ca", "../x", "a/b", ".hidden", "a,b", "a b", "a\nDNS:evil"})
    CHECK(refused({wrong}).code() == errc::invalid_argument);
  CHECK(refused({std::string(65, 'x')}).code() == errc::invalid_argument);
  CHECK(refused({}).code() == errc::invalid_argument);
  CHECK(refused({"b"}, 0).code() == errc::invalid_argument);
  CHECK(refused({"b"}, 1000000).code() == errc::invalid_argument);
  std::ofstream(keys.file("ca.key")) << "no key";
  CHECK_THAT(refused({"b"}).what(), Contains("ca.key") && Contains("remove both"));
  std::filesystem::remove(keys.file("ca.key"));
  CHECK_THAT(refused({"b"}).what(), Contains("ca.key"));
}

TEST_CASE("certificates: troupe keys makes them and says how to use them", "[actors][network]") {
  const certificate_folder keys({});
  const std::string folder = "'" + keys.file("cluster") + "'";
  const command_result made = run_command("keys " + folder + " big small --days 7", true);
  CHECK(made.status == 0);
  CHECK_THAT(made.output,
             Contains("--tls-cert") && Contains("small.key") && Contains("worker --listen") && Contains("7 days"));
  CHECK_NOTHROW(
      actors::tcp_network({keys.file("cluster/big.crt"), keys.file("cluster/big.key"), keys.file("cluster/ca.crt")}));
  const command_result again = run_command("keys " + folder + " big", true);
  CHECK(again.status == 2);
  CHECK_THAT(again.output, Contains("--force"));
  const auto json = nlohmann::json::parse(run_command("keys " + folder + " big --force --json").output);
  CHECK(json["made_ca"] == false);
  CHECK(json["members"][0]["name"] == "big");
  CHECK(run_command("keys " + folder).status == 2);
  CHECK(run_command("keys " + folder + " x --days 0").status == 2);
}
