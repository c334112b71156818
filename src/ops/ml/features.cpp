// Operators of ai.onnx.ml that prepare features: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer,
// Normalizer, Scaler as and ZipMap as compositions, and OneHotEncoder.
//
//   ArrayFeatureExtractor: columns of the last axis; of a vector, one row of them
//   Binarizer: 1 where x > threshold, else 0
//   FeatureVectorizer: columns side by side, in float32
//   Scaler: (x − offset) · scale in float32
//   Imputer: another value, of the feature or of all, where x is replaced_value
//   Normalizer: x / d, d the row's MAX, L1 or L2; x if d = 0
//   ZipMap: its operand, a column for each label, where others make a map of each row: as skl2onnx exports with
//     zipmap=False
//   OneHotEncoder: for each element a row of zeros with a 1 at its category; all zeros, or an error, if it is none
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/infer.hpp"
#include "ops/ml/scores.hpp"
#include "ops/operand.hpp"

#include <cmath>
#include <map>

namespace troupe {
namespace {

// -- ArrayFeatureExtractor

void expand_extractor(expansion& e) {
  const symbolic_shape x = e.dims(e.input(0));
  if (x.empty() || e.rank(e.input(1)) == 0)
    fail(errc::invalid_model, "features {} and indices {} must have axes", to_string(x), to_string(e.dims(e.input(1))));
  const value_id columns = e.reshape(e.input(1), {volume(std::span<const dim>(e.dims(e.input(1))))});
  const value_id rows = x.size() == 1 ? e.reshape(e.input(0), {1, x[0]}) : e.input(0);
  e.set_output(0, e.add("Gather", {rows, columns}, attributes_of({{"axis", int64_t{-1}}})));
}

// -- Binarizer

void expand_binarizer(expansion& e) {
  const dtype type = e.type(e.input(0));
  const float threshold = e.attrs().real("threshold", 0);
  // A whole number is greater than a threshold if it is greater than the whole number below that.
  const value_id least = e.scalar(type, types::integers & set_of(type) ? std::floor(threshold) : threshold);
  e.set_output(0, e.cast(e.add("Greater", {e.input(0), least}), type));
}

// -- FeatureVectorizer

void expand_vectorizer(expansion& e) {
  const size_t count = e.call().input_count();
  const auto stated = e.attrs().integers("inputdimensions", {});
  if (!stated.empty())
    require_count("inputdimensions", stated.size(), count);
  std::vector<value_id> parts;
  for (size_t i = 0; i < count; ++i) {
    const symbolic_shape d = e.dims(e.input(i));
    if (d.empty())
      fail(errc::invalid_model, "features without dims; [N, C, …] or [C] is needed");
    const dim rows = d.size() == 1 ? dim(1) : d[0];
    const dim features = volume(std::span(d).subspan(d.size() == 1 ? 0 : 1));
    if (!stated.empty())
      require_same(features, stated[i], "a number of features and what 'inputdimensions' says");
    value_id part = e.input(i);
    if (d.size() != 2)
      part = e.reshape(part, {rows, features});
    parts.push_back(e.cast(part, dtype::float32));
  }
  e.set_output(0, e.add("Concat", parts, attributes_of({{"axis", int64_t{1}}})));
}

// -- Imputer

/// Returns a constant of `type` from a list that has one element, or as many as x has features.
template <class T>
value_id by_feature(expansion& e, const char* name, const std::vector<T>& list, dtype type) {
  const symbolic_shape x = e.dims(e.input(0));
  const auto count = static_cast<int64_t>(list.size());
  if (count != 1 && (x.empty() || (x.back().is_constant() && !x.back().is(count))))
    fail(errc::invalid_model, "attribute '{}' has {} elements for features of shape {}", name, count, to_string(x));
  return e.cast(e.constant(tensor::of<T>({count}, list)), type);
}

void expand_imputer(expansion& e) {
  const dtype type = e.type(e.input(0));
  const bool whole = (types::integers & set_of(type)) != 0;
  const value_id instead =
      whole ? by_feature(e, "imputed_value_int64s", e.attrs().integers("imputed_value_int64s", {}), type)
            : by_feature(e, "imputed_value_floats", e.attrs().reals("imputed_value_floats", {}), type);
  const float replaced = e.attrs().real("replaced_value_float", 0);
  value_id missing = no_value;
  if (!whole && std::isnan(replaced))
    missing = e.add("IsNaN", {e.input(0)});
  else if (whole)
    missing = e.add("Equal", {e.cast(e.input(0), dtype::int64),
                              e.constant(tensor::scalar(e.attrs().integer("replaced_value_int64", 0)))});
  else
    missing = e.add("Equal", {e.input(0), e.scalar(type, replaced)});
  e.set_output(0, e.add("Where", {missing, instead, e.input(0)}));
}

// -- Normalizer

const char* reduction_of(const attributes& attrs) {
  const std::string norm = word_of(attrs, "norm", "MAX", {"MAX", "L1", "L2"});
  return norm == "MAX" ? "ReduceMax" : norm == "L1" ? "ReduceL1" : "ReduceL2";
}

void expand_normalizer(expansion& e) {
  const symbolic_shape d = e.dims(e.input(0));
  if (d.empty() || d.size() > 2)
    fail(errc::invalid_model, "features of shape {}; [N, C] or [C] is needed", to_string(d));
  const value_id x = e.cast(e.input(0), dtype::float32), zero = e.scalar(dtype::float32, 0);
  const value_id divisor = e.add(reduction_of(e.attrs()), {x, e.known({-1})});
  const value_id one = e.scalar(dtype::float32, 1);
  e.set_output(0, e.add("Div", {x, e.add("Where", {e.add("Equal", {divisor, zero}), one, divisor})}));
}

// -- Scaler

/// Integers and float64 are scaled in float64: the offset may take most of them away.
void expand_scaler(expansion& e) {
  const auto offset = e.attrs().reals("offset", {0}), scale = e.attrs().reals("scale", {1});
  const dtype work = e.type(e.input(0)) == dtype::float32 ? dtype::float32 : dtype::float64;
  const value_id x = e.cast(e.input(0), work);
  const value_id moved = e.add("Sub", {x, by_feature(e, "offset", offset, work)});
  e.set_output(0, e.cast(e.add("Mul", {moved, by_feature(e, "scale", scale, work)}), dtype::float32));
}

// -- OneHotEncoder

/// Numbers are compared as integers.
void infer_one_hot(infer_context& c) {
  const bool strings = c.type(0) == dtype::string;
  const size_t categories =
      strings ? c.attrs().texts("cats_strings", {}).size() : c.attrs().integers("cats_int64s", {}).size();
  if (categories == 0)
    fail(errc::invalid_model, "attribute '{}' has no categories", strings ? "cats_strings" : "cats_int64s");
  symbolic_shape dims = c.dims(0);
  dims.emplace_back(static_cast<int64_t>(categories));
  c.set_output(0, dtype::float32, std::move(dims));
}

/// `is_category(i)`: whether element `i` of `x` may be a category. Of a category that is there twice the last place
/// counts.
template <class T, class IsCategory>
void one_hot(kernel_context& c, const std::vector<T>& categories, const T* x, IsCategory is_category) {
  std::map<T, int64_t> places;
  for (size_t i = 0; i < categories.size(); ++i)
    places[categories[i]] = static_cast<int64_t>(i);
  const auto width = std::ssize(categories);
  auto* y = c.output(0).as<float>();
  std::fill_n(y, c.output(0).size(), 0.f);
  const bool zeros = c.attrs().integer("zeros", 1) != 0;
  for (int64_t i = 0; i < c.input(0).size(); ++i) {
    const auto found = is_category(i) ? places.find(x[i]) : places.end();
    if (found != places.end())
      y[i * width + found->second] = 1;
    else if (!zeros)
      fail(errc::invalid_input, "'{}' is not one of the {} categories",
           is_category(i) ? fmt::format("{}", x[i]) : "NaN", width);
  }
}

void one_hot_encoder(kernel_context& c) {
  const const_view& x = c.input(0);
  if (x.type == dtype::string)
    return one_hot(c, c.attrs().texts("cats_strings", {}), x.as<std::string>(), [](int64_t) { return true; });
  const shape dims(x.dims.begin(), x.dims.end());
  tensor whole(dtype::int64, dims), real(dtype::float64, dims);
  convert(x, whole.mutable_ref());
  convert(x, real.mutable_ref());
  // NaN, which becomes 0 as an integer, is not a category.
  one_hot(c, c.attrs().integers("cats_int64s", {}), whole.data<int64_t>(),
          [&](int64_t i) { return !std::isnan(real.data<double>()[i]); });
}

// -- ZipMap

void expand_zip_map(expansion& e) {
  const symbolic_shape x = e.dims(e.input(0));
  const size_t labels = class_labels(e.attrs(), "classlabels_int64s", "classlabels_strings").size();
  if (x.empty() || (x.back().is_constant() && x.back().constant() != static_cast<int64_t>(labels)))
    fail(errc::invalid_model, "{} labels for rows of shape {}", labels, to_string(x));
  e.set_output(0, e.add("Identity", {e.input(0)}));
}

// -- rows

constexpr op_def feature_row(std::string_view name, void (*expand)(expansion&), operand_range inputs = {1, 1},
                             dtype_set types = feature_types) {
  return composition_row(name, 1, expand, {.domain = machine_learning, .inputs = inputs, .types = types});
}

constexpr auto ml_feature_rows = std::to_array<op_def>({
    feature_row("ArrayFeatureExtractor", expand_extractor, {2, 2}, feature_types | types::string),
    feature_row("Binarizer", expand_binarizer),
    feature_row("FeatureVectorizer", expand_vectorizer, {1, 255}),
    feature_row("Imputer", expand_imputer),
    feature_row("Normalizer", expand_normalizer),
    op_row("OneHotEncoder", 1, infer_one_hot, one_hot_encoder,
           {.domain = machine_learning, .types = feature_types | types::string, .axes = axes::elements}),
    feature_row("Scaler", expand_scaler),
    feature_row("ZipMap", expand_zip_map, {1, 1}, set_of(dtype::float32)),
});

} // namespace

extern constinit const op_table ml_features_ops = ml_feature_rows;

} // namespace troupe
