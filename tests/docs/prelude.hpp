// Declarations that C++ snippets of the documentation assume around them.
#pragma once

#include <troupe/troupe.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

using namespace std::chrono_literals;

inline troupe::engine engine;
inline troupe::session session = engine.load("model.onnx");
inline troupe::bound_session decoder = session.bind({});
inline const std::vector<troupe::output_binding> pairs;
inline troupe::tensor image, token, mask, weights, bias, w, b;
inline troupe::named_tensors inputs, first_inputs;
inline uint64_t next;

inline troupe::named_tensors inputs_of(uint64_t) {
  return {};
}
inline void send(const troupe::tensor&) {}
inline void serve(const std::string&) {}
template <class... Args>
void log(const Args&...) {}
