// Inputs and outputs that are bound.
#include "compat/onnxruntime/client.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

owned<OrtIoBinding> bind(OrtSession* session) {
  OrtIoBinding* binding = nullptr;
  must(ort().CreateIoBinding(session, &binding));
  return {binding, {ort().ReleaseIoBinding}};
}

/// Returns the values of the bound outputs.
std::vector<std::vector<float>> bound_values(const OrtIoBinding* binding) {
  OrtValue** values = nullptr;
  size_t count = 0;
  must(ort().GetBoundOutputValues(binding, allocator(), &values, &count));
  std::vector<std::vector<float>> all;
  for (size_t i = 0; i < count; ++i)
    all.push_back(floats(own(values[i]).get()));
  must(ort().AllocatorFree(allocator(), values));
  return all;
}

} // namespace

TEST_CASE("onnxruntime: bound values serve many runs", "[onnxruntime]") {
  const auto env = make_env();
  const auto session = make_session(env.get(), onnx_bytes::add(), make_options().get());
  std::vector<float> a{1, 2}, b{10, 20}, c{0, 0};
  const auto first = over(a, {1, 2}), second = over(b, {1, 2}), target = over(c, {1, 2});
  const auto binding = bind(session.get());
  must(ort().BindInput(binding.get(), "a", first.get()));
  must(ort().BindInput(binding.get(), "b", second.get()));

  SECTION("into the client's memory") {
    must(ort().BindOutput(binding.get(), "c", target.get()));
    must(ort().RunWithBinding(session.get(), nullptr, binding.get()));
    CHECK(c == std::vector<float>{11, 22});
    a[0] = 5;
    must(ort().RunWithBinding(session.get(), nullptr, binding.get()));
    CHECK(c == std::vector<float>{15, 22});
  }
  SECTION("into memory that the run makes") {
    must(ort().BindOutputToDevice(binding.get(), "c", cpu().get()));
    must(ort().RunWithBinding(session.get(), nullptr, binding.get()));
    CHECK(bound_values(binding.get()) == std::vector<std::vector<float>>{{11, 22}});
    std::vector<float> wider_a{1, 2, 3, 4}, wider_b{1, 1, 1, 1}; // another shape, another value
    must(ort().BindInput(binding.get(), "a", over(wider_a, {2, 2}).get()));
    must(ort().BindInput(binding.get(), "b", over(wider_b, {2, 2}).get()));
    must(ort().RunWithBinding(session.get(), nullptr, binding.get()));
    CHECK(bound_values(binding.get()) == std::vector<std::vector<float>>{{2, 3, 4, 5}});
    char* names = nullptr;
    size_t *lengths = nullptr, count = 0;
    must(ort().GetBoundOutputNames(binding.get(), allocator(), &names, &lengths, &count));
    REQUIRE(count == 1);
    CHECK(std::string(names, lengths[0]) == "c");
    must(ort().AllocatorFree(allocator(), names));
    must(ort().AllocatorFree(allocator(), lengths));
  }
  SECTION("not of names that there are not, nor without outputs") {
    CHECK_THAT(problem_of(ort().BindInput(binding.get(), "z", first.get())).message, Contains("'z'"));
    CHECK_THAT(problem_of(ort().BindOutput(binding.get(), "z", target.get())).message, Contains("'z'"));
    CHECK(problem_of(ort().RunWithBinding(session.get(), nullptr, binding.get())).code == ORT_INVALID_ARGUMENT);
    must(ort().BindOutput(binding.get(), "c", target.get()));
    ort().ClearBoundInputs(binding.get());
    CHECK(problem_of(ort().RunWithBinding(session.get(), nullptr, binding.get())).code == ORT_INVALID_ARGUMENT);
    const auto other = make_session(env.get(), onnx_bytes::add(), make_options().get());
    CHECK(problem_of(ort().RunWithBinding(other.get(), nullptr, binding.get())).code == ORT_INVALID_ARGUMENT);
  }
}
