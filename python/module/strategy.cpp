#include "strategy.hpp"

#include "keep_alive.hpp"

#include <pybind11/stl.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace troupe::python {
namespace {

/// Asks a stream's `choose`: a replica and a number of rows, or none. What it raises is reported.
int32_t ask(PyObject* choose, const strategy_stream* stream, const strategy_offer* offer, strategy_answer* answer) {
  const py::gil_scoped_acquire locked;
  try {
    py::list replicas(stream->replica_count);
    for (uint32_t r = 0; r < stream->replica_count; ++r) {
      const strategy_replica& is = stream->replicas[r];
      replicas[r] =
          py::make_tuple(r, (is.flags & strategy_replica_living) != 0, (is.flags & strategy_replica_free) != 0,
                         is.in_flight, is.own_rows, is.busy_s, is.fixed_s, is.row_s);
    }
    const py::object given = py::reinterpret_borrow<py::object>(choose)(replicas, offer->rows, offer->may_be_cut != 0,
                                                                        stream->waiting_rows, stream->now_s);
    if (const auto taken = given.cast<std::optional<std::pair<uint32_t, int64_t>>>())
      std::tie(answer->replica, answer->rows) = *taken;
    return 0;
  } catch (py::error_already_set& e) {
    stream->report(stream->context, std::string(py::str(e.value())).c_str());
    return 1;
  }
}

own_strategy::chooser open_stream(PyObject* strategy) {
  const py::gil_scoped_acquire locked;
  try {
    py::object choose = py::reinterpret_borrow<py::object>(strategy).attr("_open")();
    return
        [kept = keep_alive(std::move(choose))](const strategy_stream* s, const strategy_offer* o, strategy_answer* a) {
          return ask(static_cast<PyObject*>(const_cast<void*>(kept.get())), s, o, a);
        };
  } catch (py::error_already_set& e) {
    throw std::runtime_error(py::str(e.value())); // the other one must not leave without the GIL
  }
}

} // namespace

std::shared_ptr<const own_strategy> own_strategy_of(const py::handle& given) {
  const py::object strategy = py::module_::import("troupe._strategy").attr("strategy")(given);
  return std::make_shared<const own_strategy>(
      strategy.attr("name").cast<std::string>(), [kept = keep_alive(strategy)](uint32_t) {
        return open_stream(static_cast<PyObject*>(const_cast<void*>(kept.get())));
      });
}

} // namespace troupe::python
