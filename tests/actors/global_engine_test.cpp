// Engines that live until the process ends, as in programs that keep one in a static object.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/small_models.hpp"

#include <cerrno>
#include <cstdlib>
#include <future>
#include <sys/wait.h>
#include <thread>

using namespace troupe;

namespace {

/// x + w, where w [4] is in a separate file.
onnx::ModelProto sum_with_external() {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  auto& g = *m.mutable_graph();
  test::set_tensor_type(*g.add_input(), "x", {"n"});
  test::set_tensor_type(*g.add_output(), "y", {"n"});
  auto& w = *g.add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(4);
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *w.add_external_data();
  entry.set_key("location");
  entry.set_value("w.bin");
  test::add_node(g, "Add", {"x", "w"}, {"y"});
  return m;
}

/// Runs one test of this program in a new process; returns its exit status, 128 and more: a signal.
int status_of_test(const std::string& name) {
  // Its name, not /proc/self/exe, which is the loader if that was called by its own name (scripts/test does).
  const int status = std::system(fmt::format("'{}' '{}' > /dev/null 2>&1", program_invocation_name, name).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Uses an engine that ends with the process: objects that are made meanwhile must not end before it.
void use_global_engine(const std::string& device) {
  static engine global({.devices = {device}});
  static std::vector<session> sessions;
  const test::scratch_folder folder;
  folder.write("w.bin", std::string(16, '\0'));
  const auto file = folder.write("model.onnx", sum_with_external().SerializeAsString());
  sessions.push_back(global.load(file.string()));
  CHECK(sessions[0].run({{"x", test::floats({4}, {1, 2, 3, 4})}}).outputs.at("y").values<float>()[3] == 4);
}

} // namespace

// Hidden: processes for the tests below.
TEST_CASE("a process with an engine of its own, CPU", "[.global]") {
  use_global_engine("cpu");
}
TEST_CASE("a process with an engine of its own, GPU", "[.global]") {
  use_global_engine("vulkan:0");
}

TEST_CASE("an engine may live until the process ends", "[engine]") {
  CHECK(status_of_test("a process with an engine of its own\\, CPU") == 0);
}

TEST_CASE("an engine with a GPU may live until the process ends", "[engine][vulkan]") {
  CHECK(status_of_test("a process with an engine of its own\\, GPU") == 0);
}

TEST_CASE("engines with a GPU come and go", "[engine][vulkan][slow]") {
  for (int i = 0; i < 30; ++i)
    CHECK(engine({.devices = {"vulkan:0"}}).devices().at(0).name == "vulkan:0");
}

TEST_CASE("an engine may end on another thread than it was made on", "[engine]") {
  auto made = std::make_unique<engine>(engine_options{.devices = {"cpu"}});
  CHECK(made->load(test::chain(2)).run({{"x", test::floats({2, 3}, {1, 2, 3, 4, 5, 6})}}).outputs.size() == 1);
  made->fetch(made->put(test::floats({1}, {1}), "cpu"));
  auto ended = std::make_shared<std::promise<void>>();
  std::future<void> end = ended->get_future();
  std::thread([ended, last = std::move(made)]() mutable {
    last.reset();
    ended->set_value();
  }).detach(); // joining would wait for what may never end
  CHECK(end.wait_for(std::chrono::seconds(30)) == std::future_status::ready);
}
