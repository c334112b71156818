// troupe in a C++ program: layers [DEVICE…] builds a model in code and runs it on each device (default: every one
// alone).
#include "tiny_transformer.hpp"
#include <troupe/troupe.hpp>

#include <algorithm>
#include <iostream>

/// Returns the likeliest next token after the last one.
int64_t likeliest(const troupe::tensor& probabilities) {
  const int64_t words = probabilities.dims().back();
  const float* last = probabilities.data<float>() + probabilities.size() - words;
  return std::max_element(last, last + words) - last;
}

int main(int argc, char** argv) {
  try {
    std::vector<std::string> devices(argv + 1, argv + argc);
    if (devices.empty())
      for (const troupe::device_summary& device : troupe::engine().devices())
        devices.push_back(device.name);
    const troupe::built_model model = troupe::examples::tiny_transformer(100, 32, 4);
    const auto tokens = troupe::tensor::of<int64_t>({1, 5}, std::vector<int64_t>{7, 42, 3, 99, 0});
    for (const std::string& device : devices) {
      troupe::engine engine({.devices = {device}});
      const auto result = engine.load(model).run({{"tokens", tokens}});
      std::cout << device << ": next token " << likeliest(result.outputs.at("probabilities")) << '\n';
    }
  } catch (const troupe::error& e) {
    std::cerr << to_string(e.code()) << ": " << e.what() << '\n';
    return 1;
  }
}
