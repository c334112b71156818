// Inputs and outputs that are bound to a session's names, for many runs.
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/run.hpp"
#include "compat/onnxruntime/status.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::ort {

/// An output: a copy of the client's value, over the same memory, or what the last run made.
struct bound_output {
  std::string name;
  bool is_given = false; // else a run makes it
  OrtValue value = {.kind = ONNX_TYPE_OPTIONAL};
};

} // namespace troupe::ort

struct OrtIoBinding {
  OrtSession* session;
  std::map<std::string, OrtValue> inputs;
  std::vector<troupe::ort::bound_output> outputs; // in the order in which they were bound
};

namespace troupe::ort {
namespace {

constexpr char binding_name[] = "the binding";

bound_output& output_of(OrtIoBinding& binding, const char* name) {
  const char* names[] = {&given(name, "the name of the output")};
  check_outputs(living(binding.session, "the binding's session"), names, 1);
  const auto found = std::ranges::find(binding.outputs, names[0], &bound_output::name);
  return found != binding.outputs.end() ? *found : binding.outputs.emplace_back(bound_output{.name = name});
}

} // namespace

OrtStatus* CreateIoBinding(OrtSession* session, OrtIoBinding** out) noexcept {
  return guarded(
      [&] { given(out, "the place for the binding") = make_handle<OrtIoBinding>(&living(session, "the session")); });
}

void ReleaseIoBinding(OrtIoBinding* binding) noexcept {
  release_handle(binding, "ReleaseIoBinding");
}

OrtStatus* BindInput(OrtIoBinding* binding, const char* name, const OrtValue* value) noexcept {
  return guarded([&] {
    OrtIoBinding& b = given(binding, binding_name);
    const std::string known = &given(name, "the name of the input");
    if (!living(b.session, "the binding's session").input_types.contains(known))
      reject("the model has no input '" + known + "'");
    b.inputs[known] = given(value, "the value");
  });
}

OrtStatus* BindOutput(OrtIoBinding* binding, const char* name, const OrtValue* value) noexcept {
  return guarded([&] {
    bound_output& output = output_of(given(binding, binding_name), name);
    output.is_given = given(value, "the value").kind == ONNX_TYPE_TENSOR;
    output.value = *value;
  });
}

/// Values come to the host, whichever device made them: memory of another is refused.
OrtStatus* BindOutputToDevice(OrtIoBinding* binding, const char* name, const OrtMemoryInfo* memory) noexcept {
  return guarded([&] {
    if (!given(memory, "the memory info").is_host())
      throw api_error(ORT_NOT_IMPLEMENTED, "BindOutputToDevice: memory of '" + memory->name + "' is not the host's");
    bound_output& output = output_of(given(binding, binding_name), name);
    output.is_given = false;
    output.value = {.kind = ONNX_TYPE_OPTIONAL};
  });
}

void ClearBoundInputs(OrtIoBinding* binding) noexcept {
  if (binding)
    binding->inputs.clear();
}

void ClearBoundOutputs(OrtIoBinding* binding) noexcept {
  if (binding)
    binding->outputs.clear();
}

/// The names one after the other, without ends, and the length of each.
OrtStatus* GetBoundOutputNames(const OrtIoBinding* binding, OrtAllocator* allocator, char** text, size_t** lengths,
                               size_t* count) noexcept {
  return guarded([&] {
    const auto& outputs = given(binding, binding_name).outputs;
    char*& names = given(text, "the place for the names");
    size_t*& sizes = given(lengths, "the place for the lengths");
    given(count, "the place for the count") = outputs.size();
    names = nullptr;
    sizes = nullptr;
    if (outputs.empty())
      return;
    std::string all;
    for (const bound_output& output : outputs)
      all += output.name;
    sizes = static_cast<size_t*>(allocate(allocator, outputs.size() * sizeof(size_t)));
    std::ranges::transform(outputs, sizes, [](const bound_output& o) { return o.name.size(); });
    names = copy_text(allocator, all);
  });
}

OrtStatus* GetBoundOutputValues(const OrtIoBinding* binding, OrtAllocator* allocator, OrtValue*** out,
                                size_t* count) noexcept {
  return guarded([&] {
    const auto& outputs = given(binding, binding_name).outputs;
    OrtValue**& list = given(out, "the place for the values");
    given(count, "the place for the count") = outputs.size();
    list = nullptr;
    if (outputs.empty())
      return;
    list = static_cast<OrtValue**>(allocate(allocator, outputs.size() * sizeof(void*)));
    std::ranges::transform(outputs, list, [](const bound_output& o) { return make_handle<OrtValue>(o.value); });
  });
}

OrtStatus* RunWithBinding(OrtSession* session, const OrtRunOptions* options, const OrtIoBinding* binding) noexcept {
  return guarded([&] {
    OrtIoBinding& b = const_cast<OrtIoBinding&>(given(binding, binding_name)); // the interface's: outputs go into it
    if (&living(session, "the session") != b.session)
      reject("the binding is of another session");
    std::vector<const char*> input_names, output_names;
    std::vector<const OrtValue*> inputs;
    for (const auto& [name, value] : b.inputs) {
      input_names.push_back(name.c_str());
      inputs.push_back(&value);
    }
    for (const bound_output& output : b.outputs)
      output_names.push_back(output.name.c_str());
    std::vector<OrtValue> made = run_model(*session, options, {input_names.data(), inputs.data(), inputs.size()},
                                           output_names.data(), output_names.size());
    for (size_t i = 0; i < made.size(); ++i)
      if (b.outputs[i].is_given)
        fill(b.outputs[i].value, made[i], output_names[i]);
      else
        b.outputs[i].value = std::move(made[i]);
  });
}

} // namespace troupe::ort
