#include "policy.hpp"

#include "keep_alive.hpp"

#include "troupe/error.hpp"
#include "troupe/policy.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

namespace troupe::python {
namespace {

/// A value that one task makes and another one reads.
struct edge {
  uint32_t from, to, value;
};

/// What a policy is asked, for as long as it is asked; then only what has been found remains.
class question {
public:
  explicit question(const policy_problem* asked) : asked_(asked) {}

  void close() { asked_ = nullptr; }

  const policy_problem& asked() const {
    if (!asked_)
      throw error(errc::invalid_argument, "a problem can be asked while its policy is called, not later");
    return *asked_;
  }

  size_t devices() const { return asked().device_count; }

  /// Seconds, [task * devices + device]; infinity where it may not run. Found at the first call.
  const std::vector<double>& times() {
    if (times_.empty()) {
      const policy_problem& p = asked();
      times_.reserve(size_t{p.task_count} * p.device_count);
      for (uint32_t n = 0; n < p.task_count; ++n)
        for (uint32_t d = 0; d < p.device_count; ++d)
          times_.push_back(p.allowed(p.context, n, d) ? p.seconds(p.context, n, d)
                                                      : std::numeric_limits<double>::infinity());
    }
    return times_;
  }

  /// Ascending by the task that reads.
  const std::vector<edge>& edges() {
    const policy_problem& p = asked();
    if (edges_begin_.empty()) {
      edges_begin_.push_back(0);
      for (uint32_t n = 0; n < p.task_count; ++n) {
        for (uint64_t i = p.input_begin[n]; i < p.input_begin[n + 1]; ++i)
          if (const uint32_t v = p.inputs[i]; p.producer[v] != policy_none && is_first(i, p.input_begin[n]))
            edges_.push_back({p.producer[v], n, v});
        edges_begin_.push_back(edges_.size());
      }
    }
    return edges_;
  }

  /// The seconds of an edge between two devices, the wait for the answer included.
  double move_seconds(size_t e, uint32_t from, uint32_t to) {
    const policy_problem& p = asked();
    if (e >= edges().size() || from >= p.device_count || to >= p.device_count)
      throw error(errc::invalid_argument, "there is no edge " + std::to_string(e) + ", or no such device");
    return from == to ? 0 : p.devices[from].handover_s + p.move_seconds(p.context, edges_[e].value, from, to);
  }

  double mean_move_seconds(size_t e) const { return asked().mean_move_seconds(asked().context, edges_[e].value); }

  /// The longest way from each task's begin to the end, by mean times and weighed mean moves (Topcuoglu, Hariri, Wu
  /// 2002), as HEFT here has it.
  const std::vector<double>& ranks() {
    if (!ranks_.empty())
      return ranks_;
    const std::vector<double>& all = times();
    const size_t count = devices();
    ranks_.assign(all.size() / count, 0);
    for (size_t n = ranks_.size(), e = edges().size(); n-- > 0;) {
      double sum = 0, finite = 0;
      for (size_t d = 0; d < count; ++d)
        if (const double s = all[n * count + d]; s < std::numeric_limits<double>::infinity()) {
          sum += s;
          ++finite;
        }
      ranks_[n] += finite > 0 ? sum / finite : 0;
      for (; e > 0 && edges_[e - 1].to == n; --e) {
        double& before = ranks_[edges_[e - 1].from];
        before = std::max(before, ranks_[n] + asked().move_weight * mean_move_seconds(e - 1));
      }
    }
    return ranks_;
  }

  /// When the last task would end: tasks begin in the order of their ranks, each as soon as its device has done those
  /// before and has what it reads.
  double makespan(std::span<const uint32_t> placed) {
    const std::vector<double>& all = times();
    const size_t count = devices();
    if (order_.empty()) {
      order_.resize(ranks().size());
      std::iota(order_.begin(), order_.end(), 0U);
      std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return ranks_[a] > ranks_[b]; });
    }
    std::vector<double> free(count, 0), end(order_.size(), 0);
    for (const uint32_t n : order_) {
      const uint32_t d = placed[n];
      double begin = free[d];
      for (size_t e = edges_begin_[n]; e < edges_begin_[n + 1]; ++e) {
        const uint32_t from = edges_[e].from;
        begin = std::max(begin, end[from] + move_seconds(e, placed[from], d));
      }
      free[d] = end[n] = begin + all[n * count + d];
    }
    return *std::max_element(free.begin(), free.end());
  }

private:
  /// Whether a task reads an input for the first time.
  bool is_first(uint64_t input, uint64_t begin) const {
    const uint32_t* const all = asked_->inputs;
    return std::find(all + begin, all + input, all[input]) == all + input;
  }

  const policy_problem* asked_;
  std::vector<double> times_, ranks_;
  std::vector<edge> edges_;
  std::vector<size_t> edges_begin_; // by the task that reads
  std::vector<uint32_t> order_;     // of tasks, by rank
};

/// Returns an array over the question's own memory, to be read only; it keeps the question.
template <class T>
py::array view(const std::vector<T>& values, std::vector<py::ssize_t> dims, const py::object& owner) {
  py::array_t<T> array(std::move(dims), values.data(), owner);
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

/// Returns an array of one figure for each edge.
template <class T, class Of>
py::array_t<T> by_edge(question& q, Of&& of) {
  py::array_t<T> array(static_cast<py::ssize_t>(q.edges().size()));
  for (size_t e = 0; e < q.edges().size(); ++e)
    array.mutable_at(static_cast<py::ssize_t>(e)) = of(e);
  return array;
}

py::array_t<int64_t> ends_of(question& q) {
  py::array_t<int64_t> array({static_cast<py::ssize_t>(q.edges().size()), py::ssize_t{2}});
  for (size_t e = 0; e < q.edges().size(); ++e) {
    array.mutable_at(static_cast<py::ssize_t>(e), 0) = q.edges()[e].from;
    array.mutable_at(static_cast<py::ssize_t>(e), 1) = q.edges()[e].to;
  }
  return array;
}

using places = py::array_t<uint32_t, py::array::c_style | py::array::forcecast>;

double makespan(question& q, const places& placed) {
  const std::span<const uint32_t> each(placed.data(), static_cast<size_t>(placed.size()));
  if (each.size() != q.asked().task_count ||
      std::any_of(each.begin(), each.end(), [&](uint32_t d) { return d >= q.asked().device_count; }))
    throw error(errc::invalid_argument, "a device is needed for each task");
  return q.makespan(each);
}

/// Returns the name alone of "Conv 'name'"; the whole text if there is none.
std::string name_of(std::string text) {
  const size_t first = text.find('\''), last = text.rfind('\'');
  return first < last && last != std::string::npos ? text.substr(first + 1, last - first - 1) : text;
}

py::list task_names(const question& q) {
  py::list names;
  for (uint32_t n = 0; n < q.asked().task_count; ++n)
    names.append(name_of(q.asked().task_name(q.asked().context, n)));
  return names;
}

template <class Of>
py::list by_device(const question& q, Of&& of) {
  py::list all;
  for (uint32_t d = 0; d < q.asked().device_count; ++d)
    all.append(of(q.asked().devices[d]));
  return all;
}

/// Asks a `troupe.Policy`; what it raises is reported.
int32_t ask(PyObject* policy, const policy_problem* problem, policy_result* result) {
  const py::gil_scoped_acquire locked;
  const auto q = std::make_shared<question>(problem);
  int32_t status = 1;
  try {
    const places answer = py::reinterpret_borrow<py::object>(policy).attr("_place")(q).cast<places>();
    std::copy_n(answer.data(), problem->task_count, result->device);
    status = 0;
  } catch (py::error_already_set& e) {
    problem->report(problem->context, 0, std::string(py::str(e.value())).c_str());
  }
  q->close();
  return status;
}

} // namespace

std::shared_ptr<const own_policy> own_policy_of(const py::handle& function) {
  const py::object policy = py::module_::import("troupe._policy").attr("policy")(function);
  const std::shared_ptr<const void> kept = keep_alive(policy);
  return std::make_shared<const own_policy>(
      policy.attr("name").cast<std::string>(), [kept](const policy_problem* problem, policy_result* result) {
        return ask(static_cast<PyObject*>(const_cast<void*>(kept.get())), problem, result);
      });
}

void bind_policy(py::module_& module) {
  py::class_<question, std::shared_ptr<question>>(module, "Question")
      .def("times",
           [](const py::object& self) {
             auto& q = self.cast<question&>();
             return view(q.times(), {q.asked().task_count, q.asked().device_count}, self);
           })
      .def("ranks",
           [](const py::object& self) {
             auto& q = self.cast<question&>();
             return view(q.ranks(), {q.asked().task_count}, self);
           })
      .def("edges", &ends_of)
      .def("bytes",
           [](question& q) {
             return by_edge<int64_t>(
                 q, [&](size_t e) { return q.asked().value_bytes(q.asked().context, q.edges()[e].value); });
           })
      .def("moves", [](question& q) { return by_edge<double>(q, [&](size_t e) { return q.mean_move_seconds(e); }); })
      .def("move_seconds", &question::move_seconds)
      .def("makespan", &makespan)
      .def("task_names", &task_names)
      .def("device_names",
           [](const question& q) { return by_device(q, [](const policy_device& d) { return std::string(d.name); }); })
      .def("memory",
           [](const question& q) { return by_device(q, [](const policy_device& d) { return d.memory_bytes; }); });
}

} // namespace troupe::python
