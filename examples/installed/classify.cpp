// A program that is built against an installed troupe: classify FOLDER classifies the handwritten digits of
// examples/digits by the CPU. By pkg-config: g++ -std=c++20 classify.cpp $(pkg-config --cflags --libs troupe)
#include <troupe/troupe.hpp>

#include <algorithm>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: classify FOLDER\n";
    return 2;
  }
  try {
    const std::string folder = argv[1];
    const troupe::named_tensors test_set = troupe::read_npz(folder + "/digits_test.npz");
    const troupe::tensor& pixels = test_set.at("images"); // 0…16 as uint8 [N, 8, 8]
    troupe::tensor images(troupe::dtype::float32, {pixels.dims().at(0), 1, 8, 8});
    for (int64_t i = 0; i < pixels.size(); ++i)
      images.mutable_data<float>()[i] = static_cast<float>(pixels.data<uint8_t>()[i]) / 16;

    troupe::engine engine({.devices = {"cpu"}});
    const troupe::session session = engine.load(folder + "/digits.onnx");
    const troupe::run_result result = session.run({{"image", images}});

    const troupe::tensor& scores = result.outputs.at("scores"); // [N, 10]
    const auto labels = test_set.at("labels").values<int64_t>();
    size_t right = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      const auto row = scores.values<float>().subspan(10 * i, 10);
      right += std::max_element(row.begin(), row.end()) - row.begin() == labels[i];
    }
    std::cout << right << " of " << labels.size() << " digits are right\n";
  } catch (const troupe::error& e) {
    std::cerr << to_string(e.code()) << ": " << e.what() << '\n';
    return 1;
  }
}
