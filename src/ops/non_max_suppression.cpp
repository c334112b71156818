// NonMaxSuppression: per batch and class, boxes in descending order of score (above score_threshold), dropping those whose
// intersection over union with an already chosen one exceeds iou_threshold. Output rows are [batch, class, box].
#include "ops/families.hpp"
#include "ops/movement.hpp"

#include <algorithm>

namespace troupe {
namespace {

void infer_non_max_suppression(infer_context& c) {
  if (c.rank(0) != 3 || c.rank(1) != 3)
    fail(errc::invalid_model, "boxes [batch, boxes, 4] and scores [batch, classes, boxes] have ranks {} and {}",
         c.rank(0), c.rank(1));
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

bool overlaps(const box& a, const box& b, float threshold) {
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (height <= 0 || width <= 0)
    return false;
  const float both = height * width, either = a.area() + b.area() - both;
  return either > 0 && both / either > threshold;
}

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
  for (int64_t candidate : order) {
    if (static_cast<int64_t>(chosen.size()) >= l.per_class)
      break;
    const bool hidden = std::any_of(chosen.begin(), chosen.end(), [&](int64_t other) {
      return overlaps(boxes[static_cast<size_t>(candidate)], boxes[static_cast<size_t>(other)], l.iou);
    });
    if (!hidden)
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
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < batches; ++b) {
    std::vector<box> corners;
    for (int64_t i = 0; i < count; ++i)
      corners.push_back(box_at(boxes.as<float>() + (b * count + i) * 4, centred));
    for (int64_t k = 0; k < classes; ++k)
      for (int64_t i : choose(corners, scores.as<float>() + (b * classes + k) * count, l))
        rows.insert(rows.end(), {b, k, i});
  }
  const mutable_view out = output_of(c, 0, {static_cast<int64_t>(rows.size() / 3), 3});
  std::copy(rows.begin(), rows.end(), out.as<int64_t>());
}

constexpr auto non_max_suppression_rows = std::to_array<op_def>({
    op_row("NonMaxSuppression", 10, infer_non_max_suppression, non_max_suppression_kernel,
           {.inputs = {2, 5}, .types = set_of(dtype::float32), .hides_elements = true}),
});

} // namespace

std::span<const op_def> non_max_suppression_ops() {
  return non_max_suppression_rows;
}

} // namespace troupe
