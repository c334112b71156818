// CategoryMapper and LabelEncoder of ai.onnx.ml: each element becomes what a table says of it, or a default.
//
// LabelEncoder of opset 1 knows classes_strings and their positions; from 2 on keys_* and values_* say what becomes
// what, from 4 on as tensors too. Of a key that is there twice the first value counts, from opset 4 on the last. All
// NaN are one key.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/strided_copy.hpp"
#include "tensor/convert.hpp"

#include <cmath>
#include <map>
#include <numeric>

namespace troupe {
namespace {

/// Keys and values as vectors of the same length, and one more value.
struct label_table {
  tensor keys, values, otherwise;
  bool last_counts = false;
};

template <class T>
tensor vector_of(const std::vector<T>& list) {
  return tensor::of<T>({static_cast<int64_t>(list.size())}, list);
}

void check(const label_table& t) {
  if (t.keys.size() != t.values.size())
    fail(errc::invalid_model, "{} keys, but {} values", t.keys.size(), t.values.size());
  if (t.otherwise.type() != t.values.type() || t.otherwise.size() != 1)
    fail(errc::invalid_model, "the default {}{} is not one value of {}", to_string(t.otherwise.type()),
         to_string(t.otherwise.dims()), to_string(t.values.type()));
}

/// What attributes `cats_strings` and `cats_int64s` say; which way follows from the operand.
label_table category_table(const attributes& attrs, dtype from) {
  tensor strings = vector_of(attrs.texts("cats_strings", {})), numbers = vector_of(attrs.integers("cats_int64s", {}));
  if (from == dtype::string)
    return {std::move(strings), std::move(numbers), tensor::scalar(attrs.integer("default_int64", -1)), true};
  return {std::move(numbers), std::move(strings), tensor::scalar(attrs.text("default_string", "_Unused")), true};
}

label_table class_table(const attributes& attrs, dtype from) {
  tensor strings = vector_of(attrs.texts("classes_strings", {})), places(dtype::int64, strings.dims());
  std::iota(places.mutable_data<int64_t>(), places.mutable_data<int64_t>() + places.size(), 0);
  if (from == dtype::string)
    return {std::move(strings), std::move(places), tensor::scalar(attrs.integer("default_int64", -1))};
  return {std::move(places), std::move(strings), tensor::scalar(attrs.text("default_string", "_Unused"))};
}

/// Returns what attribute `side`_strings, _int64s, _floats or _tensor holds.
tensor one_side(const attributes& attrs, const std::string& side) {
  std::vector<tensor> found;
  if (attrs.has(side + "_strings"))
    found.push_back(vector_of(attrs.texts(side + "_strings", {})));
  if (attrs.has(side + "_int64s"))
    found.push_back(vector_of(attrs.integers(side + "_int64s")));
  if (attrs.has(side + "_floats"))
    found.push_back(vector_of(attrs.reals(side + "_floats", {})));
  if (attrs.has(side + "_tensor"))
    found.push_back(attrs.tensor_value(side + "_tensor"));
  if (found.size() != 1)
    fail(errc::invalid_model, "of the attributes '{}_…' {} are there instead of one", side, found.size());
  return found[0];
}

tensor default_of(const attributes& attrs, dtype type) {
  if (attrs.has("default_tensor"))
    return attrs.tensor_value("default_tensor");
  tensor made(type, {});
  if (type == dtype::string)
    return tensor::scalar(attrs.text("default_string", "_Unused"));
  if (types::integers & set_of(type))
    convert(tensor::scalar(attrs.integer("default_int64", -1)).view(), made.mutable_ref());
  else
    convert(tensor::scalar(attrs.real("default_float", -0.f)).view(), made.mutable_ref());
  return made;
}

template <bool LastCounts>
label_table key_table(const attributes& attrs, dtype) {
  label_table t{one_side(attrs, "keys"), one_side(attrs, "values"), {}, LastCounts};
  t.otherwise = default_of(attrs, t.values.type());
  return t;
}

/// For floats, with NaN as the largest of all.
struct before {
  bool operator()(double a, double b) const { return std::isnan(b) ? !std::isnan(a) : a < b; }
};

/// Writes the values of all elements, whose keys are `T`s.
template <class T, class Less = std::less<T>>
void look_up(const label_table& table, const T* keys, const T* x, const mutable_view& y) {
  std::map<T, int64_t, Less> places;
  for (int64_t i = 0; i < table.keys.size(); ++i)
    if (const auto [at, added] = places.try_emplace(keys[i], i); !added && table.last_counts)
      at->second = i;
  visit_movable(y.type, [&]<class V>(type_tag<V>) {
    const V *values = table.values.data<V>(), *otherwise = table.otherwise.data<V>();
    for (int64_t i = 0; i < y.size(); ++i) {
      const auto found = places.find(x[i]);
      y.as<V>()[i] = found == places.end() ? *otherwise : values[found->second];
    }
  });
}

tensor as_type(const const_view& from, dtype to) {
  tensor made(to, shape(from.dims.begin(), from.dims.end()));
  convert(from, made.mutable_ref());
  return made;
}

using table_maker = label_table (*)(const attributes&, dtype);

template <table_maker Table>
void infer_mapped(infer_context& c) {
  const label_table t = Table(c.attrs(), c.type(0));
  check(t);
  if (t.keys.type() != c.type(0))
    fail(errc::invalid_model, "keys of {} cannot be found among elements of {}", to_string(t.keys.type()),
         to_string(c.type(0)));
  c.set_output(0, t.values.type(), c.dims(0));
}

template <table_maker Table>
void map_labels(kernel_context& c) {
  const const_view& x = c.input(0);
  const label_table t = Table(c.attrs(), x.type);
  if (x.type == dtype::string)
    return look_up(t, t.keys.data<std::string>(), x.as<std::string>(), c.output(0));
  const bool whole = (types::integers & set_of(x.type)) != 0;
  const dtype type = whole ? dtype::int64 : dtype::float64;
  const tensor keys = as_type(t.keys.view(), type), elements = as_type(x, type);
  if (whole)
    look_up(t, keys.data<int64_t>(), elements.data<int64_t>(), c.output(0));
  else
    look_up<double, before>(t, keys.data<double>(), elements.data<double>(), c.output(0));
}

template <table_maker Table>
constexpr op_def label_row(std::string_view name, int64_t since, dtype_set types) {
  return op_row(name, since, infer_mapped<Table>, map_labels<Table>,
                {.domain = machine_learning, .types = types, .axes = axes::elements});
}

constexpr dtype_set labels = set_of(dtype::string, dtype::int64);

constexpr auto ml_label_rows = std::to_array<op_def>({
    label_row<category_table>("CategoryMapper", 1, labels),
    label_row<class_table>("LabelEncoder", 1, labels),
    label_row<key_table<false>>("LabelEncoder", 2, labels | set_of(dtype::float32)),
    label_row<key_table<true>>("LabelEncoder", 4,
                               labels | set_of(dtype::float32, dtype::float64, dtype::int32, dtype::int16)),
});

} // namespace

extern constinit const op_table ml_labels_ops = ml_label_rows;

} // namespace troupe
