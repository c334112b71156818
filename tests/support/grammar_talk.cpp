#include "support/grammar_talk.hpp"

#include "cpu/cpu_device.hpp"
#include "remote/values.hpp"
#include "support/graph_builder.hpp"

#include <algorithm>
#include <future>

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using fault = fault_source::kind;

/// The purpose of a step of a conversation; steps on which others rely come first.
enum class purpose : uint8_t { install, first, last, put, fetch, stats, release, end, retire, forget };

struct step {
  purpose what = purpose::stats;
  uint64_t execution = 0;
  remote::message said;
};
using talk = std::vector<step>;

const tensor& put_tensor() {
  static const tensor t = [] {
    tensor made(dtype::float32, {4});
    std::fill_n(made.mutable_data<float>(), made.size(), 5.f);
    return made;
  }();
  return t;
}

/// Two executions, one between the chunks of the other.
talk valid_talk(spoken_session& s, const round_trip& m, uint32_t device, bool keeps) {
  talk all;
  all.push_back({purpose::install, 0, s.install_order(m.bound, 0, device)});
  const auto run = [&](chunk_id chunk, uint64_t execution) {
    remote::run_chunk order = s.chunk_order(m.bound, chunk, execution);
    order.device = device;
    order.slot = static_cast<uint32_t>(execution - 1);
    return order;
  };
  std::vector<hash128> kept;
  for (uint64_t e = 1; e <= 2; ++e) {
    remote::run_chunk order = run(m.first, e);
    order.downloads[0].send = !keeps;
    kept.push_back(order.downloads[0].key);
    all.push_back({purpose::first, e, order});
  }
  for (uint64_t e = 1; e <= 2; ++e) {
    remote::run_chunk order = run(m.last, e);
    if (keeps) // the first chunk's output is as long as its input
      order.uploads[0] = {.from = remote::origin::kept,
                          .type = dtype::float32,
                          .dims = order.uploads[0].dims,
                          .bytes = {},
                          .key = kept[e - 1],
                          .peer = {}};
    all.push_back({purpose::last, e, order});
  }
  const hash128 put = remote::new_key();
  remote::sent_value value = remote::describe(put_tensor(), remote::new_key(), s.offers().offers());
  all.push_back({purpose::put, 0, remote::put_value{1, device, put, std::move(value)}});
  all.push_back({purpose::fetch, 0, remote::fetch_kept{2, device, put}});
  all.push_back({purpose::stats, 0, remote::ask_stats{3, device}});
  kept.push_back(put);
  all.push_back({purpose::release, 0, remote::release{kept}});
  all.push_back({purpose::end, 1, remote::end_chunks{device, 1}});
  all.push_back({purpose::retire, 0, remote::retire{device, m.bound->id}});
  all.push_back({purpose::forget, 0, remote::forget_plan{std::get<remote::install>(all[0].said).plan}});
  return all;
}

std::string_view to_string(purpose p) {
  constexpr std::string_view names[] = {"install", "first",   "last", "put",    "fetch",
                                        "stats",   "release", "end",  "retire", "forget"};
  return names[static_cast<size_t>(p)];
}

bool is_run(purpose p) {
  return p == purpose::first || p == purpose::last;
}

/// Whether each step comes once, after those that it counts on.
bool is_in_order(const talk& t) {
  bool is_installed = false, is_put = false;
  std::map<uint64_t, int> chunks; // of an execution that have run
  for (const step& s : t) {
    if ((is_run(s.what) && (!is_installed || chunks[s.execution]++ != (s.what == purpose::last))) ||
        (s.what == purpose::install && is_installed) || (s.what == purpose::fetch && !is_put))
      return false;
    if (s.what == purpose::install || s.what == purpose::retire)
      is_installed = s.what == purpose::install;
    if (s.what == purpose::put || s.what == purpose::release)
      is_put = s.what == purpose::put;
  }
  return true;
}

/// A change to a message; whether a worker must end the link because of it.
struct change {
  std::string name;
  bool must_end = true;
  std::function<void(remote::message&)> make;
};

template <class M>
change with(std::string name, bool must_end, void (*make)(M&)) {
  return {std::move(name), must_end, [make](remote::message& m) { make(std::get<M>(m)); }};
}

std::vector<change> numbers_of(const step& s, const round_trip& m) {
  using remote::run_chunk;
  std::vector<change> all;
  if (s.what == purpose::install)
    all = {with<remote::install>("device", true, [](auto& o) { o.device = 7; }),
           with<remote::install>("bound plan", true, [](auto& o) { ++o.bound_plan; }),
           with<remote::install>("self", true, [](auto& o) { o.self = 9; }), // it is not installed, then
           with<remote::install>("plan", false, [](auto& o) { o.plan += 100; })};
  if (is_run(s.what)) {
    all = {with<run_chunk>("device", true, [](auto& o) { o.device = 7; }),
           with<run_chunk>("another device", true, [](auto& o) { o.device = 1 - o.device; }),
           with<run_chunk>("bound plan", true, [](auto& o) { ++o.bound_plan; }),
           with<run_chunk>("chunk", true, [](auto& o) { o.chunk = 99; }),
           with<run_chunk>("execution", true, [](auto& o) { o.execution = 77; }),
           with<run_chunk>("slot", true, [](auto& o) { o.slot = 1 - o.slot; }),
           with<run_chunk>("high slot", true, [](auto& o) { o.slot = 5000; })};
    all.push_back(
        {"chunk of another device", true, [c = m.elsewhere](remote::message& o) { std::get<run_chunk>(o).chunk = c; }});
  }
  if (s.what == purpose::put)
    all = {with<remote::put_value>("device", true, [](auto& o) { o.device = 7; }),
           with<remote::put_value>("key", true, [](auto& o) { o.key = remote::new_key(); })};
  if (s.what == purpose::fetch)
    all = {with<remote::fetch_kept>("device", true, [](auto& o) { o.device = 7; }),
           with<remote::fetch_kept>("another device", true, [](auto& o) { o.device = 1 - o.device; }),
           with<remote::fetch_kept>("key", true, [](auto& o) { o.key = remote::new_key(); })};
  if (s.what == purpose::stats)
    all = {with<remote::ask_stats>("device", true, [](auto& o) { o.device = 7; })};
  if (s.what == purpose::end)
    all = {with<remote::end_chunks>("device", true, [](auto& o) { o.device = 7; }),
           with<remote::end_chunks>("execution", false, [](auto& o) { o.execution = 99; })};
  if (s.what == purpose::retire)
    all = {with<remote::retire>("bound plan", false, [](auto& o) { ++o.bound_plan; })};
  return all;
}

std::vector<change> owners_of(const step& s) {
  constexpr uint64_t other_session = uint64_t{1} << 40;
  std::vector<change> all = {{"a weight that nobody asked for", true,
                              [](remote::message& m) {
                                m = remote::weight_source{{1, 2}, "", {}};
                              }},
                             {"a proof that nobody asked for", true,
                              [](remote::message& m) {
                                m = remote::weight_proofs{{1, 2}, {}};
                              }},
                             {"a worker's message", true, [](remote::message& m) { m = remote::was_put{}; }},
                             {"a second hello", true, [](remote::message& m) { m = remote::hello{}; }}};
  if (is_run(s.what))
    all.push_back(
        with<remote::run_chunk>("execution of another session", true, [](auto& o) { o.execution += other_session; }));
  if (s.what == purpose::end)
    all.push_back(
        with<remote::end_chunks>("execution of another session", false, [](auto& o) { o.execution += other_session; }));
  if (s.what == purpose::last)
    all.push_back(with<remote::run_chunk>("a kept value that is none", true, [](auto& o) {
      o.uploads[0].from = remote::origin::kept;
      o.uploads[0].key = remote::new_key();
    }));
  return all;
}

std::vector<change> sizes_of(const step& s) {
  std::vector<change> all = {{"an answer that is too long", true, [](remote::message& m) {
                                m = remote::ping{1, UINT32_MAX, {}};
                              }}};
  if (s.what == purpose::install)
    all = {with<remote::install>("bytes of the plan", true, [](auto& o) { o.encoded.size = -1; }),
           with<remote::install>("a long plan", true, [](auto& o) { o.encoded.size += 8; }), // not installed, then
           with<remote::install>("binding", true, [](auto& o) { o.binding.pop_back(); })};
  if (is_run(s.what))
    all = {with<remote::run_chunk>("an upload less", true, [](auto& o) { o.uploads.pop_back(); }),
           with<remote::run_chunk>("an upload more", true, [](auto& o) { o.uploads.push_back(o.uploads[0]); }),
           with<remote::run_chunk>("a download less", true, [](auto& o) { o.downloads.pop_back(); }),
           with<remote::run_chunk>("a download more", true, [](auto& o) { o.downloads.push_back({}); }),
           with<remote::run_chunk>("dims", false, [](auto& o) { o.uploads[0].dims = {3}; }),
           with<remote::run_chunk>("bytes", false, [](auto& o) {
             o.uploads[0].bytes.resize(o.uploads[0].bytes.size() / 2);
             o.uploads[0].size /= 2;
           })};
  return all;
}

/// Puts one fault into a talk. Returns whether the worker must end the link.
bool spoil(talk& t, const round_trip& m, fault_source& random) {
  const size_t at = random.below(t.size());
  const std::string where(to_string(t[at].what));
  if (random.what() == fault::omission) {
    random.name("omission: " + where);
    t.erase(t.begin() + static_cast<std::ptrdiff_t>(at));
    return !is_in_order(t);
  }
  if (random.what() == fault::repetition) {
    random.name("repetition: " + where);
    t.insert(t.begin() + static_cast<std::ptrdiff_t>(at), step(t[at]));
    return !is_in_order(t);
  }
  if (random.what() == fault::order) {
    const size_t other = random.below(t.size());
    random.name(at == other ? "order: the same" : "order: " + where);
    std::swap(t[at], t[other]);
    return !is_in_order(t);
  }
  const std::vector<change> all = random.what() == fault::number  ? numbers_of(t[at], m)
                                  : random.what() == fault::owner ? owners_of(t[at])
                                  : random.what() == fault::size  ? sizes_of(t[at])
                                                                  : std::vector<change>();
  if (all.empty())
    return false;
  const change& c = all[random.below(all.size())];
  random.name(fmt::format("{}: {}: {}",
                          random.what() == fault::number  ? "number"
                          : random.what() == fault::owner ? "owner"
                                                          : "size",
                          where, c.name));
  c.make(t[at].said);
  return c.must_end;
}

/// Waits for the answer to a step. Returns whether it came and is good.
bool await_answer(spoken_session& s, purpose of) {
  switch (of) {
    case purpose::install: {
      const auto told = s.hear<remote::installed>();
      return told && !told->why.failed();
    }
    case purpose::first:
    case purpose::last: {
      const auto made = s.hear<remote::chunk_made>();
      return made && made->result.ok();
    }
    case purpose::put: {
      const auto told = s.hear<remote::was_put>();
      return told && !told->why.failed();
    }
    case purpose::fetch: {
      const auto told = s.hear<remote::fetched>();
      return told && !told->why.failed();
    }
    case purpose::stats: return s.hear<remote::stats_told>().has_value();
    default: return true;
  }
}

} // namespace

round_trip there_and_back(const device_info& far, int64_t size) {
  const device_info here = make_cpu_device("here")->info();
  graph_builder g;
  const value_id x = g.input("x", {size, size});
  const value_id a = g.op("Relu", {x});
  const value_id y = g.op("Add", {x, g.op("Sigmoid", {a})});
  plan_options how;
  how.pins = {{"*Sigmoid*", "here"}, {"*Relu*", far.name}, {"*Add*", far.name}};
  const auto p = make_plan(g.program({y}), {far, here}, how);
  round_trip made{.bound = bind_segment(p, 0, {})};
  for (chunk_id c = 0; c < p->chunks.size(); ++c)
    (p->chunks[c].device == 1 ? made.elsewhere : p->chunks[c].predecessors.empty() ? made.first : made.last) = c;
  return made;
}

std::string speak_as_session(far_host& host, fault_source& random) {
  spoken_session s(host);
  const auto device = static_cast<uint32_t>(random.below(2));
  const round_trip m = there_and_back(s.devices()[device], random.below(4) == 0 ? 200 : 8);
  talk t = valid_talk(s, m, device, random.below(2) == 0);
  const bool is_spoilt = random.what() != fault::none;
  const bool must_end = is_spoilt && spoil(t, m, random);
  for (const step& each : t) {
    s.say(each.said);
    const bool is_good = await_answer(s, each.what);
    if (s.has_ended())
      break;
    if (!is_spoilt && !is_good)
      return "a valid conversation is not answered";
  }
  if (must_end && !s.await_end(10s))
    return "the worker does not end the link";
  if (!is_spoilt && s.has_ended())
    return "the worker ends a valid conversation";
  return "";
}

} // namespace troupe::test
