#include "recording/record.hpp"

#include <fmt/ranges.h>

namespace troupe::recording {
namespace {

constexpr std::array<std::string_view, kinds> kind_names{
    "time",           "run_started",       "chunk_begun",   "chunk_ended",      "plan_installed",
    "value_fetched",  "control_continued", "plan_made",     "plan_asked",       "run_cancelled",
    "device_lost",    "device_leaves",     "device_joined", "memory_changed",   "ticked",
    "closed",         "ledger_answered",   "session_broke", "recording_ended",  "install_plan",
    "run_chunks",     "stop_execution",    "end_execution", "retire_plan",      "fetch_value",
    "abandon_device", "let_device_go",     "answer_run",    "continue_control", "make_plan",
    "answer_query",   "give_memory_back"};
constexpr std::array<std::string_view, 3> named_names{"run", "execution", "binding"};

/// The most bytes of a number as `put_number` writes it.
constexpr size_t longest = 10;

/// Writes seven bits a byte, the lowest first, each byte but the last one with its highest bit set (LEB128). Returns
/// the end.
uint8_t* put_number(uint8_t* at, uint64_t number) {
  for (; number >= 0x80; number >>= 7)
    *at++ = static_cast<uint8_t>(number | 0x80);
  *at++ = static_cast<uint8_t>(number);
  return at;
}

uint64_t get_number(wire::reader& in) {
  uint64_t number = 0;
  for (unsigned shift = 0; shift < 7 * longest; shift += 7) {
    const uint8_t byte = in.raw(1)[0];
    number |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80)
      return number;
  }
  in.refuse("a number has no end");
}

/// Reads a count of elements that take a byte each at least.
uint64_t get_count(wire::reader& in) {
  const uint64_t count = get_number(in);
  if (count > in.left())
    in.refuse("it counts {} elements, but {} bytes are left", count, in.left());
  return count;
}

// What is asked of a device.

void describe_order(const install_plan& order, int64_t device, record& into) {
  into.reset(kind::install_plan, {{named::binding, order.bound->id}},
             {device, static_cast<int64_t>(order.self), order.bound->layout->memory.at(order.self).arena_bytes});
}

void describe_order(const run_chunks& order, int64_t device, record& into) {
  into.reset(kind::run_chunks, {}, {device});
  for (const chunk_work& work : order.works) {
    into.names.push_back({named::binding, work.bound_plan});
    into.names.push_back({named::execution, work.execution});
    for (const size_t number : {size_t{work.chunk}, size_t{work.slot}, work.uploads.size(), work.downloads.size()})
      into.numbers.push_back(static_cast<int64_t>(number));
  }
}

void describe_order(const stop_execution& order, int64_t device, record& into) {
  into.reset(kind::stop_execution, {{named::execution, order.execution}}, {device});
}

void describe_order(const end_execution& order, int64_t device, record& into) {
  into.reset(kind::end_execution, {{named::execution, order.execution}}, {device});
}

void describe_order(const retire_plan& order, int64_t device, record& into) {
  into.reset(kind::retire_plan, {{named::binding, order.bound_plan}}, {device});
}

void describe_order(const fetch_tensor& order, int64_t device, record& into) {
  into.reset(kind::fetch_value, {{named::run, order.ticket}}, {device});
  into.texts.push_back(order.input);
}

// What else is asked for.

void describe_command(const device_order& c, record& into) {
  std::visit([&](const auto& order) { describe_order(order, static_cast<int64_t>(c.device), into); }, c.what);
}

void describe_command(const abandon_device& c, record& into) {
  into.reset(kind::abandon_device, {}, {static_cast<int64_t>(c.device)});
}

void describe_command(const let_device_go& c, record& into) {
  into.reset(kind::let_device_go, {}, {static_cast<int64_t>(c.device)});
}

void describe_command(const run_answer& c, record& into) {
  into.reset(kind::answer_run, {{named::run, c.ticket}});
  into.add(c.why);
  for (const auto& [output, value] : c.result.outputs)
    into.texts.push_back(output);
  for (const auto& [output, value] : c.result.kept)
    into.texts.push_back(output);
}

void describe_command(const continue_control& c, record& into) {
  into.reset(kind::continue_control, {{named::execution, c.place.execution}}, {c.place.chunk});
}

void describe_command(const plan_wanted& c, record& into) {
  into.reset(kind::make_plan, {}, {static_cast<int64_t>(c.job)});
}

void describe_command(const query_answer& c, record& into) {
  into.reset(kind::answer_query, {}, {static_cast<int64_t>(c.query)});
  into.add(c.why);
}

void describe_command(const give_memory_back& c, record& into) {
  into.reset(kind::give_memory_back);
  into.numbers = c.bytes;
}

} // namespace

std::string_view to_string(kind k) {
  return kind_names.at(static_cast<size_t>(k));
}

void record::reset(recording::kind of, std::initializer_list<name> named, std::initializer_list<int64_t> numbered) {
  kind = of;
  names.assign(named);
  numbers.assign(numbered);
  texts.clear();
  values.clear();
}

void record::add(const failure& why) {
  numbers.push_back(static_cast<int64_t>(why.code));
  if (why.failed())
    texts.push_back(why.message);
}

size_t most_bytes(std::span<const name> names, std::span<const int64_t> numbers) {
  return (2 + names.size() + numbers.size()) * longest + 2;
}

uint8_t* put_head(uint8_t* at, kind what, std::span<const name> names, std::span<const int64_t> numbers,
                  bool has_more) {
  *at++ = static_cast<uint8_t>(what);
  at = put_number(at, names.size());
  for (const name& n : names)
    at = put_number(at, n.number * 4 + static_cast<uint64_t>(n.what));
  at = put_number(at, numbers.size());
  for (const int64_t number : numbers)
    at = put_number(at, (static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63));
  *at++ = has_more ? 1 : 0;
  return at;
}

void get(wire::reader& in, record& r) {
  const uint8_t what = in.raw(1)[0];
  if (what >= kinds)
    in.refuse("{} is not a kind of record", what);
  r.reset(static_cast<kind>(what));
  for (uint64_t left = get_count(in); left > 0; --left) {
    const uint64_t read = get_number(in);
    if (read % 4 == 3)
      in.refuse("{} is not the number of a run, an execution or a binding", read);
    r.names.push_back({static_cast<named>(read % 4), read / 4});
  }
  for (uint64_t left = get_count(in); left > 0; --left) {
    const uint64_t read = get_number(in);
    r.numbers.push_back(static_cast<int64_t>(read >> 1) ^ -static_cast<int64_t>(read & 1));
  }
  bool has_more = false;
  in(has_more);
  if (has_more)
    in(r.texts, r.values);
}

std::string to_text(const record& r) {
  std::string text(to_string(r.kind));
  for (const name& n : r.names)
    text += fmt::format(" {} {}", named_names.at(static_cast<size_t>(n.what)), n.number);
  if (!r.numbers.empty())
    text += fmt::format(" [{}]", fmt::join(r.numbers, ", "));
  for (const std::string& t : r.texts)
    text += fmt::format(" '{}'", t);
  for (const value_facts& v : r.values)
    text += fmt::format(" {} {}{}", troupe::to_string(v.type), troupe::to_string(v.dims),
                        v.away          ? fmt::format(" on host {}", *v.away)
                        : v.is_resident ? fmt::format(" on {}", v.device)
                                        : "");
  return text;
}

void describe(const command& asked, record& into) {
  std::visit([&](const auto& c) { describe_command(c, into); }, asked);
}

uint64_t numbering::of(const name& n) {
  book& b = books_.at(static_cast<size_t>(n.what));
  const auto [known, is_new] = b.here.try_emplace(n.number, b.there.size() + 1);
  if (is_new)
    b.there.push_back(n.number);
  return known->second;
}

uint64_t numbering::find(const name& n) const {
  const book& b = books_.at(static_cast<size_t>(n.what));
  const auto known = b.here.find(n.number);
  return known == b.here.end() ? 0 : known->second;
}

record numbering::renumbered(record r) {
  for (name& n : r.names)
    n.number = of(n);
  return r;
}

uint64_t numbering::in_process(const name& n) const {
  const book& b = books_.at(static_cast<size_t>(n.what));
  return n.number > 0 && n.number <= b.there.size() ? b.there[n.number - 1] : 0;
}

} // namespace troupe::recording
