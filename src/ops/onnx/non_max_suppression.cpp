// NonMaxSuppression: per batch and class, boxes in descending order of score (above score_threshold), dropping those
// whose intersection over union with an already chosen one exceeds iou_threshold. Output rows are [batch, class, box].
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/movement.hpp"
#include "ops/operand.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Boxes that make it worth a thread to compare them.
constexpr int64_t boxes_of_thread = 512;

void infer_non_max_suppression(infer_context& c) {
  if (c.rank(0) != 3 || c.rank(1) != 3)
    fail(errc::invalid_model, "boxes [batch, boxes, 4] and scores [batch, classes, boxes] have ranks {} and {}",
         c.rank(0), c.rank(1));
  const symbolic_shape &boxes = c.dims(0), &scores = c.dims(1);
  require_same(boxes[0], scores[0], "batches of boxes and scores");
  require_same(boxes[1], scores[2], "numbers of boxes and of scores");
  require_same(boxes[2], 4, "numbers of a box");
  c.set_output(0, dtype::int64, {c.data_dependent(0, 0), 3});
}

/// A box by its corners.
struct box {
  float y0, x0, y1, x1;
  float area() const { return (y1 - y0) * (x1 - x0); }
};

/// Corners in any order, or centre and size (center_point_box = 1).
box box_at(const float* b, bool centred) {
  if (centred) // x centre, y centre, width, height
    return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

/// Chosen boxes, coordinate by coordinate, so that one candidate is compared with many of them at once.
class chosen_boxes {
public:
  void add(const box& b) {
    y0_.push_back(b.y0);
    x0_.push_back(b.x0);
    y1_.push_back(b.y1);
    x1_.push_back(b.x1);
    area_.push_back(b.area());
  }

  /// Returns whether a chosen box and `b` have more than `threshold` of their union in common.
  bool hide(const box& b, float threshold) const {
    constexpr size_t block = 64; // a hidden box is mostly hidden by one of the best: no need to look at all
    for (size_t begin = 0; begin < area_.size(); begin += block)
      if (any_hides(b, threshold, begin, std::min(begin + block, area_.size())))
        return true;
    return false;
  }

private:
  bool any_hides(const box& b, float threshold, size_t begin, size_t end) const {
    const float area = b.area();
    int any = 0;
#pragma omp simd reduction(| : any)
    for (size_t i = begin; i < end; ++i) {
      const float height = std::min(b.y1, y1_[i]) - std::max(b.y0, y0_[i]);
      const float width = std::min(b.x1, x1_[i]) - std::max(b.x0, x0_[i]);
      const float both = height * width, either = area + area_[i] - both;
      any |= int(height > 0) & int(width > 0) & int(either > 0) & int(both / either > threshold);
    }
    return any != 0;
  }

  std::vector<float> y0_, x0_, y1_, x1_, area_;
};

/// The operator's limits; absent ones never bind, but without a number of boxes nothing is chosen.
struct selection_limits {
  int64_t per_class = 0;
  float iou = 0;
  std::optional<float> score;
};

selection_limits limits_of(const kernel_context& c) {
  const auto real = [&](size_t i) { return static_cast<float>(to_double(c.input(i)).at(0)); };
  for (size_t i = 2; i < 5; ++i)
    if (c.has_input(i) && c.input(i).size() != 1)
      fail(errc::invalid_input, "input {} of NonMaxSuppression has {} elements instead of one", i, c.input(i).size());
  selection_limits l;
  if (c.has_input(2))
    l.per_class = to_int64(c.input(2))[0];
  if (c.has_input(3))
    l.iou = real(3);
  if (c.has_input(4))
    l.score = real(4);
  if (!(l.iou >= 0 && l.iou <= 1))
    fail(errc::invalid_input, "iou_threshold is {}, not between 0 and 1", l.iou);
  return l;
}

/// Chosen box indices of one class, best first.
std::vector<int64_t> choose(std::span<const box> boxes, const float* scores, const selection_limits& l) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < boxes.size(); ++i)
    if (scores[i] == scores[i] && (!l.score || scores[i] > *l.score)) // NaN is never chosen
      order.push_back(static_cast<int64_t>(i));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<int64_t> chosen;
  chosen_boxes others;
  for (int64_t candidate : order) {
    if (static_cast<int64_t>(chosen.size()) >= l.per_class)
      break;
    const box& b = boxes[static_cast<size_t>(candidate)];
    if (others.hide(b, l.iou))
      continue;
    others.add(b);
    chosen.push_back(candidate);
  }
  return chosen;
}

void non_max_suppression_kernel(kernel_context& c) {
  const const_view &boxes = c.input(0), &scores = c.input(1);
  const int64_t batches = boxes.dims[0], count = boxes.dims[1], classes = scores.dims[1];
  if (boxes.dims[2] != 4 || scores.dims[0] != batches || scores.dims[2] != count || scores.type != boxes.type)
    fail(errc::invalid_input, "boxes {} and scores {} do not fit together", to_string(boxes.dims),
         to_string(scores.dims));
  const bool centred = c.attrs().integer("center_point_box", 0) != 0;
  const selection_limits l = limits_of(c);
  if (volume(scores.dims) == 0) { // however many batches or classes without a box there may be
    output_of(c, 0, {0, 3});
    return;
  }
  std::vector<box> corners(static_cast<size_t>(batches * count));
  for (size_t i = 0; i < corners.size(); ++i)
    corners[i] = box_at(boxes.as<float>() + i * 4, centred);
  std::vector<std::vector<int64_t>> chosen(static_cast<size_t>(batches * classes));
  parallel_for(batches * classes, std::max<int64_t>(1, boxes_of_thread / std::max<int64_t>(1, count)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   chosen[static_cast<size_t>(i)] = choose(
                       std::span(corners).subspan(static_cast<size_t>(i / classes * count), static_cast<size_t>(count)),
                       scores.as<float>() + i * count, l);
               });
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < batches * classes; ++i)
    for (int64_t box : chosen[static_cast<size_t>(i)])
      rows.insert(rows.end(), {i / classes, i % classes, box});
  const mutable_view out = output_of(c, 0, {static_cast<int64_t>(rows.size() / 3), 3});
  std::copy(rows.begin(), rows.end(), out.as<int64_t>());
}

constexpr auto non_max_suppression_rows = std::to_array<op_def>({
    op_row("NonMaxSuppression", 10, infer_non_max_suppression, non_max_suppression_kernel,
           {.inputs = {2, 5},
            .types = set_of(dtype::float32),
            .hides_elements = true,
            .mixes = "returns as many boxes as the data asks for"}),
});

} // namespace

extern constinit const op_table onnx_non_max_suppression_ops = non_max_suppression_rows;

} // namespace troupe
