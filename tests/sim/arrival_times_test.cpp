// Files that say when requests come, how many rows they have and by when they must be answered.
#include "sim/arrival_times.hpp"

#include "base/seeded_random.hpp"
#include "strategy/call_model.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"
#include "troupe/built_model.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

class arrivals_file {
public:
  arrivals_file() : path_(std::filesystem::temp_directory_path() / fmt::format("troupe-arrivals-{}", getpid())) {}
  ~arrivals_file() { std::filesystem::remove(path_); }

  arrivals read(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return read_arrivals(path_.string());
  }
  /// Returns what is wrong, "none" if nothing is.
  std::string refusal(const std::string& text) const {
    try {
      read(text);
    } catch (const error& e) {
      return e.code() == errc::invalid_argument ? e.what() : "another kind of error";
    }
    return "none";
  }

private:
  const std::filesystem::path path_;
};

constexpr const char* workload = "rows, arrival, deadline\r\n2, 0.5, 3\n\n1, 0.5,\n64,7e1,0.25\n";

/// Relu of rows that take a second each, on devices that do nothing else.
simulation_report served(const arrivals& when, session_options session, int devices = 1) {
  call_model m;
  m.output(m.op("Relu", {m.input("x", {batch, 4})}, {}, "y"));
  const std::string cluster =
      fmt::format(R"({{"version": 1, "coordinator_s": 0, "hosts": [{{"devices": [{{"name": "c", "count": {}, )"
                  R"("kind": "cpu", "memory_bytes": 1000000000, "profile": {{"launch_s": 0, "chunk_s": 0, )"
                  R"("submit_s": 0, "wake_s": 0, "barrier_s": 0, "float32": 1e21, "other": 1e21, )"
                  R"("memory_bytes_per_s": 32, "input_bytes_per_s": 1e21}}}}]}}]}})",
                  devices);
  session.fuse = false;
  return simulate(m.g, {{"x", random_tensor({1, 4}, 1)}},
                  {.cluster_text = cluster,
                   .profile_file = "/nowhere",
                   .session = session,
                   .requests = when.times_s.size(),
                   .arrivals = when});
}

} // namespace

TEST_CASE("arrivals are times, or columns by name", "[sim][formats]") {
  const arrivals_file file;
  const arrivals times = file.read("0\n 1.5 \n\n1.5\n2e3");
  CHECK(times.how == arrivals::process::listed);
  CHECK(times.times_s == std::vector<double>{0, 1.5, 1.5, 2000});
  CHECK((times.rows.empty() && times.deadlines_s.empty()));
  const arrivals all = file.read(workload);
  CHECK(all.times_s == std::vector<double>{0.5, 0.5, 70});
  CHECK(all.rows == std::vector<int64_t>{2, 1, 64});
  CHECK(all.deadlines_s == std::vector<double>{3, 0, 0.25});
  CHECK(file.read("arrival\n3\n").times_s == std::vector<double>{3});
}

TEST_CASE("a wrong list of arrivals is refused with its line", "[sim][formats][hostile]") {
  const arrivals_file file;
  const auto refused = [&](const std::string& text, const char* why) { CHECK_THAT(file.refusal(text), Contains(why)); };
  refused("", "no times");
  refused("arrival,rows\n", "no times");
  refused("0\nx\n", "line 2: 'x' is not a number");
  refused("0\n1,2\n", "line 2: 2 columns, where there should be 1");
  refused("arrival,rows\n1\n", "line 2: 1 columns, where there should be 2");
  refused("arrival,tokens\n", "line 1: 'tokens' is not a number, nor one of the columns arrival, rows, deadline");
  refused("arrival,\n", "line 1: '' is not a number, nor one");
  refused("rows\n1\n", "line 1: the column 'arrival' is missing");
  refused("arrival,rows,rows\n", "line 1: there are two columns 'rows'");
  refused("2\n1\n", "line 2: earlier than the time before it");
  refused("-1\n", "line 1: a time from 0 to 1e+09 seconds is needed");
  refused("arrival,rows\n1,1.5\n", "line 2: '1.5' is not a whole number");
  refused("arrival,rows\n1,0\n", "line 2: 1 to 1000000 rows are needed");
  refused("arrival,deadline\n1,0\n", "line 2: a deadline above 0 and up to 1e+09 seconds after the arrival");
  refused("arrival,deadline\n1,nan\n", "line 2: a deadline above 0");
  refused(std::string(70, '1'), "line 1: longer than 64 characters");
  CHECK(thrown_by([] { read_arrivals("/nowhere/a.csv"); }).code() == errc::io);
}

TEST_CASE("damaged lists of arrivals are read or refused", "[sim][formats][hostile]") {
  const arrivals_file file;
  seeded_random random(65);
  size_t refused = 0;
  for (size_t round = 0; round < 10'000; ++round) {
    std::string text(workload);
    for (uint32_t changes = 1 + random.below(4); changes > 0; --changes) {
      const size_t at = random.below(static_cast<uint32_t>(text.size()));
      const size_t length = std::min<size_t>(random.below(12), text.size() - at);
      switch (random.below(4)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.erase(at, length).append("\n"); break;
        case 2: text.insert(random.below(static_cast<uint32_t>(text.size())), text.substr(at, length)); break;
        default: text.resize(at + 1);
      }
    }
    const std::string why = file.refusal(text); // anything but an error of ours ends the test
    refused += why != "none";
    CHECK(why != "another kind of error");
  }
  CHECK(refused > 5000);
}

TEST_CASE("requests have the rows that a list says", "[sim]") {
  const arrivals when{.how = arrivals::process::listed, .times_s = {0, 10, 20}, .rows = {1, 6, 3}};
  const simulation_report one = served(when, {.strategy = strategy::work_stealing});
  CHECK(one.failed == 0);
  CHECK(one.max_ms == Approx(6000).epsilon(0.001));
  CHECK(one.p50_ms == Approx(3000).epsilon(0.001));
  const simulation_report two = served(when, {.strategy = strategy::data_parallel}, 2);
  CHECK(two.max_ms == Approx(3000).epsilon(0.001)); // each device has half of the rows
  CHECK(thrown_by([&] { served(when, {.strategy = strategy::none}); }).code() == errc::unsupported);
  for (const std::vector<int64_t>& wrong : {std::vector<int64_t>{1, 2}, {1, 2, 0}, {1, 2, 1'000'001}}) {
    arrivals no = when;
    no.rows = wrong;
    CHECK(thrown_by([&] { served(no, {.strategy = strategy::work_stealing}); }).code() == errc::invalid_argument);
  }
}

TEST_CASE("requests without an answer by their deadlines are late", "[sim]") {
  arrivals when{.how = arrivals::process::listed, .times_s = {0, 0, 0}, .rows = {2, 2, 2}, .deadlines_s = {0, 3, 4.5}};
  const simulation_report given_up = served(when, {.strategy = strategy::work_stealing});
  CHECK((given_up.late == 1 && given_up.failed == 1));
  CHECK(given_up.makespan_ms == Approx(4000).epsilon(0.001)); // the second one would have ended then: it never began
  CHECK_THAT(to_text(given_up), Contains("1 requests had no answer by their deadlines"));
  when.rows.clear();
  const simulation_report alone = served(when, {.strategy = strategy::none});
  CHECK((alone.late == 0 && alone.makespan_ms == Approx(3000).epsilon(0.001)));
  when.deadlines_s = {0.5, 0, 0};
  const simulation_report late = served(when, {.strategy = strategy::none});
  CHECK((late.late == 1 && late.makespan_ms == Approx(3000).epsilon(0.001)));
  CHECK_THAT(late.first_failure, Contains("an answer took 1 s, its deadline was 0.5 s"));
  for (const double wrong : {-1.0, 2e9, double(NAN)}) {
    when.deadlines_s = {0, 0, wrong};
    CHECK(thrown_by([&] { served(when, {}); }).code() == errc::invalid_argument);
  }
}
