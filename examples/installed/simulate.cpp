// A program that needs the laboratory: simulate MODEL CLUSTER simulates one image of examples/digits on the devices of
// a cluster file. By pkg-config: g++ -std=c++20 simulate.cpp $(pkg-config --cflags --libs troupe-lab)
#include <troupe/simulation.hpp>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: simulate MODEL CLUSTER\n";
    return 2;
  }
  try {
    const troupe::tensor image(troupe::dtype::float32, {1, 1, 8, 8});
    std::cout << to_text(troupe::simulate(argv[1], {{"image", image}}, {.cluster_file = argv[2]}));
  } catch (const troupe::error& e) {
    std::cerr << to_string(e.code()) << ": " << e.what() << '\n';
    return 1;
  }
}
