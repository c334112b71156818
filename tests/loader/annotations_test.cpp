#include "loader/annotations.hpp"

#include "loader/models.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

// Messages of ONNX IR 11, which the installed classes do not know.

std::string number(int field, int64_t value) {
  std::string made(1, static_cast<char>(field << 3));
  for (auto rest = static_cast<uint64_t>(value);; rest >>= 7) {
    made.push_back(static_cast<char>(rest < 0x80 ? rest : (rest & 0x7f) | 0x80));
    if (rest < 0x80)
      return made;
  }
}

std::string text(int field, const std::string& content) {
  return static_cast<char>(field << 3 | 2) + number(0, static_cast<int64_t>(content.size())).substr(1) + content;
}

void add_configuration(onnx::ModelProto& m, const std::string& name, int64_t count,
                       const std::vector<std::string>& devices = {}) {
  std::string made = text(1, name) + number(2, count);
  for (const std::string& d : devices)
    made += text(3, d);
  add_field(m, 26, made);
}

/// A ShardingSpecProto; of `axis` if there are several parts.
std::string spec(const std::string& tensor, const std::vector<int64_t>& devices, int64_t axis = 0, int64_t parts = 1) {
  std::string made = text(1, tensor);
  for (int64_t d : devices)
    made += number(2, d);
  return text(2, parts == 1 ? made : made + text(4, number(1, axis) + text(2, number(3, parts))));
}

/// x → Relu 'first' → h → Neg (no name) → y
onnx::ModelProto two_nodes() {
  onnx::ModelProto m = relu_model();
  auto& first = *m.mutable_graph()->mutable_node(0);
  first.set_name("first");
  first.set_output(0, "h");
  add_node(*m.mutable_graph(), "Neg", {"h"}, {"y"});
  return m;
}

void annotate(onnx::ModelProto& m, int node, const std::string& id, const std::string& rest) {
  add_field(*m.mutable_graph()->mutable_node(node), 10, text(1, id) + rest);
}

const node_annotation& only(const std::shared_ptr<const model_annotations>& read) {
  REQUIRE(read);
  REQUIRE(read->configurations.size() == 1);
  REQUIRE(read->configurations[0].nodes.size() == 1);
  return read->configurations[0].nodes[0];
}

/// What is read of the first node of a model for two devices.
node_annotation read_one(const std::string& rest) {
  onnx::ModelProto m = two_nodes();
  add_configuration(m, "pair", 2);
  annotate(m, 0, "pair", rest);
  return only(load(m).annotations);
}

} // namespace

TEST_CASE("a file's devices, stages and shardings are read", "[loader][annotations]") {
  onnx::ModelProto m = two_nodes();
  CHECK_FALSE(load(m).annotations);
  add_configuration(m, "unused", 7);
  add_configuration(m, "pair", 2, {"vulkan:0", "cpu"});
  CHECK_FALSE(load(m).annotations);
  annotate(m, 0, "pair", spec("h", {1}) + spec("x", {0}));
  annotate(m, 1, "pair", spec("y", {1, 0}, -1, 2) + number(3, 1));
  annotate(m, 1, "of another file", number(3, 1));
  const auto read = load(m).annotations;
  REQUIRE(read);
  REQUIRE(read->configurations.size() == 1);
  const device_configuration& c = read->configurations[0];
  CHECK(c.name == "pair");
  CHECK(c.count == 2);
  CHECK(c.devices == std::vector<std::string>{"vulkan:0", "cpu"});
  CHECK(c.team == std::vector<int64_t>{1, 0});
  const node_annotation* first = c.find("renamed", {"h"});
  REQUIRE(first);
  CHECK(first->device == 1);
  CHECK_FALSE(first->stage);
  const node_annotation* second = c.find("y", {});
  REQUIRE(second);
  CHECK_FALSE(second->device);
  CHECK(second->stage == 1);
  REQUIRE(second->shardings.size() == 1);
  CHECK(second->shardings[0].tensor == "y");
  CHECK(second->shardings[0].axis == -1);
  CHECK(c.find("renamed", {"other"}) == nullptr);

  annotate(m, 0, "pair", number(3, 0));
  CHECK_FALSE(load(m).annotations->key == read->key);
}

TEST_CASE("devices of a sharding may be packed", "[loader][annotations]") {
  const std::string packed = text(2, text(1, "h") + text(2, number(0, 1).substr(1)));
  CHECK(read_one(packed).device == 1);
}

TEST_CASE("shardings that cannot be followed are said to be so", "[loader][annotations]") {
  CHECK(read_one(spec("h", {2})).refused == "devices that the configuration does not have");
  CHECK(read_one(spec("h", {-1})).refused == "devices that the configuration does not have");
  CHECK(read_one(spec("h", {0, 1}, 0, 4)).refused == "parts that are not one for each device");
  CHECK(read_one(spec("h", {0, 0}, 0, 2)).refused == "parts that are not one for each device");
  CHECK(read_one(spec("z", {0})).refused == "tensors that are not the node's");
  CHECK(read_one(number(3, 2)).refused == "a pipeline stage that the configuration has no device for");
  const std::string groups = text(2, text(1, "h") + number(2, 0) + text(3, number(1, 0)));
  CHECK(read_one(groups).refused == "device groups");
  const std::string dim = text(4, text(2, number(3, 2)));
  CHECK(read_one(text(2, text(1, "h") + number(2, 0) + number(2, 1) + dim + dim)).refused ==
        "parts along several dims");
  CHECK(read_one(spec("h", {0, 1}, 0, 2) + spec("x", {1, 0}, 0, 2)).refused ==
        "parts on other devices than those of the nodes before");
  CHECK(read_one(spec("h", {0, 1})).refused.empty());
}

TEST_CASE("damaged annotations are an error that says so", "[loader][annotations]") {
  onnx::ModelProto m = two_nodes();
  add_configuration(m, "pair", 2);
  annotate(m, 0, "pair", "\x12\x7f");
  CHECK_THAT(error_of([&] { load(m); }), Contains("invalid_model"));
}

TEST_CASE("a model is written with annotations, and nothing else changes", "[loader][annotations]") {
  const scratch_folder folder;
  onnx::ModelProto m = two_nodes();
  add_configuration(m, "old", 3);
  annotate(m, 0, "old", number(3, 2));
  device_configuration c{.name = "troupe", .count = 3, .devices = {"a", "b", "c"}, .team = {0, 2}};
  c.add({.shardings = {{"h", 1}, {"of a fused node", 0}}}, "fused", {"h"});
  c.add({.device = 1, .stage = 1}, "fused_2", {"y"});
  const auto in = folder.write("m.onnx", m.SerializeAsString()), out = folder.path() / "out.onnx";
  write_annotated(in, c, out);
  const graph g = load_model(out);
  CHECK(g.nodes.size() == 2);
  REQUIRE(g.annotations);
  REQUIRE(g.annotations->configurations.size() == 1);
  const device_configuration& read = g.annotations->configurations[0];
  CHECK(read.name == "troupe");
  CHECK(read.count == 3);
  CHECK(read.devices == c.devices);
  CHECK(read.team == c.team);
  REQUIRE(read.nodes.size() == 2);
  REQUIRE(read.nodes[0].shardings.size() == 1);
  CHECK(read.nodes[0].shardings[0].axis == 1);
  CHECK(read.nodes[1].device == 1);
  CHECK(read.nodes[1].stage == 1);
  onnx::ModelProto written;
  std::ifstream file(out, std::ios::binary);
  REQUIRE(written.ParseFromIstream(&file));
  CHECK(written.ir_version() == 11);
  written.set_ir_version(8);
  for (auto* message : {static_cast<google::protobuf::Message*>(&written),
                        static_cast<google::protobuf::Message*>(written.mutable_graph()->mutable_node(0)),
                        static_cast<google::protobuf::Message*>(written.mutable_graph()->mutable_node(1))})
    message->GetReflection()->MutableUnknownFields(message)->Clear();
  CHECK(written.SerializeAsString() == two_nodes().SerializeAsString());
}

TEST_CASE("a node that is fused away has the annotation of its readers, if they agree", "[loader][annotations]") {
  const scratch_folder folder;
  onnx::ModelProto m = two_nodes();
  add_node(*m.mutable_graph(), "Abs", {"h"}, {"z"});
  const auto in = folder.write("m.onnx", m.SerializeAsString()), out = folder.path() / "out.onnx";
  const auto device_of_first = [&](int64_t of_y, int64_t of_z) {
    device_configuration c{.name = "troupe", .count = 2};
    c.add({.device = of_y}, "y", {"y"});
    c.add({.device = of_z}, "z", {"z"});
    write_annotated(in, c, out);
    const graph g = load_model(out);
    const node_annotation* first = g.annotations->configurations[0].find("first", {"h"});
    return first ? first->device : std::nullopt;
  };
  CHECK(device_of_first(1, 1) == 1);
  CHECK_FALSE(device_of_first(1, 0));
}

TEST_CASE("an annotated model is not written over its model, nor away from its weights", "[loader][annotations]") {
  const scratch_folder folder, elsewhere;
  onnx::ModelProto m = two_nodes();
  auto& t = *m.mutable_graph()->add_initializer();
  t.set_name("w");
  t.set_data_type(onnx::TensorProto::FLOAT);
  t.add_dims(1);
  t.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto in = folder.write("m.onnx", m.SerializeAsString());
  const device_configuration c{.name = "troupe", .count = 1};
  CHECK_THAT(error_of([&] { write_annotated(in, c, in); }), Contains("to a file of its own"));
  CHECK_THAT(error_of([&] { write_annotated(in, c, elsewhere.path() / "m.onnx"); }),
             Contains("weights in files beside it"));
  write_annotated(in, c, folder.path() / "out.onnx");
  CHECK(std::filesystem::exists(folder.path() / "out.onnx"));
}
