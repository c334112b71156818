// Why functions are refused, or accepted without effect: what a client reads in the status or the log, and a person in
// functions.txt.
#pragma once

namespace troupe::ort::reasons {

// Refused.
inline constexpr char adapters[] = "troupe has no adapters: merge them into the model";
inline constexpr char assignments[] = "nodes are not assigned to providers: troupe plan shows what runs where";
inline constexpr char compiled_models[] = "models are not compiled for a provider: load the ONNX file";
inline constexpr char cuda_devices[] = "devices are not CUDA's: TROUPE_DEVICES names those to use";
inline constexpr char custom_operators[] =
    "operators of the client cannot run on troupe's devices: models may use those of docs/operators.md";
inline constexpr char experiments[] = "there are no experimental functions";
inline constexpr char graphs[] = "models come from ONNX files, or bytes of one, and are not built or looked into here";
inline constexpr char opaque_values[] = "no operator of troupe takes opaque values";
inline constexpr char own_threads[] = "troupe makes its own threads: they belong to devices";
inline constexpr char provider_plugins[] = "troupe takes no plug-ins of providers: its own devices run the model";
inline constexpr char provider_structs[] = "the options are of a library that troupe does not use";
inline constexpr char sparse_tensors[] = "sparse tensors are not taken: give a dense one";
inline constexpr char streams[] = "queues and memory of a GPU are troupe's own, and not shared with the client";
inline constexpr char training[] = "troupe only infers";

// Accepted without effect.
inline constexpr char denormals[] = "devices compute with subnormal numbers as they are made to";
inline constexpr char denotations[] = "denotations of dims are not read: name the dim (AddFreeDimensionOverrideByName)";
inline constexpr char no_providers[] = "there is no provider that has it";
inline constexpr char no_telemetry[] = "troupe has no telemetry";
inline constexpr char other_providers[] = "troupe's own devices run the model: TROUPE_DEVICES names those to use";
inline constexpr char pooled_memory[] = "memory always comes from pools";
inline constexpr char shared_threads[] =
    "the engine's threads serve all its sessions, and sleep when they have no work";
inline constexpr char synchronous[] = "values are there when a call has returned";

} // namespace troupe::ort::reasons
