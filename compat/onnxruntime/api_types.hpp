// What ONNX Runtime's C interface is made of besides functions: kinds, codes and structs that clients fill. The names,
// numbers and layouts are those that its documentation states for versions 1.14 to 1.30; programs are compiled with
// them. Structs that only providers of others read are declared and not defined: here nothing looks into them.
#pragma once

#include <cstddef>
#include <cstdint>

// NOLINTBEGIN(bugprone-reserved-identifier): all names here are other people's
extern "C" {

enum OrtErrorCode {
  ORT_OK = 0,
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
  ORT_NO_SUCHFILE = 3,
  ORT_NO_MODEL = 4,
  ORT_ENGINE_ERROR = 5,
  ORT_RUNTIME_EXCEPTION = 6,
  ORT_INVALID_PROTOBUF = 7,
  ORT_MODEL_LOADED = 8,
  ORT_NOT_IMPLEMENTED = 9,
  ORT_INVALID_GRAPH = 10,
  ORT_EP_FAIL = 11,
  ORT_MODEL_LOAD_CANCELED = 12,
  ORT_MODEL_REQUIRES_COMPILATION = 13,
  ORT_NOT_FOUND = 14,
  ORT_DEVICE_RESET = 15,
};

/// Element types. Up to 23 they have the numbers of ONNX's TensorProto; the last three do not.
enum ONNXTensorElementDataType {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 = 4,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 = 5,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL = 9,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 = 12,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 = 13,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64 = 14,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128 = 15,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN = 17,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ = 18,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2 = 19,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ = 20,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4 = 21,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 = 22,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 = 23,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2 = 24,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2 = 25,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0 = 26,
};

enum ONNXType {
  ONNX_TYPE_UNKNOWN = 0,
  ONNX_TYPE_TENSOR = 1,
  ONNX_TYPE_SEQUENCE = 2,
  ONNX_TYPE_MAP = 3,
  ONNX_TYPE_OPAQUE = 4,
  ONNX_TYPE_SPARSETENSOR = 5,
  ONNX_TYPE_OPTIONAL = 6,
};

enum OrtLoggingLevel {
  ORT_LOGGING_LEVEL_VERBOSE = 0,
  ORT_LOGGING_LEVEL_INFO = 1,
  ORT_LOGGING_LEVEL_WARNING = 2,
  ORT_LOGGING_LEVEL_ERROR = 3,
  ORT_LOGGING_LEVEL_FATAL = 4,
};

enum GraphOptimizationLevel {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_LAYOUT = 3,
  ORT_ENABLE_ALL = 99,
};

enum ExecutionMode { ORT_SEQUENTIAL = 0, ORT_PARALLEL = 1 };

enum OrtLanguageProjection {
  ORT_PROJECTION_C = 0,
  ORT_PROJECTION_CPLUSPLUS = 1,
  ORT_PROJECTION_CSHARP = 2,
  ORT_PROJECTION_PYTHON = 3,
  ORT_PROJECTION_JAVA = 4,
  ORT_PROJECTION_WINML = 5,
  ORT_PROJECTION_NODEJS = 6,
};

enum OrtAllocatorType {
  OrtInvalidAllocator = -1,
  OrtDeviceAllocator = 0,
  OrtArenaAllocator = 1,
  OrtReadOnlyAllocator = 2,
};

enum OrtMemType { OrtMemTypeCPUInput = -2, OrtMemTypeCPUOutput = -1, OrtMemTypeDefault = 0 };

enum OrtDeviceMemoryType { OrtDeviceMemoryType_DEFAULT = 0, OrtDeviceMemoryType_HOST_ACCESSIBLE = 5 };

enum OrtMemoryInfoDeviceType {
  OrtMemoryInfoDeviceType_CPU = 0,
  OrtMemoryInfoDeviceType_GPU = 1,
  OrtMemoryInfoDeviceType_FPGA = 2,
  OrtMemoryInfoDeviceType_NPU = 3,
};

enum OrtHardwareDeviceType {
  OrtHardwareDeviceType_CPU = 0,
  OrtHardwareDeviceType_GPU = 1,
  OrtHardwareDeviceType_NPU = 2,
};

enum OrtExecutionProviderDevicePolicy {
  OrtExecutionProviderDevicePolicy_DEFAULT = 0,
  OrtExecutionProviderDevicePolicy_PREFER_CPU = 1,
  OrtExecutionProviderDevicePolicy_PREFER_NPU = 2,
  OrtExecutionProviderDevicePolicy_PREFER_GPU = 3,
  OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE = 4,
  OrtExecutionProviderDevicePolicy_MAX_EFFICIENCY = 5,
  OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER = 6,
};

enum OrtCompiledModelCompatibility {
  OrtCompiledModelCompatibility_EP_NOT_APPLICABLE = 0,
  OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL = 1,
  OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION = 2,
  OrtCompiledModelCompatibility_EP_UNSUPPORTED = 3,
};

enum OrtSparseFormat : unsigned;
enum OrtSparseIndicesFormat : unsigned;
enum OrtOpAttrType : unsigned;
enum OrtExternalMemoryHandleType : unsigned;
enum OrtExternalSemaphoreType : unsigned;

// Handles.
struct OrtEnv;
struct OrtStatus;
struct OrtMemoryInfo;
struct OrtIoBinding;
struct OrtSession;
struct OrtValue;
struct OrtRunOptions;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtMapTypeInfo;
struct OrtSequenceTypeInfo;
struct OrtOptionalTypeInfo;
struct OrtSessionOptions;
struct OrtModelMetadata;
struct OrtThreadingOptions;
struct OrtArenaCfg;
struct OrtPrepackedWeightsContainer;
struct OrtTensorRTProviderOptionsV2;
struct OrtCUDAProviderOptionsV2;
struct OrtCANNProviderOptions;
struct OrtDnnlProviderOptions;
struct OrtHardwareDevice;
struct OrtEpDevice;
struct OrtKeyValuePairs;

// Handles and structs of what is refused, or has no effect.
struct OrtCustomOpDomain;
struct OrtCustomOp;
struct OrtKernelInfo;
struct OrtKernelContext;
struct OrtOp;
struct OrtOpAttr;
struct OrtLogger;
struct OrtShapeInferContext;
struct OrtLoraAdapter;
struct OrtValueInfo;
struct OrtNode;
struct OrtGraph;
struct OrtModel;
struct OrtModelCompilationOptions;
struct OrtSyncStream;
struct OrtExternalInitializerInfo;
struct OrtExternalResourceImporter;
struct OrtExternalMemoryHandle;
struct OrtExternalMemoryDescriptor;
struct OrtExternalTensorDescriptor;
struct OrtExternalSemaphoreHandle;
struct OrtExternalSemaphoreDescriptor;
struct OrtGraphicsInteropConfig;
struct OrtDeviceEpIncompatibilityDetails;
struct OrtEpAssignedSubgraph;
struct OrtEpAssignedNode;
struct OrtThreadPoolCallbacksConfig;
struct OrtCUDAProviderOptions;
struct OrtROCMProviderOptions;
struct OrtTensorRTProviderOptions;
struct OrtMIGraphXProviderOptions;
struct OrtOpenVINOProviderOptions;
struct OrtCustomHandleType;
struct OrtTrainingApi;
struct OrtEpApi;
struct OrtModelEditorApi;
struct OrtCompileApi;
struct OrtInteropApi;

// Functions of the client.
typedef void (*OrtLoggingFunction)(void* param, OrtLoggingLevel severity, const char* category, const char* logid,
                                   const char* code_location, const char* message);
/// `status` is the callback's to release, if it is not null; `outputs` is what the caller gave.
typedef void (*RunAsyncCallbackFn)(void* user_data, OrtValue** outputs, size_t num_outputs, OrtStatus* status);
typedef void (*OrtExperimentalFnPtr)();
typedef const OrtCustomHandleType* OrtCustomThreadHandle;
typedef OrtCustomThreadHandle (*OrtCustomCreateThreadFn)(void* options, void (*work)(void*), void* argument);
typedef void (*OrtCustomJoinThreadFn)(OrtCustomThreadHandle handle);
typedef OrtStatus* (*OrtWriteBufferFunc)(void* state, const void* buffer, size_t bytes);
typedef OrtStatus* (*OrtGetInitializerLocationFunc)(void* state, const char* name, const OrtValue* value,
                                                    const OrtExternalInitializerInfo* info,
                                                    OrtExternalInitializerInfo** made);
typedef OrtStatus* (*EpSelectionDelegate)(const OrtEpDevice** devices, size_t count, const OrtKeyValuePairs* model,
                                          const OrtKeyValuePairs* runtime, const OrtEpDevice** selected, size_t most,
                                          size_t* selected_count, void* state);

/// An allocator, ours or the client's. A client's has only the members of its `version`, so here no member after `Info`
/// is called.
struct OrtAllocator {
  uint32_t version;
  void* (*Alloc)(OrtAllocator* self, size_t bytes);
  void (*Free)(OrtAllocator* self, void* data);
  const OrtMemoryInfo* (*Info)(const OrtAllocator* self);
  void* (*Reserve)(OrtAllocator* self, size_t bytes);                              // since 18
  OrtStatus* (*GetStats)(const OrtAllocator* self, OrtKeyValuePairs** out);        // since 23
  void* (*AllocOnStream)(OrtAllocator* self, size_t bytes, OrtSyncStream* stream); // since 23
  OrtStatus* (*Shrink)(OrtAllocator* self);                                        // since 25
};

/// What CreateEnvWithOptions takes; pointers may be null.
struct OrtEnvCreationOptions {
  uint32_t version;
  int32_t logging_severity_level;
  const char* log_id;
  OrtLoggingFunction custom_logging_function;
  void* custom_logging_param;
  const OrtThreadingOptions* threading_options;
  const OrtKeyValuePairs* config_entries;
};
}
// NOLINTEND(bugprone-reserved-identifier)
