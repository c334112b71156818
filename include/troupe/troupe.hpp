// START HERE: troupe's C++ interface. This header includes all others.
//
//   troupe::engine engine;                                  // all devices of this machine
//   auto session = engine.load("resnet50.onnx");            // parse, rewrite; planned at the first run
//   auto result = session.run({{"input", image}});          // host tensors in, host tensors out
//   result.outputs.at("logits").values<float>();
//
// | header              | what it is                                                                        |
// |---------------------|-----------------------------------------------------------------------------------|
// | `engine.hpp`        | the devices of this process; load a model, move values                            |
// | `session.hpp`       | a model, ready to run: run, run_async, bind outputs to the next run's inputs, plan |
// | `options.hpp`       | how engines, models and runs are made                                             |
// | `option_words.hpp`  | the words for options in text                                                     |
// | `results.hpp`       | outputs, costs, traces, counters                                                  |
// | `tensor.hpp`        | element types, shapes, host tensors                                               |
// | `tensor_file.hpp`   | tensors in .npy, .npz and .pb files                                               |
// | `float16.hpp`       | 16-bit floating point elements                                                    |
// | `device.hpp`        | devices, their counters, values that are on them                                  |
// | `model_file.hpp`    | models in bytes; what a file says of itself                                       |
// | `inspect.hpp`       | which outputs are shared; traces as pages                                         |
// | `monitor.hpp`       | what slows runs down; throughput, devices and pools over time                     |
// | `simulation.hpp`    | runs in virtual time, on devices that need not exist                              |
// | `task_graph.hpp`    | task graphs without operators, to simulate                                        |
// | `statistics.hpp`    | is one setting really faster: intervals, paired tests                             |
// | `model_builder.hpp` | models built in code                                                              |
// | `built_model.hpp`   | models that do not come from a file                                               |
// | `attribute.hpp`     | attributes of operators                                                           |
// | `dim.hpp`           | dims that may be symbolic                                                         |
// | `policy.hpp`        | placement policies of your own, in shared libraries                               |
// | `own_policy.hpp`    | placement policies of your own, in your program                                   |
// | `strategy.hpp`      | strategies of your own, in shared libraries                                       |
// | `own_strategy.hpp`  | strategies of your own, in your program                                           |
// | `error.hpp`         | the one exception type, with its kinds                                            |
// | `export.hpp`        | what a shared libtroupe exports                                                   |
//
// Errors: everything throws `troupe::error` and, if the host is out of memory, std::bad_alloc. Thread-safety: engines
// and sessions may be used from several threads at once; plain data and builders may not.
#pragma once

#include "troupe/engine.hpp"
#include "troupe/inspect.hpp"
#include "troupe/model_builder.hpp"
#include "troupe/model_file.hpp"
#include "troupe/monitor.hpp"
#include "troupe/option_words.hpp"
#include "troupe/own_policy.hpp"
#include "troupe/own_strategy.hpp"
#include "troupe/simulation.hpp"
#include "troupe/statistics.hpp"
#include "troupe/task_graph.hpp"
#include "troupe/tensor_file.hpp"
