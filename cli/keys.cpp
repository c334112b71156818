// troupe keys: a private CA and certificates for the hosts of a small cluster.
#include "cli/command.hpp"

#include "actors/certificates.hpp"

#include <fmt/format.h>

namespace troupe::cli {
namespace {

using actors::made_certificates;

void print_json(const made_certificates& made, const std::vector<std::string>& names) {
  nlohmann::ordered_json out{{"ca", made.ca.string()}, {"made_ca", made.made_ca}};
  out["members"] = nlohmann::json::array();
  for (size_t i = 0; i < names.size(); ++i)
    out["members"].push_back({{"name", names[i]},
                              {"certificate", made.members[i].first.string()},
                              {"key", made.members[i].second.string()}});
  write_json(out);
}

void print_text(const made_certificates& made, int days) {
  fmt::print("{}: the cluster's CA, {}\n", made.ca.string(), made.made_ca ? "new" : "as it was");
  for (const auto& [certificate, key] : made.members)
    fmt::print("{}, {}: valid for {} days\n", certificate.string(), key.string(), days);
  const auto& [first, first_key] = made.members.front();
  const auto& [last, last_key] = made.members.back();
  fmt::print(
      "\nCopy to each host its own certificate and key, and {} (never ca.key: who has it makes members). Then:\n\n"
      "  troupe worker --listen HOST:PORT --tls-cert {} --tls-key {} --tls-ca {}\n"
      "  troupe run MODEL --hosts HOST:PORT --tls-cert {} --tls-key {} --tls-ca {}\n",
      made.ca.string(), first.string(), first_key.string(), made.ca.string(), last.string(), last_key.string(),
      made.ca.string());
}

} // namespace

void add_keys(CLI::App& app) {
  auto wish = std::make_shared<actors::certificate_wish>();
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("keys", "Make a private CA and certificates for the hosts of a cluster");
  command->add_option("folder", wish->folder, "Where to: ca.crt and ca.key are made unless they are there")
      ->type_name("FOLDER")
      ->required();
  command->add_option("names", wish->names, "Hosts to make NAME.crt and NAME.key for")->type_name("NAME")->required();
  command->add_option("--days", wish->days, "Days for which the hosts' certificates are valid (default 90)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--force", wish->force, "Replace certificates and keys of hosts that are there already");
  command->add_flag("--json", *json, "Print JSON");
  command->callback([wish, json] {
    const made_certificates made = actors::make_certificates(*wish);
    *json ? print_json(made, wish->names) : print_text(made, wish->days);
  });
}

} // namespace troupe::cli
