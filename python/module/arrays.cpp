#include "arrays.hpp"

#include <pybind11/stl.h>

#include <atomic>
#include <cstring>

namespace troupe::python {
namespace {

struct atomic_counters {
  std::atomic<uint64_t> borrowed{0}, copied{0}, handed{0}, copied_out{0};
};
atomic_counters bytes;

struct numpy_row {
  dtype type;
  char kind;
  int size;
  const char* code;
};

constexpr numpy_row numpy_types[] = {
    {dtype::float32, 'f', 4, "f4"}, {dtype::float64, 'f', 8, "f8"}, {dtype::float16, 'f', 2, "f2"},
    {dtype::int8, 'i', 1, "i1"},    {dtype::int16, 'i', 2, "i2"},   {dtype::int32, 'i', 4, "i4"},
    {dtype::int64, 'i', 8, "i8"},   {dtype::uint8, 'u', 1, "u1"},   {dtype::uint16, 'u', 2, "u2"},
    {dtype::uint32, 'u', 4, "u4"},  {dtype::uint64, 'u', 8, "u8"},  {dtype::boolean, 'b', 1, "?"},
};

dtype type_of(const py::dtype& given) {
  for (const numpy_row& row : numpy_types)
    if (row.kind == given.kind() && row.size == given.itemsize())
      return row.type;
  return dtype::undefined;
}

bool is_text(const py::array& array) {
  const char kind = array.dtype().kind();
  return kind == 'O' || kind == 'U' || kind == 'S';
}

shape shape_of(const py::array& array) {
  return {array.shape(), array.shape() + array.ndim()};
}

/// str objects become UTF-8, bytes objects stay what they are.
tensor strings_of(const py::array& array, const std::string& name) {
  tensor strings(dtype::string, shape_of(array));
  auto* next = strings.mutable_data<std::string>();
  for (py::handle item : array.attr("ravel")().attr("tolist")()) {
    if (!py::isinstance<py::str>(item) && !py::isinstance<py::bytes>(item))
      throw error(errc::invalid_input, "input '" + name +
                                           "': an array of objects has to hold str or bytes, but holds " +
                                           std::string(py::str(py::type::of(item))));
    *next++ = py::isinstance<py::str>(item) ? utf8_of(item, "input '" + name + "'") : item.cast<std::string>();
    bytes.copied += next[-1].size();
  }
  return strings;
}

/// An array of what the caller gave as the input called `name`.
py::array to_array(py::handle object, const std::string& name) {
  if (py::isinstance<py::array>(object))
    return py::reinterpret_borrow<py::array>(object);
  const py::module_ numpy = py::module_::import("numpy");
  try {
    return numpy.attr(py::hasattr(object, "__dlpack__") ? "from_dlpack" : "asarray")(object);
  } catch (py::error_already_set& e) {
    if (!e.matches(PyExc_Exception)) // Ctrl-C
      throw;
    throw error(errc::invalid_input, "input '" + name + "': a " +
                                         std::string(py::str(py::type::of(object).attr("__name__"))) +
                                         " that NumPy makes no array of: " + std::string(py::str(e.value())));
  }
}

bool fits(const py::array& array) {
  constexpr int wanted = int{py::array::c_style} | int{py::detail::npy_api::NPY_ARRAY_ALIGNED_};
  return (array.flags() & wanted) == wanted && array.dtype().byteorder() != '>';
}

py::array texts_array(const tensor& value) {
  py::list all;
  for (const std::string& text : value.values<std::string>()) {
    bytes.copied_out += text.size();
    all.append(py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape")));
  }
  const py::module_ numpy = py::module_::import("numpy");
  py::object array = numpy.attr("empty")(py::int_(all.size()), "O");
  for (size_t i = 0; i < all.size(); ++i) // not numpy.array: it would look into what the items are
    array[py::int_(i)] = all[i];
  return array.attr("reshape")(py::cast(value.dims()));
}

py::array array_over(const tensor& value, const py::dtype& type, const std::vector<py::ssize_t>& dims) {
  py::capsule owner(new tensor(value), [](void* kept) { delete static_cast<tensor*>(kept); });
  return {type, dims, value.data(), owner};
}

} // namespace

copy_counters counters() {
  return {bytes.borrowed, bytes.copied, bytes.handed, bytes.copied_out};
}

std::optional<py::dtype> numpy_type(dtype type) {
  for (const numpy_row& row : numpy_types)
    if (row.type == type)
      return py::dtype(row.code);
  return type == dtype::string ? std::optional(py::dtype("O")) : std::nullopt;
}

tensor copy_of(const tensor& value) {
  tensor copy(value.type(), value.dims());
  if (value.type() == dtype::string)
    std::copy_n(value.data<std::string>(), value.size(), copy.mutable_data<std::string>());
  else if (value.bytes() > 0)
    std::memcpy(copy.mutable_data(), value.data(), static_cast<size_t>(value.bytes()));
  return copy;
}

tensor tensor_of(py::handle object, const std::string& name, bool copy) {
  py::array array = to_array(object, name);
  if (is_text(array))
    return strings_of(array, name);
  const dtype type = type_of(array.dtype());
  if (type == dtype::undefined)
    throw error(errc::invalid_input,
                "input '" + name + "': arrays of " + std::string(py::str(array.dtype())) +
                    " cannot be passed; for bfloat16, small floats and integers of less than 8 bits there is "
                    "OrtValue.ortvalue_from_numpy_with_onnx_type");
  const bool borrow = fits(array) && !copy;
  if (!borrow) {
    const py::dtype native(array.dtype().attr("newbyteorder")("="));
    array = py::module_::import("numpy").attr("array")(array, native, py::arg("order") = "C", py::arg("copy") = true);
  }
  (borrow ? bytes.borrowed : bytes.copied) += static_cast<uint64_t>(array.nbytes());
  shape dims = shape_of(array);
  const void* data = array.data();
  return {type, std::move(dims), keep_alive(std::move(array)), data};
}

py::array array_of(const tensor& value, const std::string& name, bool copy) {
  if (value.type() == dtype::string)
    return texts_array(value);
  const std::optional<py::dtype> type = numpy_type(value.type());
  if (!type)
    throw error(errc::unsupported, "'" + name + "' is of type " + std::string(to_string(value.type())) +
                                       ", which NumPy does not have: ask for it as an OrtValue (run_with_ort_values, "
                                       "io_binding), whose bits() are its bytes");
  (copy ? bytes.copied_out : bytes.handed) += static_cast<uint64_t>(value.bytes());
  return array_over(copy ? copy_of(value) : value, *type, {value.dims().begin(), value.dims().end()});
}

py::array bits_of_tensor(const tensor& value) {
  const int bits = troupe::bits_of(value.type());
  if (bits == 0)
    throw error(errc::unsupported, "strings have no bits of their own: numpy() gives them");
  const bool packed = bits < 8;
  const py::dtype type("u" + std::to_string(packed ? 1 : bits / 8));
  if (packed)
    return array_over(copy_of(value), type, {static_cast<py::ssize_t>(value.bytes())});
  return array_over(copy_of(value), type, {value.dims().begin(), value.dims().end()});
}

std::string utf8_of(py::handle text, const std::string& what) {
  const auto encoded =
      py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (encoded)
    return encoded;
  PyErr_Clear();
  throw error(errc::invalid_input, what + ": a str holds half of a surrogate pair, which UTF-8 has no bytes for");
}

std::span<const std::byte> span_of(const py::buffer_info& info) {
  return {static_cast<const std::byte*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)};
}

} // namespace troupe::python
