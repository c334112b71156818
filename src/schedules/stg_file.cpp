// The Standard Task Graph set (Tobita, Kasahara, "A standard task graph set for fair evaluation of multiprocessor
// scheduling algorithms", Journal of Scheduling 5(5), 2002): the number of tasks, then for each its number, its time
// and its predecessors. An entry and an exit of no time are there beside those that are counted. A unit of time is a
// second; edges have no bytes.
#include "base/error.hpp"
#include "base/printable.hpp"
#include "schedules/graph_draft.hpp"
#include "schedules/graph_file.hpp"

#include <charconv>

namespace troupe {
namespace {

constexpr uint64_t most_time = 1'000'000'000'000;

/// Whole numbers of a text, line by line; what follows a '#' is for people.
class number_lines {
public:
  explicit number_lines(std::string_view text) : rest_(text) {}

  template <class... Arguments>
  [[noreturn]] void complain(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    fail(errc::invalid_argument, "line {}: {}", line_, fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  /// Returns the next line that has numbers; empty at the end.
  std::vector<uint64_t> next() {
    std::vector<uint64_t> numbers;
    while (numbers.empty() && !rest_.empty()) {
      ++line_;
      std::string_view line = rest_.substr(0, rest_.find('\n'));
      rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
      line = line.substr(0, line.find('#'));
      for (size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
        const std::string_view word = line.substr(at, line.find_first_of(" \t\r", at) - at);
        numbers.push_back(read(word));
        at += word.size();
      }
    }
    return numbers;
  }

private:
  uint64_t read(std::string_view word) const {
    uint64_t value = 0;
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (status != std::errc{} || end != word.data() + word.size())
      complain("'{}' is not a whole number", printable(word.substr(0, 40)));
    return value;
  }

  std::string_view rest_;
  size_t line_ = 0;
};

} // namespace

task_graph parse_stg(std::string_view text, const std::string& name) {
  number_lines lines(text);
  const std::vector<uint64_t> head = lines.next();
  if (head.size() != 1 || head[0] == 0 || head[0] > max_graph_tasks - 2)
    lines.complain("the number of tasks is needed there, alone, from 1 to {}", max_graph_tasks - 2);
  const uint64_t count = head[0] + 2; // the entry, those that are counted, the exit
  graph_draft draft;
  for (uint64_t n = 0; n < count; ++n) {
    const std::vector<uint64_t> row = lines.next();
    if (row.empty())
      lines.complain("the text ends after {} tasks; there should be {}, an entry and an exit", n, head[0]);
    if (row.size() < 3 || row.size() - 3 != row[2])
      lines.complain("a task's number, its time, how many predecessors it has, and these are needed");
    if (row[0] != n || row[1] > most_time)
      lines.complain("task {} is needed there, with a time of at most {}", n, most_time);
    draft.add(fmt::format("{}", n), static_cast<double>(row[1]) * operations_a_second);
    for (size_t p = 3; p < row.size(); ++p) {
      if (row[p] >= n)
        lines.complain("task {} cannot wait for task {}: tasks come after those that they wait for", n, row[p]);
      draft.join(static_cast<uint32_t>(row[p]), static_cast<uint32_t>(n), 0);
    }
  }
  if (!lines.next().empty())
    lines.complain("there are more tasks than the first line says");
  return draft.finish(name);
}

} // namespace troupe
