// Each two options of `run` and `bench` together: they work, or the error names both.
#include "cli/command.hpp"
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/certificate_folder.hpp"
#include "support/command.hpp"
#include "support/places.hpp"
#include "support/run_graph.hpp"
#include "support/worker_process.hpp"
#include "troupe/tensor_file.hpp"

#include <fcntl.h>
#include <iostream>
#include <sstream>

using namespace troupe::test;

namespace {

/// Takes the text that is written to stdout and stderr while it lives.
class taken_output {
public:
  explicit taken_output(const std::filesystem::path& file) : file_(file) {
    std::cout.flush();
    std::fflush(nullptr);
    const int to = open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    for (const int end : {STDOUT_FILENO, STDERR_FILENO}) {
      kept_.push_back(dup(end));
      dup2(to, end);
    }
    close(to);
  }
  ~taken_output() {
    std::cout.flush();
    std::fflush(nullptr);
    for (const int end : {STDOUT_FILENO, STDERR_FILENO}) {
      dup2(kept_[static_cast<size_t>(end - STDOUT_FILENO)], end);
      close(kept_[static_cast<size_t>(end - STDOUT_FILENO)]);
    }
  }
  taken_output(const taken_output&) = delete;
  taken_output& operator=(const taken_output&) = delete;

  std::string text() const {
    std::fflush(nullptr);
    std::ostringstream all;
    all << std::ifstream(file_).rdbuf();
    return all.str();
  }

private:
  const std::filesystem::path file_;
  std::vector<int> kept_;
};

/// An option: the values that it takes, and the options without which it makes no sense, with their values.
struct option_use {
  std::string values; // separated by blanks; none: a flag
  std::map<std::string, std::string> with;
};

using option_uses = std::map<std::string, option_use>;

/// A decoder whose rows are independent, so that it can be cut by rows, and whose other input may grow.
onnx::ModelProto row_decoder() {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  auto& g = *m.mutable_graph();
  g.set_name("g");
  set_tensor_type(*g.add_input(), "past", {"batch", "past", "width"});
  set_tensor_type(*g.add_input(), "x", {"batch", "one", "width"});
  set_tensor_type(*g.add_input(), "mask", {"batch", "total"});
  set_tensor_type(*g.add_output(), "present", {"batch", "present", "width"});
  set_tensor_type(*g.add_output(), "seen", {"batch", "total"});
  auto* axis = add_node(g, "Concat", {"past", "x"}, {"present"}).add_attribute();
  axis->set_name("axis");
  axis->set_type(onnx::AttributeProto::INT);
  axis->set_i(1);
  add_node(g, "Relu", {"mask"}, {"seen"});
  return m;
}

/// The files that the options' values name, and a worker.
class surroundings {
public:
  surroundings() {
    folder_.write("model.onnx", row_decoder().SerializeAsString());
    troupe::write_npy(path("x.npy"), random_tensor({4, 1, 3}, 1));
    for (const char* name : {"requests/one", "requests/two"}) {
      std::filesystem::create_directories(path(name));
      int number = 0;
      for (const troupe::shape& dims : {troupe::shape{4, 2, 3}, troupe::shape{4, 1, 3}, troupe::shape{4, 3}})
        troupe::write_pb(path(name + ("/input_" + std::to_string(number++)) + ".pb"), "", random_tensor(dims, 1));
    }
    const command_result planned = run_command("plan '" + path("model.onnx") + "' --devices 'cpu*2' --json");
    REQUIRE(planned.status == 0);
    folder_.write("plan.json", planned.output);
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string worker() const { return "127.0.0.1:" + std::to_string(worker_.port()); }
  const certificate_folder& keys() const { return keys_; }

private:
  scratch_folder folder_;
  certificate_folder keys_{{"host"}};
  worker_process worker_{{"--devices", "cpu"}};
};

/// The uses of options that `run` and `bench` share.
option_uses shared_uses(const surroundings& here) {
  const std::map<std::string, std::string> keys{{"--tls-cert", here.keys().file("host.crt")},
                                                {"--tls-key", here.keys().file("host.key")},
                                                {"--tls-ca", here.keys().file("ca.crt")}};
  const std::map<std::string, std::string> strategy{{"--strategy", "data-parallel"}}, automatic{{"--strategy", "auto"}};
  const std::map<std::string, std::string> bind{{"--bind", "present=past"}};
  return {{"--input", {"x=" + here.path("x.npy"), {}}},
          {"--dim", {"past=2 batch=4", {}}},
          {"--seed", {"7", {}}},
          {"--output-slice", {"seen=1:0:", {}}}, // all of it, as the saved plan has it
          {"--devices", {"cpu", {}}},
          {"--hosts", {here.worker(), {{"--insecure", ""}}}},
          {"--tls-cert", {keys.at("--tls-cert"), keys}},
          {"--tls-key", {keys.at("--tls-key"), keys}},
          {"--tls-ca", {keys.at("--tls-ca"), keys}},
          {"--insecure", {}},
          {"--memory", {"cpu=1GiB", {}}},
          {"--kernels", {"now", {}}},
          {"--threads", {"1", {}}},
          {"--record", {here.path("recordings"), {}}},
          {"--record-memory", {"64MiB", {{"--record", here.path("recordings")}}}},
          {"--policy", {"round-robin", {}}},
          {"--split-along", {"1", {{"--policy", "split"}}}},
          {"--policy-plugin", {test_plugins() + "/my_policy.so", {}}},
          {"--pin", {"*=cpu", {}}},
          {"--load-plan", {here.path("plan.json"), {}}},
          {"--precision", {"auto", {}}},
          {"--no-fuse", {}},
          {"--json", {}},
          {"--quiet", {}},
          {"--strategy", {"data-parallel", {}}},
          {"--strategy-plugin", {test_plugins() + "/my_strategy.so", {}}},
          {"--goal", {"throughput", automatic}},
          {"--max-devices", {"1", automatic}},
          {"--max-memory", {"1GiB", automatic}},
          {"--max-latency", {"10000", automatic}},
          {"--micro-batch", {"1", strategy}},
          {"--depth", {"2", strategy}},
          {"--schedule", {"fill-drain", strategy}},
          {"--shares", {"equal", strategy}},
          {"--max-batch", {"4", {}}},
          {"--max-delay", {"1", {}}},
          {"--bind", {"present=past", {}}},
          {"--grow", {"total=1", bind}},
          {"--trace", {here.path("trace.json"), {}}}};
}

option_uses uses_of_run(const surroundings& here) {
  option_uses all = shared_uses(here);
  const std::map<std::string, std::string> bind = all.at("--grow").with, stream{{"--stream", here.path("requests")}};
  all.insert({{"--output", {here.path("outputs"), {}}},
              {"--timeout", {"60", {}}},
              {"--steps", {"2", bind}},
              {"--checkpoint", {"1", bind}},
              {"--stream", {here.path("requests"), {}}},
              {"--monitor", {"", stream}},
              {"--metrics", {here.path("metrics"), stream}}});
  return all;
}

option_uses uses_of_bench(const surroundings& here) {
  option_uses all = shared_uses(here);
  all.insert({{"--runs", {"1", {}}},
              {"--warmup", {"0", {}}},
              {"--warmup-seconds", {"0", {}}},
              {"--in-flight", {"2", {}}},
              {"--allocated", {}},
              {"--monitor", {}},
              {"--metrics", {here.path("metrics"), {}}}});
  return all;
}

/// Calls a subcommand; returns its error, empty if it worked.
std::string error_of_call(void (*add)(CLI::App&), std::vector<std::string> words, const surroundings& here) {
  CLI::App app;
  add(app);
  std::reverse(words.begin(), words.end());
  const taken_output said(here.path("said"));
  try {
    app.parse(std::move(words));
    return {};
  } catch (const CLI::RuntimeError&) {
    return "failed: " + said.text();
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// The words of a call with two options, and with what these need; `always`: unless they say otherwise.
std::vector<std::string> words_of(const std::string& command, const std::string& model,
                                  std::map<std::string, std::string> always, const option_uses& uses,
                                  const std::vector<std::string>& options) {
  for (const std::string& option : options)
    for (const auto& [name, values] : uses.at(option).with)
      always[name] = values;
  for (const std::string& option : options)
    always[option] = uses.at(option).values;
  std::vector<std::string> words{command, model};
  for (const auto& [name, values] : always) {
    std::istringstream each(values);
    std::string value;
    if (values.empty())
      words.push_back(name);
    while (each >> value)
      words.insert(words.end(), {name, value});
  }
  return words;
}

/// Returns the options that an error names, by name or by value, among an option and those that are there only for it.
std::vector<std::string> named_for(const std::string& error, const std::string& option, const option_uses& uses) {
  std::vector<std::string> named;
  const auto look_for = [&](const std::string& name, const std::string& values) {
    if (error.find(name) != std::string::npos ||
        (!values.empty() && error.find("'" + values + "'") != std::string::npos))
      named.push_back(name);
  };
  look_for(option, uses.at(option).values);
  for (const auto& [name, values] : uses.at(option).with)
    look_for(name, values);
  return named;
}

bool names_both(const std::string& error, const std::string& a, const std::string& b, const option_uses& uses) {
  for (const std::string& one : named_for(error, a, uses))
    for (const std::string& other : named_for(error, b, uses))
      if (one != other)
        return true;
  return false;
}

/// Returns the pairs that neither work nor are refused by name, and how they end.
std::string unclear_pairs(const std::string& command, void (*add)(CLI::App&), const option_uses& uses,
                          const std::map<std::string, std::string>& always, const surroundings& here) {
  std::string unclear;
  for (auto a = uses.begin(); a != uses.end(); ++a)
    for (auto b = uses.begin(); b != a; ++b) {
      const std::string error =
          error_of_call(add, words_of(command, here.path("model.onnx"), always, uses, {a->first, b->first}), here);
      if (!error.empty() && !names_both(error, a->first, b->first, uses))
        unclear += a->first + " " + b->first + ": " + error + '\n';
    }
  return unclear;
}

/// Returns the options of a subcommand that are not in the table.
std::string forgotten(void (*add)(CLI::App&), const std::string& command, const option_uses& uses) {
  CLI::App app;
  add(app);
  std::string missing;
  for (const CLI::Option* option : app.get_subcommand(command)->get_options())
    if (option->nonpositional() && !uses.contains(option->get_name()) && option->get_name() != "--help")
      missing += option->get_name() + ' ';
  return missing;
}

const std::map<std::string, std::string> sizes{{"--devices", "cpu*2"}, {"--dim", "past=2 batch=4"}};

} // namespace

TEST_CASE("each two options of run work together or are refused by name", "[cli][pairs][slow]") {
  const surroundings here;
  const option_uses uses = uses_of_run(here);
  CHECK(forgotten(troupe::cli::add_run, "run", uses).empty());
  CHECK(unclear_pairs("run", troupe::cli::add_run, uses, sizes, here) == "");
}

TEST_CASE("each two options of bench work together or are refused by name", "[cli][pairs][slow]") {
  const surroundings here;
  const option_uses uses = uses_of_bench(here);
  auto always = sizes;
  always.insert({{"--runs", "1"}, {"--warmup", "0"}, {"--warmup-seconds", "0"}});
  CHECK(forgotten(troupe::cli::add_bench, "bench", uses).empty());
  CHECK(unclear_pairs("bench", troupe::cli::add_bench, uses, always, here) == "");
}
