#include "value.hpp"

#include <cstring>

#include <pybind11/stl.h>

namespace troupe::python {
namespace {

dtype checked_type(int onnx_type) {
  const auto type = static_cast<dtype>(onnx_type);
  if (onnx_type < 1 || onnx_type > static_cast<int>(dtype::int2) || to_string(type) == "undefined" || onnx_type == 14 ||
      onnx_type == 15)
    throw error(errc::unsupported, "ONNX's element type " + std::to_string(onnx_type) + " is not supported");
  return type;
}

/// If not `copy`, the value is the array's memory where it fits: what is written to one is in the other.
value from_numpy(const py::object& object, bool copy) {
  return {.host = tensor_of(object, "value", copy), .writable = true};
}

/// Takes the bytes of an array for elements of a type that NumPy does not have; `dims` counts elements.
value from_bits(const py::array& bits, int onnx_type, shape dims) {
  const dtype type = checked_type(onnx_type);
  const tensor given = tensor_of(bits, "value", true);
  if (given.type() == dtype::string || type == dtype::string || given.bytes() != bytes_of(type, volume(dims)))
    throw error(errc::invalid_argument, "an array of " + std::to_string(bits.nbytes()) +
                                            " bytes cannot be elements of type " + std::string(to_string(type)) +
                                            " in the shape " + to_string(dims));
  return {.host = copy_of({type, std::move(dims), nullptr, given.data()}), .writable = true};
}

value empty(shape dims, int onnx_type) {
  tensor made(checked_type(onnx_type), std::move(dims));
  if (made.type() != dtype::string && made.bytes() > 0)
    std::memset(made.mutable_data(), 0, static_cast<size_t>(made.bytes()));
  return {.host = std::move(made), .writable = true};
}

/// Writes another value's bytes over this one's, whose memory others may have taken by its address or by DLPack.
void assign(value& to, const value& from) {
  const tensor bytes = from.fetch();
  if (to.device || !to.writable)
    throw error(errc::unsupported, "only a value in the host's memory, and no run's output, can be written to");
  if (to.type() != bytes.type() || to.dims() != bytes.dims())
    throw error(errc::invalid_argument, "a value of type " + std::string(to_string(bytes.type())) + " and shape " +
                                            to_string(bytes.dims()) + " does not fit one of type " +
                                            std::string(to_string(to.type())) + " and shape " + to_string(to.dims()));
  if (to.type() == dtype::string)
    std::copy_n(bytes.data<std::string>(), bytes.size(), to.host.mutable_data<std::string>());
  else if (bytes.bytes() > 0)
    std::memmove(to.host.mutable_data(), bytes.data(), static_cast<size_t>(bytes.bytes()));
}

/// Writes a value to memory that the caller vouches for.
void copy_to(const value& from, uintptr_t address) {
  const tensor bytes = from.fetch();
  if (bytes.type() == dtype::string || address == 0)
    throw error(errc::invalid_argument, "a buffer for an output has an address, and no strings");
  if (bytes.bytes() > 0)
    // NOLINTNEXTLINE(performance-no-int-to-ptr): in Python addresses are numbers
    std::memcpy(reinterpret_cast<void*>(address), bytes.data(), static_cast<size_t>(bytes.bytes()));
}

/// A tensor over memory that the caller vouches for and keeps.
value at_address(uintptr_t address, int onnx_type, shape dims) {
  const dtype type = checked_type(onnx_type);
  if (type == dtype::string || address == 0)
    throw error(errc::invalid_argument, "a buffer for an input has an address, and no strings");
  volume(dims);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): in Python addresses are numbers
  return {.host = {type, std::move(dims), nullptr, reinterpret_cast<const void*>(address)}};
}

uintptr_t address_of(const value& v) {
  const tensor bytes = v.device ? v.device->host() : v.host;
  if (!bytes.defined())
    throw error(errc::unsupported,
                "the value is in the memory of device '" + v.where() + "', which has no address here");
  return reinterpret_cast<uintptr_t>(bytes.data());
}

} // namespace

std::shared_ptr<engine> shared_engine::get() const {
  check_not_forked();
  if (!open)
    throw error(errc::cancelled, "the engine is closed");
  return open;
}

tensor value::fetch() const {
  if (!device)
    return host;
  const std::shared_ptr<engine> holder = on->get();
  const py::gil_scoped_release unlocked;
  return holder->fetch(device);
}

void bind_value(py::module_& module) {
  py::class_<value, std::shared_ptr<value>>(module, "Value", "A tensor in the host's memory or on a device.")
      .def_property_readonly("onnx_type", [](const value& v) { return static_cast<int>(v.type()); })
      .def_property_readonly("type_name", [](const value& v) { return std::string(to_string(v.type())); })
      .def_property_readonly("shape", [](const value& v) { return v.dims(); })
      .def_property_readonly("device", &value::where)
      .def_property_readonly("kept", [](const value& v) { return v.device != nullptr; })
      .def_property_readonly("nbytes", [](const value& v) { return bytes_of(v.type(), volume(v.dims())); })
      .def_property_readonly("address", &address_of)
      .def("numpy",
           [](const value& v) {
             const bool fetched = v.device && !v.device->host().defined(); // into memory of its own
             return array_of(v.fetch(), "value", !fetched);
           })
      .def("bits", [](const value& v) { return bits_of_tensor(v.fetch()); })
      .def("assign", &assign)
      .def("copy_to", &copy_to)
      .def("dlpack", &to_dlpack);
  module.def("value_from_numpy", &from_numpy, py::arg("array"), py::arg("copy") = true);
  module.def("value_from_bits", &from_bits);
  module.def("value_at_address", &at_address);
  module.def("empty_value", &empty);
  module.def("value_from_dlpack", &from_dlpack);
  module.def("copy_counters", [] {
    const copy_counters c = counters();
    py::dict shown;
    shown["borrowed_bytes"] = c.borrowed_bytes;
    shown["copied_bytes"] = c.copied_bytes;
    shown["handed_bytes"] = c.handed_bytes;
    shown["copied_out_bytes"] = c.copied_out_bytes;
    return shown;
  });
}

} // namespace troupe::python
