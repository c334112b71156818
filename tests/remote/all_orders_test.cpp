// A worker in every order of what sessions and devices may do in a small world: sessions install a plan, run it, stop,
// retire and leave as they like, links are lost, devices fail, the worker's owner drains it or ends it. A world has
// been in a place before if the same has happened, in whatever order, and the same is outstanding.
#include "support/all_orders.hpp"
#include "support/graph_builder.hpp"
#include "support/small_session.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// How often something may happen.
struct troubles {
  size_t losses = 0, failures = 0, stops = 0, owners = 0; // an owner drains the worker, or ends it
};

struct scope {
  session_scope session;
  size_t sessions = 1;
  troubles most;
};

/// A worker and its sessions, from the beginning.
class small_cluster {
public:
  explicit small_cluster(const scope& s) : scope_(s), left_(s.most), worker_(s.session.devices, s.session.memory) {
    for (size_t i = 0; i < s.sessions; ++i)
      sessions_.push_back(std::make_unique<small_session>(scope_.session, worker_, i));
    sessions_[0]->take("opens", 0, 0);
  }

  std::vector<std::string> choices() const {
    std::vector<std::string> all;
    for (size_t i = 0; i < sessions_.size(); ++i) {
      const small_session& s = *sessions_[i];
      s.add_choices(all, worker_.has_ended());
      for (size_t e = 0; left_.stops > 0 && s.is_open() && e < scope_.session.executions; ++e)
        if (s.can_stop(e))
          all.push_back(fmt::format("s{} stops {}", i, e));
      if (left_.losses > 0 && s.is_open())
        all.push_back(fmt::format("s{} is lost", i));
    }
    for (size_t d = 0; d < scope_.session.devices; ++d)
      if (const auto orders = worker_.orders(d); !orders.empty()) {
        all.push_back(fmt::format("d{} answers {}", d, orders.front()));
        if (left_.failures > 0 && worker_.can_fail(d))
          all.push_back(fmt::format("d{} fails {}", d, orders.front()));
      }
    if (left_.owners > 0 && !has_drained_)
      all.emplace_back("the owner drains it");
    if (left_.owners > 0 && !worker_.has_ended() && worker_.may_end_service())
      all.emplace_back("the owner ends it");
    return all;
  }

  void take(const std::string& choice) {
    happened_.insert(choice);
    std::istringstream words(choice);
    std::string who, what;
    size_t a = 0, b = 0;
    words >> who >> what >> a >> b;
    const auto number = static_cast<size_t>(who[1] - '0');
    if (choice == "the owner drains it") {
      --left_.owners;
      has_drained_ = true;
      worker_.service().drain(std::chrono::milliseconds(0));
    } else if (choice == "the owner ends it") {
      --left_.owners;
      worker_.end_service();
    } else if (who[0] == 'd') {
      left_.failures -= what == "fails" ? 1 : 0;
      has_failed_ |= what == "fails";
      worker_.answer(number, what == "fails");
    } else {
      left_.losses -= what == "is" ? 1 : 0;
      left_.stops -= what == "stops" ? 1 : 0;
      sessions_[number]->take(what, a, b);
    }
    for (const auto& s : sessions_)
      s->hear(has_drained_, has_failed_);
  }

  std::string place() const {
    std::string text;
    for (const std::string& h : happened_)
      text += h + ";";
    for (const auto& s : sessions_)
      text += s->place();
    for (size_t d = 0; d < scope_.session.devices; ++d)
      text += fmt::format("|{}|{}", fmt::join(worker_.orders(d), ","), worker_.held_by(d));
    return text;
  }

  void check() {
    for (const auto& s : sessions_)
      s->check();
    CHECK(worker_.problems().empty());
    for (const std::string& p : worker_.problems())
      FAIL_CHECK(p);
    if (!worker_.has_ended()) {
      CHECK(worker_.service().sessions() == 0);
      CHECK(worker_.service().drain(std::chrono::milliseconds(0)));
    }
    CHECK(worker_.await_nothing_left());
    for (size_t d = 0; d < scope_.session.devices; ++d)
      CHECK((worker_.held_by(d) == "0 plans, 0 executions" || worker_.has_ended()));
  }

private:
  const scope& scope_;
  troubles left_;
  small_worker worker_;
  std::vector<std::unique_ptr<small_session>> sessions_;
  std::multiset<std::string> happened_;
  bool has_drained_ = false, has_failed_ = false;
};

/// Searches all worlds of a scope with that number of troubles, of any kinds.
void search_all(const std::string& name, scope s, size_t most) {
  orders_seen seen;
  for (size_t losses = 0; losses <= std::min<size_t>(most, 1); ++losses)
    for (size_t failures = 0; losses + failures <= most; ++failures)
      for (size_t stops = 0; losses + failures + stops <= most; ++stops) {
        s.most = {losses, failures, stops, most - losses - failures - stops};
        if (s.most.owners > 1)
          continue;
        INFO(fmt::format("{}; {} losses, {} failures, {} stops, {} of the owner", name, losses, failures, stops,
                         s.most.owners));
        seen.add(search_all_orders<small_cluster>(s));
      }
  WARN(fmt::format("{}, {} sessions, {} troubles: {}", name, s.sessions, most, seen.text()));
}

/// Binds a graph whose nodes are pinned to devices, "TYPE@DEVICE".
bound_plan_ptr place(graph_builder& g, value_id output, const std::vector<std::string>& pins, size_t devices) {
  std::vector<device_info> all;
  for (size_t d = 0; d < devices; ++d)
    all.push_back(small_worker::info(d, plenty));
  plan_options how;
  for (const std::string& pin : pins)
    how.pins.push_back({"*" + pin.substr(0, pin.find('@')) + "*", pin.substr(pin.find('@') + 1)});
  return bind_segment(make_plan(g.program({output}), all, how), 0, {});
}

/// A chunk on d0, one on d1, another one on d0.
bound_plan_ptr there_and_back(int64_t size = 4) {
  graph_builder g;
  const value_id x = g.input("x", {size});
  const value_id y = g.op("Add", {x, g.op("Sigmoid", {g.op("Relu", {x})})});
  return place(g, y, {"Relu@d0", "Sigmoid@d1", "Add@d0"}, 2);
}

/// Two chunks on d0 that may be there at a time, one on d1.
bound_plan_ptr side_by_side() {
  graph_builder g;
  const value_id x = g.input("x", {4});
  const value_id y = g.op("Add", {g.op("Relu", {x}), g.op("Neg", {x})});
  return place(g, y, {"Relu@d0", "Neg@d1", "Add@d0"}, 2);
}

/// One chunk with a weight that is sent by itself.
bound_plan_ptr with_weight() {
  graph_builder g;
  const value_id x = g.input("x", {1, 130});
  tensor w(dtype::float32, {130, 130});
  std::fill_n(w.mutable_data<float>(), w.size(), 1.f);
  return place(g, g.op("MatMul", {x, g.constant("w", w)}), {}, 1);
}

} // namespace

TEST_CASE("in every order of what a session does, a worker answers each order once, and keeps nothing", "[remote]") {
  for (const size_t most : {1, 2}) {
    search_all("there and home and back", {{.bound = there_and_back()}}, most);
    search_all("two devices", {{.bound = there_and_back(), .devices = 2}}, most);
    search_all("side by side", {{.bound = side_by_side(), .devices = 2}}, most);
    search_all("a weight that comes by itself", {{.bound = with_weight()}}, most);
  }
  search_all("two devices, values that stay there", {{.bound = there_and_back(), .devices = 2, .keeps = true}}, 1);
  search_all("long values", {{.bound = there_and_back(16'400)}}, 1);
  search_all("two executions", {{.bound = there_and_back(), .executions = 2}}, 1);
}

TEST_CASE("in every order of what two sessions do, a worker answers each order once, and keeps nothing", "[remote]") {
  const bound_plan_ptr bound = with_weight();
  search_all("one chunk with a weight", {{.bound = bound}, 2}, 1);
  search_all("room for one", {{.bound = bound, .memory = bytes_needed(*bound->layout, 0)}, 2}, 1);
}

TEST_CASE("in every order of two sessions with more trouble, a worker keeps nothing", "[remote][slow]") {
  search_all("two devices, values that stay there", {{.bound = there_and_back(), .devices = 2, .keeps = true}}, 2);
  search_all("one chunk with a weight", {{.bound = with_weight()}, 2}, 2);
}
