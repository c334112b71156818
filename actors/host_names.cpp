#include "actors/host_names.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>

namespace troupe::actors {
namespace {

constexpr size_t max_hosts = 4096;
constexpr std::string_view spaces = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(spaces);
  return first == std::string_view::npos ? std::string_view{}
                                         : text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

[[noreturn]] void refuse_host(std::string_view entry, std::string_view why) {
  fail(errc::invalid_argument, "host '{}': {}; write [NAME=]HOST:PORT, an IPv6 address in brackets", entry, why);
}

uint16_t parse_port(std::string_view text, std::string_view entry, int least) {
  int port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc() || end != text.data() + text.size() || port < least || port > UINT16_MAX)
    refuse_host(entry, fmt::format("the port must be {} to {}", least, UINT16_MAX));
  return static_cast<uint16_t>(port);
}

/// Splits "HOST:PORT".
host_address parse_address(std::string_view text, std::string_view entry, int least_port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || (text.ends_with(']') && text.starts_with('[')))
    refuse_host(entry, "it has no port");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    refuse_host(entry, "it has more than one ':'");
  if (host.empty() || host.find_first_of("[]/@=,# \t") != std::string_view::npos)
    refuse_host(entry, "that is not a name or address of a host");
  return {.host = std::string(host), .port = parse_port(text.substr(colon + 1), entry, least_port)};
}

host_address parse_entry(std::string_view entry) {
  const size_t equals = entry.find('=');
  if (equals == std::string_view::npos)
    return parse_address(entry, entry, 1);
  host_address one = parse_address(entry.substr(equals + 1), entry, 1);
  one.name = entry.substr(0, equals);
  if (one.name.empty() || one.name.find_first_of("/,*@#[] \t") != std::string::npos)
    refuse_host(entry, "a name may not be empty or have one of / , * @ # [ ] or spaces");
  return one;
}

void add_entries(std::string_view list, std::vector<std::string>& all);

void add_file(const std::string& path, std::vector<std::string>& all) {
  std::ifstream file(path);
  if (!file)
    fail(errc::io, "cannot read the list of hosts '{}'", path);
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = trimmed(std::string_view(line).substr(0, line.find('#')));
    if (text.starts_with('@'))
      refuse_host(text, "a list of hosts may not name another");
    if (!text.empty())
      add_entries(text, all);
  }
}

void add_entries(std::string_view list, std::vector<std::string>& all) {
  for (size_t start = 0; start <= list.size();) {
    const size_t comma = std::min(list.find(',', start), list.size());
    const std::string_view entry = trimmed(list.substr(start, comma - start));
    start = comma + 1;
    if (entry.starts_with('@'))
      add_file(std::string(entry.substr(1)), all);
    else
      all.emplace_back(entry);
  }
}

/// Names those without a name; throws if two share one, or an address.
void name_hosts(std::vector<host_address>& hosts, const std::vector<std::string>& entries) {
  const auto endpoint = [](const host_address& h) { return endpoint_text(h.host, h.port); };
  std::multiset<std::string> unnamed;
  for (const host_address& h : hosts)
    if (h.name.empty())
      unnamed.insert(h.host);
  std::set<std::string> names, endpoints;
  for (size_t i = 0; i < hosts.size(); ++i) {
    host_address& h = hosts[i];
    if (h.name.empty())
      h.name = unnamed.count(h.host) > 1 ? endpoint(h) : h.host;
    if (!endpoints.insert(endpoint(h)).second)
      refuse_host(entries[i], "another entry has this address");
    if (!names.insert(h.name).second)
      refuse_host(entries[i], fmt::format("another host is called '{}'", h.name));
  }
}

} // namespace

std::vector<host_address> parse_hosts(const std::vector<std::string>& entries) {
  std::vector<std::string> all;
  for (const std::string& list : entries)
    add_entries(list, all);
  if (all.size() > max_hosts)
    fail(errc::invalid_argument, "{} hosts are too many: at most {}", all.size(), max_hosts);
  std::vector<host_address> hosts;
  hosts.reserve(all.size());
  for (const std::string& entry : all)
    hosts.push_back(parse_entry(entry));
  name_hosts(hosts, all);
  return hosts;
}

std::string endpoint_text(const std::string& host, uint16_t port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

host_address parse_endpoint(std::string_view text) {
  return parse_address(trimmed(text), text, 0);
}

} // namespace troupe::actors
