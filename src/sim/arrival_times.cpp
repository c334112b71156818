#include "sim/arrival_times.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/seeded_random.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>

namespace troupe::sim {
namespace {

constexpr size_t longest_line = 64;

/// Returns whether there was another line; of one that is too long, as much as shows that. Hostile files have lines
/// without end.
bool next_line(std::istream& in, std::string& line) {
  line.clear();
  int c = in.get();
  for (; c != EOF && c != '\n' && line.size() <= longest_line; c = in.get())
    line += static_cast<char>(c);
  if (line.ends_with('\r'))
    line.pop_back();
  return c != EOF || !line.empty();
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

/// A file's lines as arrivals; each complaint names the line.
class arrival_lines {
public:
  explicit arrival_lines(const std::string& file) : file_(file) {}

  void add(std::string_view line) {
    ++number_;
    if (number_ > most_arrivals)
      complain("more than {} lines", most_arrivals);
    if (line.size() > longest_line) // only its beginning was read
      complain("longer than {} characters", longest_line);
    if (trimmed(line).empty())
      return;
    if (columns_.empty() && read_heads(line))
      return;
    add_cells(cells_of(line));
  }

  arrivals take() {
    if (all_.times_s.empty())
      fail(errc::invalid_argument, "{}: no times", file_);
    return std::move(all_);
  }

private:
  enum class column : uint8_t { arrival, rows, deadline };
  static constexpr std::pair<std::string_view, column> names[] = {
      {"arrival", column::arrival}, {"rows", column::rows}, {"deadline", column::deadline}};

  template <class... Arguments>
  [[noreturn]] void complain(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    fail(errc::invalid_argument, "{}: line {}: {}", file_, number_,
         fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  static std::vector<std::string_view> cells_of(std::string_view line) {
    std::vector<std::string_view> cells;
    for (;;) {
      const size_t end = line.find(',');
      cells.push_back(trimmed(line.substr(0, end)));
      if (end == std::string_view::npos)
        return cells;
      line.remove_prefix(end + 1);
    }
  }

  /// Reads the names of columns; returns false for a line of numbers, of which there is one column.
  bool read_heads(std::string_view line) {
    const std::vector<std::string_view> cells = cells_of(line);
    double number = 0;
    if (std::from_chars(cells[0].data(), cells[0].data() + cells[0].size(), number).ec != std::errc::invalid_argument) {
      columns_ = {column::arrival};
      return false;
    }
    for (const std::string_view name : cells) {
      const auto* row =
          std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.first == name; });
      if (row == std::end(names))
        complain("'{}' is not a number, nor one of the columns arrival, rows, deadline", printable(name));
      if (std::find(columns_.begin(), columns_.end(), row->second) != columns_.end())
        complain("there are two columns '{}'", name);
      columns_.push_back(row->second);
    }
    if (std::find(columns_.begin(), columns_.end(), column::arrival) == columns_.end())
      complain("the column 'arrival' is missing");
    return true;
  }

  template <class Number>
  Number read(std::string_view cell) const {
    Number value = 0;
    const auto [end, status] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (status != std::errc{} || end != cell.data() + cell.size())
      complain("'{}' is not a {}number", printable(cell), std::is_integral_v<Number> ? "whole " : "");
    return value;
  }

  void add_cells(const std::vector<std::string_view>& cells) {
    if (cells.size() != columns_.size())
      complain("{} columns, where there should be {}", cells.size(), columns_.size());
    for (size_t i = 0; i < cells.size(); ++i)
      switch (columns_[i]) {
        case column::arrival: add_time(read<double>(cells[i])); break;
        case column::rows: add_rows(read<int64_t>(cells[i])); break;
        case column::deadline: add_deadline(cells[i].empty() ? 0 : read<double>(cells[i]), cells[i].empty());
      }
  }

  void add_time(double at) {
    if (!(at >= 0 && at <= latest_arrival_s))
      complain("a time from 0 to {:g} seconds is needed", latest_arrival_s);
    if (!all_.times_s.empty() && at < all_.times_s.back())
      complain("earlier than the time before it; times must ascend");
    all_.times_s.push_back(at);
  }

  void add_rows(int64_t rows) {
    if (rows < 1 || rows > most_request_rows)
      complain("1 to {} rows are needed", most_request_rows);
    all_.rows.push_back(rows);
  }

  void add_deadline(double within, bool none) {
    if (!none && !(within > 0 && within <= latest_arrival_s))
      complain("a deadline above 0 and up to {:g} seconds after the arrival is needed", latest_arrival_s);
    all_.deadlines_s.push_back(within);
  }

  const std::string& file_;
  size_t number_ = 0;
  std::vector<column> columns_;
  arrivals all_{.how = arrivals::process::listed};
};

} // namespace

std::vector<double> arrival_times(const arrivals& how, size_t requests, uint64_t seed) {
  if (how.how == arrivals::process::listed)
    return how.times_s;
  seeded_random random(seed);
  std::vector<double> times(requests, 0);
  for (size_t i = 1; i < requests; ++i)
    times[i] = times[i - 1] - std::log(random.open_unit()) / how.per_second;
  return times;
}

} // namespace troupe::sim

namespace troupe {

using namespace sim;

arrivals read_arrivals(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  arrival_lines lines(file);
  while (next_line(in, line))
    lines.add(line);
  if (!in.is_open() || in.bad() || !in.eof())
    fail(errc::io, "the times of requests in '{}' cannot be read", file);
  return lines.take();
}

} // namespace troupe
