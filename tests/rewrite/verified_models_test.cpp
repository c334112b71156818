// Whole models, each step of their rewrite checked, and what the calls that it leaves say of their axes.
#include "loader/onnx_loader.hpp"
#include "support/axis_checks.hpp"
#include "support/catch.hpp"
#include "support/places.hpp"
#include "support/run_graph.hpp"
#include "support/verified_rewrite.hpp"
#include "troupe/tensor_file.hpp"

#include <cstdlib>
#include <cstring>
#include <iostream>

using namespace troupe;
using namespace troupe::test;

namespace {

const std::vector<rewrite_options> all_options{
    {.fuse = false}, {}, {.for_gpus = true}, {.precision = precision::fp16, .for_gpus = true}};

/// Rewrites a model in all ways; as in a session, values that decide shapes are constant. Returns whether that is
/// possible.
bool check_model(const graph& g, const std::vector<tensor>& inputs) {
  std::map<std::string, tensor> given;
  for (size_t i = 0; i < inputs.size(); ++i)
    given[g.values[g.inputs[i]].name] = inputs[i];
  for (rewrite_options options : all_options) {
    try {
      for (const std::string& name : host_inputs_of(g))
        options.constant_inputs[name] = given.at(name);
      for (const value_id v : g.inputs)
        if (!g.values[v].dims)
          options.input_dims[g.values[v].name] = to_symbolic(given.at(g.values[v].name).dims());
      rewrite(g, options);
    } catch (const error&) {
      return false; // a model that is refused
    }
    std::optional<graph> rewritten;
    CHECK_NOTHROW(rewritten.emplace(verified_rewrite(g, inputs, options, 1e-3)));
    if (!rewritten)
      continue;
    std::vector<tensor> left; // the others are constants
    for (const value_id v : rewritten->inputs)
      left.push_back(given.at(rewritten->values[v].name));
    axis_counts counts;
    CHECK(check_axes(*rewritten, left, counts) == "");
  }
  return true;
}

/// Elements for an input: few positions, or whatever; 3 for a symbol.
tensor made_up(const value& input) {
  shape dims;
  for (const dim& d : *input.dims)
    dims.push_back(d.is_constant() ? d.constant() : 3);
  if (input.type == dtype::float32)
    return random_tensor(dims, 1);
  tensor zeros(input.type, dims);
  std::memset(zeros.mutable_data(), 0, static_cast<size_t>(zeros.bytes()));
  return zeros;
}

/// The inputs of a case's first data set, in the model's order.
std::vector<tensor> inputs_of(const std::filesystem::path& folder, const graph& g) {
  std::map<std::string, tensor> found;
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    named_tensor read = read_pb(folder / "test_data_set_0" / fmt::format("input_{}.pb", i), g.values[g.inputs[i]].type);
    found[read.name.empty() ? g.values[g.inputs[i]].name : read.name] = read.value;
  }
  std::vector<tensor> inputs;
  for (const value_id v : g.inputs)
    inputs.push_back(found.at(g.values[v].name));
  return inputs;
}

} // namespace

TEST_CASE("every step of a rewrite keeps the results of the tests' models", "[rewrite]") {
  for (const char* name : {"small_cnn", "small_transformer", "decoder"}) {
    INFO(name);
    const graph g = load_model(std::filesystem::path(test_data()) / (std::string(name) + ".onnx"));
    std::vector<tensor> inputs;
    for (const value_id v : g.inputs)
      inputs.push_back(made_up(g.values[v]));
    CHECK(check_model(g, inputs));
  }
}

// TROUPE_CASES=FOLDER OF CASES troupe_tests "every step of a rewrite keeps what cases compute"
TEST_CASE("every step of a rewrite keeps what cases compute", "[rewrite][slow]") {
  const char* cases = std::getenv("TROUPE_CASES");
  if (!cases) {
    WARN("skipped: TROUPE_CASES does not name a folder of cases");
    return;
  }
  int checked = 0, refused = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cases)) {
    if (entry.path().filename() != "model.onnx")
      continue;
    const std::filesystem::path folder = entry.path().parent_path();
    INFO(folder.string());
    std::optional<graph> g;
    std::vector<tensor> inputs;
    try {
      g = load_model(entry.path());
      inputs = inputs_of(folder, *g);
    } catch (const std::exception&) { // the conformance tests decide whether that is right
    }
    ++(g && inputs.size() == g->inputs.size() && check_model(*g, inputs) ? checked : refused);
  }
  std::cout << checked << " rewritten, " << refused << " refused\n";
  CHECK(checked > 0);
}
