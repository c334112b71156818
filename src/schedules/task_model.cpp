#include "schedules/task_model.hpp"

#include "ops/op.hpp"
#include "schedules/graph_file.hpp"

#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <set>

namespace troupe {
namespace {

constexpr std::string_view prefix = "graph:";
constexpr double most_tasks = 1e6, largest_edge = 1099511627776;
constexpr double most_work = 1e30; // float32 holds it

/// What a name says after the generator, by parameter; each may be taken once.
class parameters {
public:
  parameters(std::string_view name, std::string_view text) : name_(name) {
    while (!text.empty()) {
      const std::string_view one = text.substr(0, text.find(','));
      text.remove_prefix(std::min(one.size() + 1, text.size()));
      const size_t at = one.find('=');
      double value = 0;
      const char* end = one.data() + one.size();
      if (at == std::string_view::npos)
        fail(errc::invalid_argument, "'{}': '{}' is not PARAMETER=VALUE", name_, one);
      if (const auto read = std::from_chars(one.data() + at + 1, end, value);
          read.ec != std::errc{} || read.ptr != end || !std::isfinite(value))
        fail(errc::invalid_argument, "'{}': '{}' is not a number", name_, one.substr(at + 1));
      if (!values_.emplace(one.substr(0, at), value).second)
        fail(errc::invalid_argument, "'{}': '{}' is given twice", name_, one.substr(0, at));
    }
  }

  double number(const std::string& parameter, double otherwise, double least, double most) {
    known_.push_back(parameter);
    const auto given = values_.extract(parameter);
    const double value = given.empty() ? otherwise : given.mapped();
    if (!(value >= least && value <= most))
      fail(errc::invalid_argument, "'{}': {} is {}; it may be {} to {}", name_, parameter, value, least, most);
    return value;
  }

  uint32_t count(const std::string& parameter, uint32_t otherwise, double most = most_tasks) {
    const double value = number(parameter, otherwise, 1, most);
    if (value != std::floor(value))
      fail(errc::invalid_argument, "'{}': {} must be a whole number", name_, parameter);
    return static_cast<uint32_t>(value);
  }

  double work() { return number("work", 1e9, 0, 1e18); }
  double bytes() { return number("bytes", 1e6, 0, largest_edge); }
  uint64_t seed() { return static_cast<uint64_t>(number("seed", 1, 0, 1e15)); }

  /// Refuses a graph of too many tasks before it is made.
  void expect_tasks(double tasks) const {
    if (tasks > most_tasks)
      fail(errc::invalid_argument, "'{}' has {:.0f} tasks; at most {:.0f} are allowed", name_, tasks, most_tasks);
  }
  /// Refuses what nothing has asked for.
  void expect_none_left() const {
    if (!values_.empty())
      fail(errc::invalid_argument, "'{}' has no parameter '{}'; there are: {}", name_, values_.begin()->first,
           fmt::join(known_, ", "));
  }

private:
  const std::string name_;
  std::map<std::string, double, std::less<>> values_;
  std::vector<std::string> known_;
};

/// Takes all parameters, and only then makes the graph.
template <class Make>
task_graph finish(const parameters& given, double tasks, Make&& make) {
  given.expect_none_left();
  given.expect_tasks(tasks);
  return make();
}

task_graph make_fork_join(parameters& p) {
  const uint32_t width = p.count("width", 8), stages = p.count("stages", 4);
  const double work = p.work(), bytes = p.bytes();
  return finish(p, (width + 2.0) * stages, [&] { return fork_join(width, stages, work, bytes); });
}

template <task_graph (*Make)(uint32_t, uint32_t)>
task_graph make_factorisation(parameters& p) {
  const uint32_t tiles = p.count("tiles", 8), tile = p.count("tile", 512, 1e5);
  return finish(p, std::pow(tiles, 3.0) / 3, [&] { return Make(tiles, tile); });
}

task_graph make_fft(parameters& p) {
  const uint32_t points = p.count("points", 64);
  const double work = p.work(), bytes = p.bytes();
  return finish(p, points * (2 + std::log2(points)), [&] { return fft(points, work, bytes); });
}

task_graph make_stencil(parameters& p) {
  const uint32_t width = p.count("width", 16), steps = p.count("steps", 8);
  const double work = p.work(), bytes = p.bytes();
  return finish(p, static_cast<double>(width) * steps, [&] { return stencil(width, steps, work, bytes); });
}

task_graph make_montage(parameters& p) {
  const uint32_t images = p.count("images", 20);
  const uint64_t seed = p.seed();
  return finish(p, 3.0 * images, [&] { return montage(images, seed); });
}

/// A workflow of two sizes and a seed.
template <task_graph (*Make)(uint32_t, uint32_t, uint64_t)>
task_graph make_workflow(parameters& p, const char* outer, uint32_t many, const char* inner, uint32_t each) {
  const uint32_t a = p.count(outer, many), b = p.count(inner, each);
  const uint64_t seed = p.seed();
  return finish(p, (4.0 * b + 16) * a, [&] { return Make(a, b, seed); });
}

task_graph make_cybershake(parameters& p) {
  return make_workflow<cybershake>(p, "ruptures", 4, "variations", 12);
}
task_graph make_epigenomics(parameters& p) {
  return make_workflow<epigenomics>(p, "lanes", 4, "splits", 6);
}
task_graph make_inspiral(parameters& p) {
  return make_workflow<inspiral>(p, "groups", 4, "width", 6);
}
task_graph make_sipht(parameters& p) {
  return make_workflow<sipht>(p, "replicons", 3, "patsers", 18);
}

task_graph make_layers(parameters& p) {
  layered_options o;
  o.tasks = p.count("tasks", 100);
  o.shape = p.number("shape", 1, 1e-3, 1e3);
  o.out_degree = p.count("out-degree", 3, 1000);
  const double work = p.work(), bytes = p.bytes();
  const uint64_t seed = p.seed();
  return finish(p, o.tasks, [&] { return layers(o, work, bytes, seed); });
}

struct generator {
  std::string_view name;
  task_graph (*make)(parameters&);
};

constexpr auto generators = std::to_array<generator>({
    {"fork-join", make_fork_join},
    {"cholesky", make_factorisation<cholesky>},
    {"lu", make_factorisation<lu>},
    {"fft", make_fft},
    {"stencil", make_stencil},
    {"montage", make_montage},
    {"layers", make_layers},
    {"cybershake", make_cybershake},
    {"epigenomics", make_epigenomics},
    {"inspiral", make_inspiral},
    {"sipht", make_sipht},
});

} // namespace

void check(const task_graph& g) {
  const auto refuse = [&](const std::string& what) {
    fail(errc::invalid_argument, "the task graph '{}' {}", g.name, what);
  };
  if (g.tasks.empty())
    refuse("has no tasks");
  std::set<std::string> names;
  for (task_id n = 0; n < g.tasks.size(); ++n) {
    if (!(g.tasks[n].work >= 0 && g.tasks[n].work <= most_work))
      refuse(fmt::format("has a task {} of work {}", n, g.tasks[n].work));
    if (const std::string name = task_name(g, n); !names.insert(name).second)
      refuse(fmt::format("has two tasks '{}'", name));
  }
  for (const graph_edge& e : g.edges)
    if (e.from >= e.to || e.to >= g.tasks.size())
      refuse(fmt::format("has {} tasks and an edge from {} to {}; tasks are numbered so that edges go up",
                         g.tasks.size(), e.from, e.to));
}

bool names_task_graph(std::string_view name) {
  return name.starts_with(prefix);
}

std::optional<std::filesystem::path> task_graph_file(std::string_view name) {
  if (!names_task_graph(name))
    return std::nullopt;
  const std::string_view rest = name.substr(prefix.size());
  const std::string_view which = rest.substr(0, rest.find(','));
  const bool is_made_up =
      std::any_of(generators.begin(), generators.end(), [&](const generator& g) { return g.name == which; });
  if (is_made_up || rest.find_first_of("./") == std::string_view::npos)
    return std::nullopt;
  return rest;
}

task_graph read_task_graph(std::string_view name) {
  const std::string_view rest = name.substr(std::min(prefix.size(), name.size()));
  const std::string_view which = rest.substr(0, rest.find(','));
  for (const generator& g : generators)
    if (g.name == which) {
      parameters given(name, rest.substr(std::min(which.size() + 1, rest.size())));
      return g.make(given);
    }
  if (const auto file = task_graph_file(name))
    return read_graph_file(*file);
  std::vector<std::string_view> names;
  names.reserve(generators.size());
  for (const generator& g : generators)
    names.push_back(g.name);
  fail(errc::invalid_argument, "'{}': there is no made-up graph '{}', and no file; there are: {}", name, which,
       fmt::join(names, ", "));
}

std::string task_name(const task_graph& g, uint32_t task) {
  const graph_task& t = g.tasks.at(task);
  return t.name.empty() ? fmt::format("{}_{}", t.kind, task) : t.name;
}

built_model model_of(const task_graph& g) {
  return to_model(g);
}

graph to_model(const task_graph& made_up) {
  check(made_up);
  graph g;
  g.name = made_up.name;
  g.opsets = {{"", 13}, {"troupe", 1}};
  g.inputs.push_back(g.add_value({.name = "start", .type = dtype::float32, .dims = symbolic_shape{1}}));
  std::vector<node> nodes(made_up.tasks.size());
  std::vector<std::vector<int64_t>> elements(made_up.tasks.size());
  const auto add_output = [&](task_id n, double bytes) {
    if (!(bytes >= 0 && bytes <= largest_edge))
      fail(errc::invalid_argument, "task {} of '{}' makes {} bytes", n, made_up.name, bytes);
    elements[n].push_back(std::max<int64_t>(std::llround(bytes / sizeof(float)), 1));
    const value_id made = g.add_value({.name = fmt::format("{}_{}", n, elements[n].size())});
    nodes[n].outputs.push_back(made);
    return made;
  };
  for (const graph_edge& e : made_up.edges)
    nodes[e.to].inputs.push_back(add_output(e.from, e.bytes));
  for (task_id n = 0; n < nodes.size(); ++n) {
    node& task = nodes[n];
    if (task.outputs.empty())
      g.outputs.push_back(add_output(n, sizeof(float)));
    if (task.inputs.empty())
      task.inputs.push_back(g.inputs[0]);
    task.name = task_name(made_up, n);
    task.op_type = "Task";
    task.domain = "troupe";
    task.attrs.set("work", static_cast<float>(made_up.tasks[n].work));
    task.attrs.set("elements", std::move(elements[n]));
    task.attrs.set("task", static_cast<int64_t>(n));
    g.add_node(std::move(task));
  }
  return g;
}

} // namespace troupe
