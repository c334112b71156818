#include "support/honest_client.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

engine_options options_for(uint16_t port, const host_credentials& who) {
  return {.devices = {"far/cpu"}, .hosts = {fmt::format("far=127.0.0.1:{}", port)}, .credentials = who};
}

graph model() {
  return chain(8, {16, 32}); // its values are in the messages
}

tensor input() {
  tensor x(dtype::float32, {16, 32});
  for (int64_t i = 0; i < x.size(); ++i)
    x.mutable_data<float>()[i] = 0.01f * static_cast<float>(i) - 2;
  return x;
}

std::vector<float> run_on(const session& s, const tensor& x) {
  const run_result r = s.run({{"x", x}});
  const auto values = r.outputs.begin()->second.values<float>();
  return {values.begin(), values.end()};
}

} // namespace

honest_client::honest_client(uint16_t port, const host_credentials& who)
    : engine_(options_for(port, who)), x_(input()), session_(engine_.load(model())) {
  engine here({.devices = {"cpu"}});
  expected_ = run_on(here.load(model()), x_);
  thread_ = std::thread([this] { work(); });
}

void honest_client::begin_phase(const std::string& name) {
  const std::lock_guard lock(mutex_);
  phases_.push_back({.name = name});
}

void honest_client::stop() {
  over_ = true;
  if (thread_.joinable())
    thread_.join();
}

/// Returns what is wrong; empty if nothing is.
std::string honest_client::run() {
  try {
    return run_on(session_, x_) == expected_ ? "" : "a wrong result";
  } catch (const error& e) {
    return e.what();
  }
}

void honest_client::work() {
  for (; !over_; std::this_thread::sleep_for(1ms)) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string wrong = run();
    const std::lock_guard lock(mutex_);
    if (phases_.empty())
      continue;
    phases_.back().ms.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    if (wrong.empty())
      continue;
    ++phases_.back().wrong;
    if (problem_.empty())
      problem_ = fmt::format("{}: {}", phases_.back().name, wrong);
  }
}

void honest_client::visit(uint16_t port, const host_credentials& who) {
  engine e(options_for(port, who));
  const session s = e.load(model());
  for (int i = 0; i < 3; ++i)
    run_on(s, input());
}

} // namespace troupe::test
