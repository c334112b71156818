// Classifies real handwritten digits on every device of this machine, and compares accuracy, answers and times.
//
//   digits FOLDER     FOLDER holds digits.onnx and digits_test.npz (see README.md there)
#include <troupe/troupe.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace {

using namespace troupe;

/// One way to run the model: a device by itself, or several that alternate.
struct setting {
  std::string title;
  engine_options devices;
  session_options session;
};

struct outcome {
  std::vector<int64_t> answers; // by image
  double first_ms = 0;          // planning and kernel preparation included
  double median_ms = 0;
};

/// Pixels 0…16 as uint8 [N, 8, 8] → float32 [N, 1, 8, 8] in [0, 1].
tensor as_input(const tensor& pixels) {
  tensor images(dtype::float32, {pixels.dims().at(0), 1, 8, 8});
  std::transform(pixels.data<uint8_t>(), pixels.data<uint8_t>() + pixels.size(), images.mutable_data<float>(),
                 [](uint8_t level) { return static_cast<float>(level) / 16; });
  return images;
}

/// The position of each row's largest score.
std::vector<int64_t> best(const tensor& scores) {
  std::vector<int64_t> answers;
  const int64_t classes = scores.dims().at(1);
  for (const float* row = scores.data<float>(); row != scores.data<float>() + scores.size(); row += classes)
    answers.push_back(std::max_element(row, row + classes) - row);
  return answers;
}

outcome classify(const setting& how, const std::string& model, const tensor& images) {
  engine engine(how.devices);
  const session session = engine.load(model, how.session);
  outcome result;
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    const run_result run = session.run({{"image", images}});
    if (i == 0) {
      result.first_ms = run.stats.total_ms;
      result.answers = best(run.outputs.at("scores"));
    } else {
      times.push_back(run.stats.total_ms);
    }
  }
  std::sort(times.begin(), times.end());
  result.median_ms = times[times.size() / 2];
  return result;
}

std::vector<setting> settings() {
  std::vector<setting> all;
  for (const device_summary& device : engine().devices())
    all.push_back({device.name, {.devices = {device.name}}, {}});
  all.push_back({"cpu*2, alternating by node", {.devices = {"cpu*2"}}, {.policy = placement_policy::round_robin}});
  return all;
}

int64_t count_equal(const std::vector<int64_t>& a, std::span<const int64_t> b) {
  int64_t equal = 0;
  for (size_t i = 0; i < a.size(); ++i)
    equal += a[i] == b[i];
  return equal;
}

/// Returns whether every setting gave the same answers.
bool report(const std::string& folder) {
  const auto test_set = read_npz(folder + "/digits_test.npz");
  const tensor images = as_input(test_set.at("images"));
  const std::span<const int64_t> labels = test_set.at("labels").values<int64_t>();
  fmt::print("{} images of handwritten digits that the network has never seen\n\n", labels.size());
  fmt::print("{:28} {:>16} {:>11} {:>12} {:>12}\n", "device", "accuracy", "agreement", "first run", "median of 20");
  std::vector<int64_t> reference;
  bool agree = true;
  for (const setting& how : settings()) {
    const outcome result = classify(how, folder + "/digits.onnx", images);
    if (reference.empty())
      reference = result.answers;
    const int64_t right = count_equal(result.answers, labels), same = count_equal(result.answers, reference);
    agree = agree && same == static_cast<int64_t>(labels.size());
    const auto percent = [&](int64_t n) { return 100.0 * static_cast<double>(n) / static_cast<double>(labels.size()); };
    fmt::print("{:28} {:4}/{} {:5.1f} % {:9.1f} % {:9.2f} ms {:9.2f} ms\n", how.title, right, labels.size(),
               percent(right), percent(same), result.first_ms, result.median_ms);
  }
  return agree;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: digits FOLDER\n";
    return 2;
  }
  try {
    if (report(argv[1]))
      return 0;
    std::cerr << "digits: the devices disagree\n";
  } catch (const std::exception& e) {
    std::cerr << "digits: " << e.what() << '\n';
  }
  return 1;
}
