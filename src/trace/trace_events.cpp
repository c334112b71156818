#include "trace/trace_events.hpp"

#include "base/error.hpp"
#include "base/json_problem.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace troupe {
namespace {

using sax = nlohmann::json_sax<nlohmann::json>;

/// Hears a document piece by piece and puts its events together. Depth 1 is the document's own object or array.
class event_reader final : public sax {
public:
  event_reader(std::string_view text, const std::function<void(const trace_event&, size_t)>& take)
      : text_(text), take_(take) {}

  trace_document document;

  bool null() override { return value({}, "null"); }
  bool boolean(bool) override { return value({}, "true or false"); }
  bool number_integer(number_integer_t n) override { return value(static_cast<double>(n), std::to_string(n)); }
  bool number_unsigned(number_unsigned_t n) override { return value(static_cast<double>(n), std::to_string(n)); }
  bool number_float(number_float_t n, const string_t& text) override { return value(n, text); }
  bool string(string_t& text) override { return value(std::move(text), "a text"); }
  bool binary(binary_t&) override { return false; } // JSON has none

  bool start_object(size_t) override {
    open();
    if (depth_ == 1)
      document.is_object = true;
    if (in_events_ && depth_ == events_depth_ + 1)
      event_ = {};
    else if (in_event() && depth_ == events_depth_ + 2)
      (in_args_ = key_ == "args") ? void(event_.has_args = true) : note(key_);
    else if (depth_ == 2)
      in_other_ = key_ == "otherData";
    return true;
  }

  bool key(string_t& name) override {
    (in_args_ && depth_ == events_depth_ + 2 ? argument_ : key_) = std::move(name);
    return true;
  }

  bool end_object() override {
    if (in_events_ && depth_ == events_depth_ + 1)
      finish_event();
    if (depth_ == events_depth_ + 2)
      in_args_ = false;
    if (depth_ == 2)
      in_other_ = false;
    --depth_;
    return true;
  }

  bool start_array(size_t) override {
    open();
    if (!in_events_ && (depth_ == 1 || (depth_ == 2 && document.is_object && key_ == "traceEvents"))) {
      in_events_ = document.has_events = true;
      events_depth_ = depth_;
    } else if (in_event() && depth_ == events_depth_ + 2)
      note(key_);
    else if (in_events_ && depth_ == events_depth_ + 1)
      no_event();
    return true;
  }

  bool end_array() override {
    if (in_events_ && depth_ == events_depth_)
      in_events_ = false;
    --depth_;
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& why) override {
    fail(errc::invalid_input, "the trace is not JSON: {}", json_problem(text_, why));
  }

private:
  void open() {
    if (++depth_ > max_trace_depth)
      fail(errc::invalid_input, "the trace nests deeper than {} levels", max_trace_depth);
  }

  /// Inside of an event, not of what it holds in turn.
  bool in_event() const { return in_events_ && depth_ > events_depth_; }

  [[noreturn]] void no_event() const {
    fail(errc::invalid_input, "event {} of the trace is not an object", document.events);
  }

  void note(const std::string& field) {
    static constexpr std::array<std::string_view, 10> known{"ph", "name", "cat", "id",  "bp",
                                                            "ts", "dur",  "pid", "tid", "args"};
    if (event_.wrong.empty() && std::find(known.begin(), known.end(), field) != known.end())
      event_.wrong = field;
  }

  bool value(trace_value v, const std::string& text) {
    if (const double* n = std::get_if<double>(&v); n && !std::isfinite(*n))
      v = std::monostate{};
    if (in_events_ && depth_ == events_depth_)
      no_event();
    if (in_events_ && depth_ == events_depth_ + 1)
      set(std::move(v), text);
    else if (in_args_ && depth_ == events_depth_ + 2)
      event_.args.emplace_back(std::move(argument_), std::move(v));
    else if (depth_ == 1 && document.is_object && key_ == "displayTimeUnit")
      document.time_unit = std::holds_alternative<std::string>(v) ? std::get<std::string>(v) : "";
    else if (depth_ == 2 && in_other_ && key_ == "title" && std::holds_alternative<std::string>(v))
      document.title = std::get<std::string>(v);
    return true;
  }

  void set(trace_value v, const std::string& text) {
    for (const auto& [name, field] : {std::pair("ph", &trace_event::ph), std::pair("name", &trace_event::name),
                                      std::pair("cat", &trace_event::cat), std::pair("bp", &trace_event::bp)})
      if (key_ == name)
        return std::holds_alternative<std::string>(v) ? void(event_.*field = std::get<std::string>(std::move(v)))
                                                      : note(key_);
    for (const auto& [name, field] : {std::pair("ts", &trace_event::ts), std::pair("dur", &trace_event::dur),
                                      std::pair("pid", &trace_event::pid), std::pair("tid", &trace_event::tid)})
      if (key_ == name)
        return std::holds_alternative<double>(v) ? void(event_.*field = std::get<double>(v)) : note(key_);
    if (key_ == "id" && std::holds_alternative<std::string>(v))
      event_.id = std::get<std::string>(std::move(v)).insert(0, 1, '"'); // "1" and 1 are two ids
    else if (key_ == "id" && std::holds_alternative<double>(v))
      event_.id = text;
    else
      note(key_);
  }

  void finish_event() {
    if (document.events == max_trace_events)
      fail(errc::invalid_input, "the trace has more than {} events", max_trace_events);
    take_(event_, document.events++);
  }

  const std::string_view text_;
  const std::function<void(const trace_event&, size_t)>& take_;
  trace_event event_;
  std::string key_, argument_;
  int depth_ = 0, events_depth_ = 0;
  bool in_events_ = false, in_args_ = false, in_other_ = false;
};

} // namespace

const std::string* trace_event::text(std::string_view key) const {
  for (const auto& [name, value] : args)
    if (name == key)
      return std::get_if<std::string>(&value);
  return nullptr;
}

std::optional<double> trace_event::number(std::string_view key) const {
  for (const auto& [name, value] : args)
    if (name == key && std::holds_alternative<double>(value))
      return std::get<double>(value);
  return std::nullopt;
}

trace_document read_trace_events(std::string_view text, const std::function<void(const trace_event&, size_t)>& take) {
  if (text.size() > max_trace_bytes)
    fail(errc::invalid_input, "the trace has {} bytes, at most {} are read", text.size(), max_trace_bytes);
  event_reader reader(text, take);
  nlohmann::json::sax_parse(text, &reader);
  if (!reader.document.has_events)
    fail(errc::invalid_input, "no trace: there is no array \"traceEvents\"");
  return std::move(reader.document);
}

} // namespace troupe
