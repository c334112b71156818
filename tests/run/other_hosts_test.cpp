// Plans that use devices of other hosts: which values come to the session's process, and which go from host to host.
#include "run/session_machine.hpp"
#include "run/shared_ledger.hpp"
#include "support/catch.hpp"
#include "support/far_values.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct far_value final : away_value {
  using away_value::away_value;
};

/// A session on made-up devices that answer at once and leave values where they are told to.
class wide_session {
public:
  wide_session(graph model, std::vector<device_info> devices, const session_options& options)
      : devices_(std::move(devices)) {
    ledger_accounts accounts;
    for (const device_info& d : devices_)
      accounts.push_back(account_of(d));
    auto plans = std::make_shared<session_plans>(make_model(std::move(model), options, 0), devices_);
    machine_ =
        std::make_unique<session_machine>(devices_, std::move(accounts), std::move(plans), completion_mode::device);
  }

  run_answer run(named_tensors inputs, run_options options = {}) {
    seen.clear();
    machine_->start_run(std::make_shared<run_request>(std::move(inputs), std::move(options)));
    std::optional<run_answer> answer;
    for (auto commands = take(); !commands.empty(); commands = take())
      for (command& c : commands)
        if (auto* order = std::get_if<device_order>(&c))
          carry_out(*order);
        else if (auto* job = std::get_if<plan_wanted>(&c))
          machine_->on(planned{job->job, capture(job->make)});
        else if (auto* ended = std::get_if<run_answer>(&c))
          answer = std::move(*ended);
    REQUIRE(answer);
    CHECK(machine_->idle());
    return std::move(*answer);
  }

  void lose(size_t device) { machine_->lose_device(device, "the test took it"); }
  void join(const device_info& device) {
    devices_.push_back(device);
    machine_->add_device(device, account_of(device));
  }

  /// "far/a: stays away" for each value that was made, in that order.
  std::vector<std::string> seen;

private:
  static std::shared_ptr<ledger_account> account_of(const device_info& device) {
    return std::make_shared<shared_ledger>(device.memory_bytes)->open([] {});
  }

  std::vector<command> take() {
    std::vector<command> commands;
    machine_->take_commands(commands);
    return commands;
  }

  void carry_out(device_order& order) {
    if (const auto* install = std::get_if<install_plan>(&order.what)) {
      bound_[install->bound->id] = install->bound;
      machine_->on(order.device, {install->bound->id, install->self, {}});
    } else if (auto* chunks = std::get_if<run_chunks>(&order.what)) {
      for (const chunk_work& work : chunks->works)
        run_chunk(devices_[order.device], work);
    }
  }

  void run_chunk(const device_info& device, const chunk_work& work) {
    for (const value_ref& given : work.uploads)
      CHECK(given->reaches(device));
    const bound_plan& bound = *bound_.at(work.bound_plan);
    const std::vector<value_id>& made = bound.source->chunks[work.chunk].downloads;
    for (size_t i = 0; i < made.size(); ++i)
      fill(device, *work.downloads[i], bound.source->program->values[made[i]].type, bound.dims[made[i]]);
    chunk_ended ended{work.execution, work.chunk, {}};
    machine_->on(ended);
  }

  void fill(const device_info& device, moved_value& value, dtype type, const shape& dims) {
    const bool away = is_remote(device) && value.goes_to_host() && !value.comes_here();
    seen.push_back(fmt::format("{}: {}{}", device.name,
                               away                   ? "stays away"
                               : value.goes_to_host() ? "comes here"
                                                      : "",
                               value.stays() ? ", kept" : ""));
    const device_tensor kept = value.stays() ? std::make_shared<const far_resident>(type, dims, device) : nullptr;
    if (away)
      value.fill_away(std::make_shared<const far_value>(type, dims, device.host), {}, kept);
    else
      value.fill(value.goes_to_host() ? zeros(type, dims) : tensor{}, kept);
  }

  std::vector<device_info> devices_;
  std::unique_ptr<session_machine> machine_;
  std::map<uint64_t, bound_plan_ptr> bound_;
};

device_info made_up(const std::string& name, const std::string& host, uint64_t incarnation = 0) {
  return {.name = name,
          .incarnation = incarnation,
          .host = host,
          .kind = device_kind::null,
          .memory_bytes = int64_t{1} << 40};
}

const std::vector<device_info> three_hosts{made_up("here", ""), made_up("far/a", "far"), made_up("far/b", "far"),
                                           made_up("near/a", "near")};

/// x → "n0" → "n1" → "n2" → "n3", each on a device.
graph named_chain() {
  graph g = chain(4);
  for (size_t i = 0; i < g.nodes.size(); ++i)
    g.nodes[i].name = fmt::format("n{}", i);
  return g;
}

session_options placed(const std::vector<std::string>& devices) {
  session_options options{.fuse = false};
  for (size_t i = 0; i < devices.size(); ++i)
    options.pins.push_back({fmt::format("n{}", i), devices[i]});
  return options;
}

const named_tensors six{{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}};

using texts = std::vector<std::string>;

} // namespace

TEST_CASE("values come to the session's process only if they are read there", "[run][C11]") {
  wide_session s(named_chain(), three_hosts, placed({"far/a", "far/b", "near/a", "here"}));
  CHECK_FALSE(s.run(six).why.failed());
  CHECK(s.seen == texts{"far/a: stays away", "far/b: stays away", "near/a: comes here", "here: comes here"});
}

TEST_CASE("outputs come to the session's process unless they are kept", "[run][C11]") {
  wide_session s(named_chain(), three_hosts, placed({"here", "far/a", "near/a", "far/b"}));
  CHECK_FALSE(s.run(six).why.failed());
  CHECK(s.seen == texts{"here: comes here", "far/a: stays away", "near/a: stays away", "far/b: comes here"});
  const std::string output = s.run(six).result.outputs.begin()->first;
  const run_answer kept = s.run(six, {.keep = {output}});
  CHECK(s.seen.back() == "far/b: , kept");
  CHECK(kept.result.kept.at(output)->device() == "far/b");
}

TEST_CASE("a value that another host and this process read comes here", "[run][C11]") {
  graph_builder b;
  const value_id shared = b.op("Relu", {b.input("x", {2, 3})}, {}, "n0");
  b.output(b.op("Sigmoid", {shared}, {}, "n1"));
  b.output(b.op("Neg", {shared}, {}, "n2"));
  wide_session s(b.g, three_hosts, placed({"far/a", "near/a", "here"}));
  CHECK_FALSE(s.run(six).why.failed());
  CHECK(s.seen.front() == "far/a: comes here");
}

TEST_CASE("a value of another host is lost with its device, whatever comes back under the name", "[run][C11]") {
  wide_session s(named_chain(), {made_up("here", ""), made_up("far/a", "far", 1)},
                 placed({"far/a", "far/a", "far/a", "far/a"}));
  const std::string output = s.run(six).result.outputs.begin()->first;
  const device_tensor old = s.run(six, {.keep = {output}}).result.kept.at(output);
  s.lose(1);
  s.join(made_up("far/a", "far", 2));
  const run_answer refused = s.run({}, {.device_inputs = {{"x", old}}});
  CHECK(refused.why.code == errc::device_lost);
  CHECK_THAT(refused.why.message, Catch::Contains("lay on device 'far/a', which is lost"));
  const device_tensor fresh = s.run(six, {.keep = {output}}).result.kept.at(output);
  CHECK(s.seen == texts{"far/a: , kept"}); // pinned there, and there again
  CHECK(fresh->incarnation() == 2);
  CHECK_FALSE(s.run({}, {.device_inputs = {{"x", fresh}}}).why.failed());
}
