#include "support/catch.hpp"

#include "loader/models.hpp"
#include "loader/onnx_loader.hpp"
#include "ops/op.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("a loaded graph has the model's inputs, outputs and resolved nodes", "[loader]") {
  const graph g = load(relu_model());
  REQUIRE(g.nodes.size() == 1);
  CHECK(g.nodes[0].def->name == "Relu");
  REQUIRE(g.inputs.size() == 1);
  const value& x = g.values[g.inputs[0]];
  CHECK(x.name == "x");
  CHECK(x.type == dtype::float32);
  CHECK(to_string(*x.dims) == "[batch, features]");
  CHECK(g.nodes[0].outputs == g.outputs);
}

TEST_CASE("an initializer that is also an input is a constant", "[loader]") {
  auto m = relu_model();
  *m.mutable_graph()->add_initializer() = raw_floats("x", {1, 2}, {-1, 3});
  const graph g = load(m);
  CHECK(g.inputs.empty());
  const value& x = g.values[g.nodes[0].inputs[0]];
  REQUIRE(x.constant);
  CHECK(x.constant->leaf.values<float>()[1] == 3);
}

TEST_CASE("weights of a file are used where they lie, if they are aligned", "[loader]") {
  const scratch_folder folder;
  auto m = relu_model();
  // The name's length moves raw_data: some of these four files have it aligned.
  int in_place = 0;
  for (const char* name : {"w", "ww", "www", "wwww"}) {
    auto changed = m;
    *changed.mutable_graph()->add_initializer() = raw_floats(name, {1000}, std::vector<float>(1000, 2.5f));
    const auto file = folder.write("m.onnx", changed.SerializeAsString());
    const graph g = load_model(file);
    for (const value& v : g.values)
      if (v.name == name) {
        CHECK(v.constant->leaf.values<float>()[999] == 2.5f);
        const auto address = reinterpret_cast<uintptr_t>(v.constant->leaf.data());
        CHECK(address % 4 == 0);
        in_place += address % 64 != 0; // copies are aligned to 64 bytes
      }
  }
  CHECK(in_place >= 1);
}

namespace {

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

/// Writes relu_model() with an initializer "w" of `bytes` zeros in raw_data, as a file with a hole; the zeros start at a
/// multiple of 4. Field numbers are those of onnx.proto.
void write_large_model(const std::filesystem::path& file, uint64_t bytes) {
  auto m = relu_model();
  auto w = raw_floats("w", {static_cast<int64_t>(bytes / 4)}, {});
  w.clear_raw_data();
  std::string head;
  for (std::string padding; head.empty() || head.size() % 4 != 0; padding += ' ') {
    w.set_doc_string(padding);
    const std::string raw_head = '\x4a' + varint(bytes); // TensorProto.raw_data
    const std::string tensor = w.SerializeAsString() + raw_head;
    const std::string initializer = '\x2a' + varint(tensor.size() + bytes) + tensor;
    const std::string graph = m.graph().SerializeAsString() + initializer;
    auto rest = m;
    rest.clear_graph();
    head = rest.SerializeAsString() + '\x3a' + varint(graph.size() + bytes) + graph;
  }
  std::ofstream(file, std::ios::binary) << head;
  std::filesystem::resize_file(file, head.size() + bytes);
}

} // namespace

TEST_CASE("a model over protobuf's limit is loaded without copying its weights", "[loader]") {
  const scratch_folder folder;
  const auto file = folder.path() / "large.onnx";
  constexpr uint64_t bytes = uint64_t{5} << 30;
  write_large_model(file, bytes);
  const graph g = load_model(file);
  int found = 0;
  for (const value& v : g.values)
    if (v.name == "w") {
      ++found;
      CHECK(v.constant->leaf.bytes() == static_cast<int64_t>(bytes));
      CHECK(v.constant->leaf.data<float>()[bytes / 4 - 1] == 0);
    }
  CHECK(found == 1);
}
