#include "compat/onnxruntime/settings.hpp"

#include "compat/onnxruntime/status.hpp"
#include "troupe/option_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace troupe::ort {
namespace {

constexpr auto setting_keys =
    std::to_array<std::string_view>({"devices", "hosts", "insecure", "kernels", "policy", "precision", "profile",
                                     "strategy", "tls_ca", "tls_cert", "tls_key"});

constexpr option_word<bool> switches[] = {{"0", false}, {"1", true}};

/// What ONNX Runtime promises for an entry, and troupe cannot keep.
struct promise {
  std::string_view key, value;
  const char* why;
};
constexpr promise promises[] = {
    {"session.disable_cpu_ep_fallback", "1", "what a GPU cannot run, the CPU does"},
    {"session.load_model_format", "ORT", "give the .onnx file that the .ort file was made from"},
    {"session.save_model_format", "ORT", "rewritten models cannot be saved"},
    {"ep.context_enable", "1", "models are not compiled for a provider"},
};

std::string upper(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return made;
}

/// Returns what the client says of a setting, else what the environment says; empty if neither does.
std::string setting(const config_entries& entries, std::string_view key) {
  const auto found = entries.find("troupe." + std::string(key));
  if (found != entries.end())
    return found->second;
  const char* text = std::getenv(("TROUPE_" + upper(key)).c_str());
  return text ? text : "";
}

template <class T, size_t Size>
void read_word(const config_entries& entries, std::string_view key, const option_word<T> (&words)[Size], T& value) {
  const std::string text = setting(entries, key);
  if (!text.empty())
    value = value_of(words, "troupe." + std::string(key) + " (or TROUPE_" + upper(key) + ")", text);
}

/// Returns the parts of a text between commas.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (end > 0)
      all.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

/// Options with equal strings open equal devices.
std::string key_of(const engine_options& o) {
  std::string text;
  const auto add = [&text](std::string_view part) { text.append(part).append(1, '\n'); };
  for (const auto* list : {&o.devices, &o.hosts}) {
    for (const std::string& name : *list)
      add(name);
    add("");
  }
  for (const std::string* file : {&o.credentials.certificate, &o.credentials.key, &o.credentials.ca, &o.profile_file})
    add(*file);
  add(std::to_string(o.credentials.insecure));
  add(std::to_string(o.scheduler_threads));
  add(std::to_string(o.cpu_threads));
  add(std::to_string(static_cast<int>(o.kernels)));
  return text;
}

} // namespace

void check_entry(const std::string& key, const std::string& value) {
  if (key.starts_with("troupe.") &&
      std::ranges::find(setting_keys, key.substr(sizeof("troupe.") - 1)) == setting_keys.end()) {
    std::string known;
    for (const std::string_view k : setting_keys)
      known.append(known.empty() ? "troupe." : ", troupe.").append(k);
    reject("there is no configuration entry '" + key + "'; there are: " + known);
  }
  for (const promise& p : promises)
    if (key == p.key && upper(value) == p.value) {
      std::string message = "configuration entry '";
      message.append(key).append("' = '").append(value).append("': ").append(p.why);
      throw api_error(ORT_NOT_IMPLEMENTED, message);
    }
}

engine_options engine_options_of(const config_entries& entries, const thread_counts& threads) {
  engine_options o;
  if (const auto names = parts_of(setting(entries, "devices")); !names.empty())
    o.devices = names;
  o.hosts = parts_of(setting(entries, "hosts"));
  o.credentials = {.certificate = setting(entries, "tls_cert"),
                   .key = setting(entries, "tls_key"),
                   .ca = setting(entries, "tls_ca")};
  read_word(entries, "insecure", switches, o.credentials.insecure);
  read_word(entries, "kernels", kernel_words, o.kernels);
  o.profile_file = setting(entries, "profile");
  if (threads.inter_op > 0)
    o.scheduler_threads = static_cast<unsigned>(threads.inter_op);
  if (threads.intra_op > 0)
    o.cpu_threads = static_cast<unsigned>(threads.intra_op);
  return o;
}

session_options session_options_of(const config_entries& entries) {
  session_options o;
  read_word(entries, "policy", policy_words, o.policy);
  read_word(entries, "strategy", strategy_words, o.strategy);
  read_word(entries, "precision", precision_words, o.precision);
  return o;
}

std::shared_ptr<engine> shared_engine(const engine_options& options) {
  // Never destroyed: a client may open sessions while the process ends.
  static auto& mutex = *new std::mutex;
  static auto& engines = *new std::map<std::string, std::weak_ptr<engine>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<engine>& known = engines[key_of(options)];
  std::shared_ptr<engine> open = known.lock();
  if (!open) {
    open = std::make_shared<engine>(options);
    known = open;
  }
  return open;
}

} // namespace troupe::ort
