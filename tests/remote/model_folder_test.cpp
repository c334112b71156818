// Weights that are found in a folder of models by their contents.
#include "remote/model_folder.hpp"

#include "graph/weight.hpp"
#include "loader/models.hpp"
#include "support/catch.hpp"

#include <cstring>

using namespace troupe;
using namespace troupe::test;
using remote::model_folder;
namespace fs = std::filesystem;

namespace {

constexpr int64_t count = 40'000; // of floats, more than travel inline

tensor filled(float value, int64_t n = count) {
  const std::vector<float> values(static_cast<size_t>(n), value);
  return tensor::of<float>({n}, values);
}

std::string bytes_of_tensor(const tensor& t) {
  return {t.data<char>(), static_cast<size_t>(t.bytes())};
}

/// A model whose weight is `value` everywhere, in the file or beside it.
onnx::ModelProto model_with(float value, const std::string& external = "") {
  onnx::ModelProto m = relu_model();
  onnx::TensorProto& w = *m.mutable_graph()->add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(count);
  if (external.empty()) {
    w.set_raw_data(bytes_of_tensor(filled(value)));
  } else {
    w.set_data_location(onnx::TensorProto::EXTERNAL);
    auto& place = *w.add_external_data();
    place.set_key("location");
    place.set_value(external);
  }
  add_node(*m.mutable_graph(), "Neg", {"w"}, {"unused"});
  return m;
}

/// Whether the folder has the weight that is `value` everywhere.
bool has(model_folder& models, float value) {
  const hash128 wanted = content_hash(filled(value));
  const auto found = models.find(std::span(&wanted, 1));
  if (found.empty())
    return false;
  const tensor& t = found.at(wanted);
  CHECK(std::memcmp(t.data(), filled(value).data(), static_cast<size_t>(t.bytes())) == 0);
  return true;
}

} // namespace

TEST_CASE("weights are found in a folder's models, external data included", "[remote]") {
  const scratch_folder scratch;
  fs::create_directory(scratch.path() / "inside");
  scratch.write("a.onnx", model_with(1).SerializeAsString());
  scratch.write("inside/b.onnx", model_with(2, "b.data").SerializeAsString());
  scratch.write("inside/b.data", bytes_of_tensor(filled(2)));
  scratch.write("broken.onnx", "no model");
  model_folder models(scratch.path(), {});
  CHECK(has(models, 1));
  CHECK(has(models, 2));
  CHECK(!has(models, 3));
  const hash128 both[] = {content_hash(filled(1)), content_hash(filled(2)), content_hash(filled(3))};
  CHECK(models.find(both).size() == 2);
  CHECK(models.find({}).empty());
  scratch.write("c.onnx", model_with(3).SerializeAsString());
  CHECK(has(models, 3));
  scratch.write("inside/b.data", bytes_of_tensor(filled(4)));
  CHECK(has(models, 4));
  CHECK(!has(models, 2));
  fs::remove(scratch.path() / "a.onnx");
  CHECK(!has(models, 1));
}

TEST_CASE("an index of a folder's weights is a hint that may be wrong or missing", "[remote]") {
  const scratch_folder scratch, elsewhere;
  const fs::path index = elsewhere.path() / "index";
  scratch.write("a.onnx", model_with(1).SerializeAsString());
  CHECK(!has(*std::make_unique<model_folder>(scratch.path(), index), 2));
  std::ifstream file(index);
  std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string real = to_hex(content_hash(filled(1))), wrong = to_hex(content_hash(filled(2)));
  REQUIRE(text.find(real) != std::string::npos);
  text.replace(text.find(real), real.size(), wrong);
  elsewhere.write("index", text);
  model_folder misled(scratch.path(), index);
  CHECK(!has(misled, 1)); // a weight that is not in the index is not looked for again
  CHECK(!has(misled, 2)); // a wrong entry is noticed when it is used
  CHECK(has(misled, 1));
  for (const std::string& garbage : {std::string("\0\xff\n\n zz", 7), text + " " + real, std::string(100'000, 'a')}) {
    elsewhere.write("index", garbage);
    model_folder models(scratch.path(), index);
    CHECK(!has(models, 2));
    CHECK(has(models, 1));
  }
  model_folder nowhere(scratch.path() / "missing", index);
  CHECK(!has(nowhere, 1));
}
