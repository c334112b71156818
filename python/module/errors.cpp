#include "errors.hpp"

#include "troupe/session.hpp"

#include <new>

namespace troupe::python {
namespace {

/// Messages may quote a file's names, which need not be UTF-8.
py::object text_of(const char* message) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::char_traits<char>::length(message)), "replace"));
}

py::object make(std::string_view code, const char* message, const py::object& repeat_from = py::none()) {
  return py::module_::import("troupe.errors")
      .attr("of_code")(py::str(code.data(), code.size()), text_of(message), repeat_from);
}

} // namespace

py::object exception_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const state_rolled_back& e) {
    return make("state_rolled_back", e.what(), py::int_(e.repeat_from()));
  } catch (const error& e) {
    return make(to_string(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return make(to_string(errc::out_of_memory), "the host is out of memory");
  } catch (py::error_already_set& e) {
    return e.value();
  } catch (const std::exception& e) {
    return make(to_string(errc::internal), e.what());
  }
}

void translate_errors() {
  // NOLINTNEXTLINE(performance-unnecessary-value-param): pybind11 says so
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown)
        std::rethrow_exception(thrown);
    } catch (const error&) {
      const py::object exception = exception_of(thrown);
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    } // all others are pybind11's to translate
  });
}

} // namespace troupe::python
