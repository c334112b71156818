// What a model says of itself.
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/memory.hpp"
#include "compat/onnxruntime/session.hpp"
#include "compat/onnxruntime/status.hpp"

struct OrtModelMetadata {
  troupe::model_metadata facts;
};

namespace troupe::ort {
namespace {

OrtStatus* text_of_model(const OrtModelMetadata* about, std::string model_metadata::*member, OrtAllocator* allocator,
                         char** out) noexcept {
  return guarded([&] {
    const model_metadata& facts = given(about, "the metadata").facts;
    given(out, "the place for the text") = copy_text(allocator, facts.*member);
  });
}

} // namespace

OrtStatus* SessionGetModelMetadata(const OrtSession* session, OrtModelMetadata** out) noexcept {
  return guarded([&] {
    given(out, "the place for the metadata") = make_handle<OrtModelMetadata>(living(session, "the session").about);
  });
}

void ReleaseModelMetadata(OrtModelMetadata* about) noexcept {
  release_handle(about, "ReleaseModelMetadata");
}

OrtStatus* ModelMetadataGetProducerName(const OrtModelMetadata* about, OrtAllocator* allocator, char** out) noexcept {
  return text_of_model(about, &model_metadata::producer_name, allocator, out);
}

OrtStatus* ModelMetadataGetGraphName(const OrtModelMetadata* about, OrtAllocator* allocator, char** out) noexcept {
  return text_of_model(about, &model_metadata::graph_name, allocator, out);
}

OrtStatus* ModelMetadataGetGraphDescription(const OrtModelMetadata* about, OrtAllocator* allocator,
                                            char** out) noexcept {
  return text_of_model(about, &model_metadata::graph_description, allocator, out);
}

OrtStatus* ModelMetadataGetDomain(const OrtModelMetadata* about, OrtAllocator* allocator, char** out) noexcept {
  return text_of_model(about, &model_metadata::domain, allocator, out);
}

OrtStatus* ModelMetadataGetDescription(const OrtModelMetadata* about, OrtAllocator* allocator, char** out) noexcept {
  return text_of_model(about, &model_metadata::description, allocator, out);
}

OrtStatus* ModelMetadataGetVersion(const OrtModelMetadata* about, int64_t* out) noexcept {
  return guarded([&] { given(out, "the place for the version") = given(about, "the metadata").facts.version; });
}

/// A key that the file does not have is not an error: the text is null then.
OrtStatus* ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata* about, OrtAllocator* allocator, const char* key,
                                                char** out) noexcept {
  return guarded([&] {
    const auto& properties = given(about, "the metadata").facts.properties;
    const auto found = properties.find(&given(key, "the key"));
    given(out, "the place for the text") = found == properties.end() ? nullptr : copy_text(allocator, found->second);
  });
}

OrtStatus* ModelMetadataGetCustomMetadataMapKeys(const OrtModelMetadata* about, OrtAllocator* allocator, char*** keys,
                                                 int64_t* count) noexcept {
  return guarded([&] {
    const auto& properties = given(about, "the metadata").facts.properties;
    char**& list = given(keys, "the place for the keys");
    given(count, "the place for their number") = static_cast<int64_t>(properties.size());
    list = nullptr;
    if (properties.empty())
      return;
    list = static_cast<char**>(allocate(allocator, properties.size() * sizeof(char*)));
    size_t i = 0;
    for (const auto& [key, value] : properties)
      list[i++] = copy_text(allocator, key);
  });
}

} // namespace troupe::ort
