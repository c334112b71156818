// CastMap and DictVectorizer of ai.onnx.ml: what a map holds, as a tensor [1, n].
//
// A map is two vectors of the same length: input 0 has its keys, each once, input 1 their values. The loader makes
// these of what files have as one input (loader/graph_builder.hpp).
//   CastMap: the values in the order of their keys, int64 (DENSE); or value k at place k of max_map, 0 or "0.f" where
//     there is no such key (SPARSE)
//   DictVectorizer: the values of the keys of a vocabulary, in its order, 0 or an empty string of those that are not
//     there
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"
#include "ops/strided_copy.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace troupe {
namespace {

/// Throws unless the inputs are a map.
void check_map(const infer_context& c) {
  if (c.rank(0) != 1 || c.rank(1) != 1)
    fail(errc::invalid_model, "keys {} and values {} are not vectors", to_string(c.dims(0)), to_string(c.dims(1)));
  require_same(c.dims(0)[0], c.dims(1)[0], "keys and values of a map");
}

/// Returns where the value of each key is, in the order of the keys.
template <class K>
std::map<K, int64_t> places_by_key(const kernel_context& c) {
  if (c.input(0).size() != c.input(1).size())
    fail(errc::invalid_input, "a map of {} keys and {} values", c.input(0).size(), c.input(1).size());
  std::map<K, int64_t> places;
  const K* keys = c.input(0).as<K>();
  for (int64_t i = 0; i < c.input(0).size(); ++i)
    if (!places.emplace(keys[i], i).second)
      fail(errc::invalid_input, "the key {} is there twice", keys[i]);
  return places;
}

// -- CastMap

struct cast_map_options {
  dtype to;
  bool sparse;
  int64_t places; // of a sparse map
};

cast_map_options parse_cast_map(const attributes& attrs) {
  const std::string to = word_of(attrs, "cast_to", "TO_FLOAT", {"TO_FLOAT", "TO_INT64", "TO_STRING"}),
                    form = word_of(attrs, "map_form", "DENSE", {"DENSE", "SPARSE"});
  const dtype type = to == "TO_FLOAT" ? dtype::float32 : to == "TO_INT64" ? dtype::int64 : dtype::string;
  const cast_map_options o{type, form == "SPARSE", attrs.integer("max_map", 1)};
  if (o.sparse && (o.places < 1 || o.places > std::numeric_limits<int32_t>::max()))
    fail(errc::invalid_model, "attribute 'max_map' is {}", o.places);
  return o;
}

void infer_cast_map(infer_context& c) {
  const cast_map_options o = parse_cast_map(c.attrs());
  check_map(c);
  if (c.type(1) != dtype::float32 && c.type(1) != dtype::string)
    fail(errc::invalid_model, "values of {}; float32 or string is needed", to_string(c.type(1)));
  c.set_output(0, o.to, {1, o.sparse ? dim(o.places) : c.dims(0)[0]});
}

/// Returns the values in another type; strings of numbers have six digits after the point.
tensor cast_values(const const_view& values, dtype to) {
  tensor made(to, {values.size()});
  if (values.type == dtype::float32 && to == dtype::string)
    std::transform(values.as<float>(), values.as<float>() + values.size(), made.mutable_data<std::string>(),
                   [](float x) { return fmt::format("{:f}", x); });
  else
    convert(values, made.mutable_ref());
  return made;
}

void cast_map(kernel_context& c) {
  const cast_map_options o = parse_cast_map(c.attrs());
  const auto places = places_by_key<int64_t>(c);
  const tensor values = cast_values(c.input(1), o.to);
  const auto write = [&]<class T>(type_tag<T>, auto otherwise) {
    T* y = c.output(0).as<T>();
    if (o.sparse)
      std::fill_n(y, o.places, T(otherwise));
    int64_t next = 0;
    for (const auto& [key, at] : places) {
      if (o.sparse && (key < 0 || key >= o.places))
        fail(errc::invalid_input, "the key {} is outside the {} of attribute 'max_map'", key, o.places);
      y[o.sparse ? key : next++] = values.data<T>()[at];
    }
  };
  if (o.to == dtype::string)
    write(type_tag<std::string>{}, "0.f");
  else if (o.to == dtype::int64)
    write(type_tag<int64_t>{}, 0);
  else
    write(type_tag<float>{}, 0);
}

// -- DictVectorizer

/// Returns the vocabulary as a vector.
tensor vocabulary_of(const attributes& attrs) {
  const auto strings = attrs.texts("string_vocabulary", {});
  const auto numbers = attrs.integers("int64_vocabulary", {});
  if (strings.empty() == numbers.empty())
    fail(errc::invalid_model, "one of the attributes 'string_vocabulary' and 'int64_vocabulary' is needed");
  return strings.empty() ? tensor::of<int64_t>({std::ssize(numbers)}, numbers)
                         : tensor::of<std::string>({std::ssize(strings)}, strings);
}

constexpr dtype_set vectorized_types = set_of(dtype::int64, dtype::float32, dtype::float64, dtype::string);

void infer_dict_vectorizer(infer_context& c) {
  const tensor vocabulary = vocabulary_of(c.attrs());
  check_map(c);
  if (vocabulary.type() != c.type(0) || !(vectorized_types & set_of(c.type(1))))
    fail(errc::invalid_model, "a map from {} to {}; the vocabulary is of {}", to_string(c.type(0)),
         to_string(c.type(1)), to_string(vocabulary.type()));
  c.set_output(0, c.type(1), {1, vocabulary.size()});
}

template <class K>
void vectorize(kernel_context& c, std::span<const K> vocabulary) {
  const auto places = places_by_key<K>(c);
  visit_movable(c.input(1).type, [&]<class T>(type_tag<T>) {
    T* y = c.output(0).as<T>();
    for (const K& key : vocabulary) {
      const auto found = places.find(key);
      *y++ = found == places.end() ? T() : c.input(1).as<T>()[found->second];
    }
  });
}

void dict_vectorizer(kernel_context& c) {
  const tensor vocabulary = vocabulary_of(c.attrs());
  if (vocabulary.type() == dtype::string)
    vectorize(c, vocabulary.values<std::string>());
  else
    vectorize(c, vocabulary.values<int64_t>());
}

constexpr std::string_view of_map = "makes one row of a map";

constexpr auto ml_map_rows = std::to_array<op_def>({
    op_row("CastMap", 1, infer_cast_map, cast_map,
           {.domain = machine_learning, .inputs = {2, 2}, .types = set_of(dtype::int64), .mixes = of_map}),
    op_row(
        "DictVectorizer", 1, infer_dict_vectorizer, dict_vectorizer,
        {.domain = machine_learning, .inputs = {2, 2}, .types = set_of(dtype::int64, dtype::string), .mixes = of_map}),
});

} // namespace

extern constinit const op_table ml_maps_ops = ml_map_rows;

} // namespace troupe
