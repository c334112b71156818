// troupe in a C++ program: embed MODEL.onnx runs a model on ones and prints its outputs.
#include <troupe/troupe.hpp>

#include <algorithm>
#include <iostream>

/// Returns a float tensor of ones for an input, with 1 for every symbolic dim.
troupe::tensor ones(const troupe::value_info& input) {
  troupe::shape dims;
  for (const troupe::dim& d : input.dims.value())
    dims.push_back(d.is_constant() ? d.constant() : 1);
  troupe::tensor t(troupe::dtype::float32, dims);
  std::fill_n(t.mutable_data<float>(), t.size(), 1.0f);
  return t;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: embed MODEL.onnx\n";
    return 2;
  }
  try {
    troupe::engine engine; // all devices of this machine
    const troupe::session session = engine.load(argv[1]);

    troupe::named_tensors inputs;
    for (const troupe::value_info& input : session.inputs())
      inputs[input.name] = ones(input);

    const troupe::run_result result = session.run(inputs);
    for (const auto& [name, value] : result.outputs)
      std::cout << name << ": " << to_string(value.type()) << ' ' << troupe::to_string(value.dims()) << '\n';
    std::cout << "ran in " << result.stats.total_ms << " ms\n";
  } catch (const troupe::error& e) {
    std::cerr << to_string(e.code()) << ": " << e.what() << '\n';
    return 1;
  }
}
