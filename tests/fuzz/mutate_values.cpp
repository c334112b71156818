// Mutations of attributes, dims and constants.
#include "fuzz/mutation.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::test {
namespace {

constexpr size_t most_bytes = 2048; // of a made-up constant

/// Bytes of an element in raw_data; 4-bit elements share a byte.
size_t bytes_of_type(int type) {
  switch (type) {
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::UINT64: return 8;
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::UINT32: return 4;
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16: return 2;
    default: return 1;
  }
}

void put_element(mutation& m, char* to, int type) {
  const int64_t whole = m.integer();
  const float real = m.real();
  if (type == onnx::TensorProto::FLOAT)
    std::memcpy(to, &real, sizeof real);
  else
    std::memcpy(to, &whole, bytes_of_type(type));
}

size_t volume_of(const onnx::TensorProto& t) {
  size_t volume = 1;
  for (int64_t d : t.dims())
    volume *= static_cast<size_t>(std::clamp<int64_t>(d, 0, 4096));
  return volume;
}

/// Gives `t` as many elements as its dims say.
void fill_elements(mutation& m, onnx::TensorProto& t) {
  t.clear_int32_data();
  t.clear_float_data();
  t.clear_int64_data();
  t.clear_double_data();
  t.clear_uint64_data();
  t.clear_string_data();
  t.clear_external_data();
  t.clear_data_location();
  const size_t count = volume_of(t), size = bytes_of_type(t.data_type());
  if (t.data_type() == onnx::TensorProto::STRING) {
    t.clear_raw_data();
    for (size_t i = 0; i < std::min(count, most_bytes / 8); ++i)
      t.add_string_data(m.fresh_name());
    return;
  }
  const bool packed = t.data_type() == 21 || t.data_type() == 22;
  std::string bytes(std::min(packed ? (count + 1) / 2 : count * size, most_bytes), '\0');
  for (size_t at = 0; at + size <= bytes.size(); at += size)
    put_element(m, bytes.data() + at, t.data_type());
  t.set_raw_data(bytes);
}

/// Any constant: an initializer, or a tensor that an attribute holds.
onnx::TensorProto* constant(mutation& m) {
  onnx::GraphProto& g = m.graph();
  onnx::NodeProto* n = m.node(g);
  if (n && m.once_in(4))
    for (auto& a : *n->mutable_attribute())
      if (a.has_t())
        return a.mutable_t();
  return m.any_of(g.mutable_initializer());
}

onnx::AttributeProto* attribute(mutation& m) {
  onnx::NodeProto* n = m.node(m.graph());
  return n ? m.any_of(n->mutable_attribute()) : nullptr;
}

void change_list(mutation& m, onnx::AttributeProto& a) {
  const size_t what = m.below(4);
  if (what == 0)
    a.add_ints(m.integer());
  else if (what == 1 && a.ints_size() > 0)
    a.mutable_ints()->RemoveLast();
  else if (int64_t* i = m.any_of(a.mutable_ints()))
    *i = m.once_in(2) ? m.integer() : m.extent();
}

onnx::TensorShapeProto* any_shape(mutation& m) {
  onnx::GraphProto& g = m.graph();
  onnx::ValueInfoProto* info = m.any_of(m.once_in(3) ? g.mutable_output() : g.mutable_input());
  return info ? info->mutable_type()->mutable_tensor_type()->mutable_shape() : nullptr;
}

} // namespace

void fill_tensor(mutation& m, onnx::TensorProto& t, int type, const std::vector<int64_t>& dims) {
  t.set_data_type(type);
  t.clear_dims();
  for (int64_t d : dims)
    t.add_dims(d);
  fill_elements(m, t);
}

namespace mutations {

void change_attribute(mutation& m) {
  onnx::AttributeProto* a = attribute(m);
  if (!a)
    return;
  switch (a->type()) {
    case onnx::AttributeProto::INT: a->set_i(m.once_in(2) ? m.integer() : m.extent()); break;
    case onnx::AttributeProto::FLOAT: a->set_f(m.real()); break;
    case onnx::AttributeProto::STRING: a->set_s(m.once_in(2) ? m.op() : ""); break;
    case onnx::AttributeProto::INTS: change_list(m, *a); break;
    case onnx::AttributeProto::FLOATS: a->add_floats(m.real()); break;
    case onnx::AttributeProto::TENSOR: fill_tensor(m, *a->mutable_t(), m.type(), {m.extent()}); break;
    default: break;
  }
  if (m.once_in(20))
    a->set_type(static_cast<onnx::AttributeProto::AttributeType>(m.below(15)));
}

void copy_attribute(mutation& m) {
  const onnx::AttributeProto* a = attribute(m);
  onnx::NodeProto* to = m.node(m.graph());
  if (!a || !to || a->ByteSizeLong() > most_bytes)
    return;
  const onnx::AttributeProto copy = *a; // it may be the node's own
  *to->add_attribute() = copy;
}

void remove_attribute(mutation& m) {
  onnx::NodeProto* n = m.node(m.graph());
  if (n && n->attribute_size() > 0) {
    n->mutable_attribute()->SwapElements(static_cast<int>(m.below(static_cast<size_t>(n->attribute_size()))),
                                         n->attribute_size() - 1);
    n->mutable_attribute()->RemoveLast();
  }
}

void change_dim(mutation& m) {
  onnx::TensorShapeProto* shape = any_shape(m);
  if (!shape)
    return;
  auto* d = m.any_of(shape->mutable_dim());
  switch (m.below(6)) {
    case 0: shape->add_dim()->set_dim_value(m.extent()); break;
    case 1:
      if (d)
        shape->mutable_dim()->RemoveLast();
      break;
    case 2:
      if (d)
        d->Clear();
      break;
    case 3:
      if (d)
        d->set_dim_param(m.once_in(2) ? "n" : "m");
      break;
    default:
      if (d)
        d->set_dim_value(m.extent());
  }
}

void change_type(mutation& m) {
  onnx::GraphProto& g = m.graph();
  onnx::ValueInfoProto* info = m.any_of(m.once_in(3) ? g.mutable_output() : g.mutable_input());
  if (!info)
    return;
  if (m.once_in(5))
    info->clear_type();
  else if (m.once_in(5))
    info->mutable_type()->mutable_tensor_type()->clear_shape();
  else
    info->mutable_type()->mutable_tensor_type()->set_elem_type(m.type());
}

void change_elements(mutation& m) {
  onnx::TensorProto* t = constant(m);
  if (!t)
    return;
  if (t->raw_data().empty() || m.once_in(4))
    return fill_elements(m, *t);
  std::string& bytes = *t->mutable_raw_data();
  const size_t size = bytes_of_type(t->data_type());
  if (bytes.size() >= size)
    put_element(m, bytes.data() + m.below(bytes.size() / size) * size, t->data_type());
}

void reshape_initializer(mutation& m) {
  onnx::TensorProto* t = constant(m);
  if (!t)
    return;
  if (t->dims_size() == 0 || m.once_in(4))
    t->add_dims(m.extent());
  else if (m.once_in(4))
    t->mutable_dims()->RemoveLast();
  else
    *m.any_of(t->mutable_dims()) = m.extent();
  if (m.once_in(4))
    t->set_data_type(m.type());
  if (!m.once_in(4))
    fill_elements(m, *t);
}

/// A constant where an operator may look for a shape, axes, pads, a scale …
void give_constant(mutation& m) {
  onnx::GraphProto& g = m.graph();
  onnx::NodeProto* n = m.node(g);
  if (!n)
    return;
  onnx::TensorProto t;
  t.set_name(m.fresh_name());
  const auto count = static_cast<int64_t>(m.below(5));
  fill_tensor(m, t, m.once_in(2) ? int{onnx::TensorProto::INT64} : m.type(),
              m.once_in(3) ? std::vector<int64_t>{} : std::vector<int64_t>{count});
  *g.add_initializer() = t;
  std::string* input = m.any_of(n->mutable_input());
  if (input && !m.once_in(3))
    *input = t.name();
  else
    n->add_input(t.name());
}

/// Makes a constant's elements external data.
void move_outside(mutation& m) {
  onnx::TensorProto* t = constant(m);
  if (!t)
    return;
  const size_t wanted = volume_of(*t) * bytes_of_type(t->data_type());
  if (!m.once_in(4))
    t->clear_raw_data();
  t->set_data_location(onnx::TensorProto::EXTERNAL);
  t->clear_external_data();
  const auto add = [&](const char* key, const std::string& value) {
    auto& entry = *t->add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", m.location());
  if (m.once_in(2))
    add("offset", std::to_string(m.once_in(3) ? m.integer() : static_cast<int64_t>(m.below(64))));
  if (m.once_in(2))
    add("length", std::to_string(m.once_in(3) ? m.integer() : static_cast<int64_t>(wanted)));
}

/// Replaces a constant in its readers by the result of a chain of operators on it: a longer recipe.
void compute_constant(mutation& m) {
  static const std::vector<std::string> chained{"Neg", "Add",  "Transpose", "Identity", "Cast",    "Concat", "Expand",
                                                "Mul", "Tile", "Shape",     "Slice",    "Squeeze", "Abs",    "Reshape"};
  onnx::GraphProto& g = m.graph();
  const onnx::TensorProto* t = m.any_of(g.mutable_initializer());
  if (!t)
    return;
  std::string last = t->name();
  const size_t length = m.once_in(6) ? m.below(64) : 1 + m.below(4);
  const std::string op = m.any_of(chained);
  for (size_t i = 0; i < length; ++i) {
    auto& n = *g.add_node();
    n.set_op_type(m.once_in(3) ? m.any_of(chained) : op);
    n.add_input(last);
    if (!m.once_in(3))
      n.add_input(last);
    n.add_output(last = m.fresh_name());
  }
  for (auto& n : *g.mutable_node())
    for (auto& input : *n.mutable_input())
      if (input == t->name() && m.once_in(3))
        input = last;
  if (m.once_in(3))
    g.add_output()->set_name(last);
}

void change_variant(mutation& m) {
  m.model().set_model_version(static_cast<int64_t>(m.below(128)));
}

} // namespace mutations
} // namespace troupe::test
