// Convolutions that cut an image into patches become products on GPUs: the results are the same, and other convolutions
// stay.
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct first_layer {
  int64_t channels = 3, filters = 5;
  shape image{8, 12}, kernel{4, 3};
  bool biased = true, tokens = true; // tokens: flattened and transposed, as a transformer wants them
  attributes attrs = attrs_of({{"strides", std::vector<int64_t>{4, 3}}});

  symbolic_shape dims() const {
    symbolic_shape all{dim::symbol("batch"), dim(channels)};
    all.insert(all.end(), image.begin(), image.end());
    return all;
  }
  /// The graph for GPUs, which gives the convolution's results.
  graph rewritten() const {
    graph_builder b;
    const value_id x = b.input("x", dims());
    shape weights{filters, channels};
    weights.insert(weights.end(), kernel.begin(), kernel.end());
    std::vector<value_id> operands{x, b.constant("w", random_tensor(weights, 1))};
    if (biased)
      operands.push_back(b.constant("b", random_tensor({filters}, 2)));
    value_id y = b.op("Conv", operands, attrs);
    if (tokens) {
      y = b.op("Reshape", {y, b.integers({0, filters, -1})});
      y = b.op("Transpose", {y}, attrs_of({{"perm", std::vector<int64_t>{0, 2, 1}}}));
    }
    b.output(tokens ? b.op("Sqrt", {b.op("Abs", {y})}) : y);
    shape given{2, channels};
    given.insert(given.end(), image.begin(), image.end());
    return check_fusion(b.g, {random_tensor(given, 3)}, 1e-4, true);
  }
  bool becomes_product() const {
    const graph g = rewritten();
    const bool product = count_nodes(g, "Conv") + count_nodes(g, "troupe.Conv") == 0;
    CHECK(count_nodes(g, "Transpose") <= 1); // of the patches
    return product;
  }
};

} // namespace

TEST_CASE("convolutions of image patches are products, and their tokens are not transposed", "[rewrite]") {
  first_layer layer;
  layer.biased = GENERATE(true, false);
  CHECK(layer.becomes_product());
}

TEST_CASE("patches of other ranks and counts of channels are products", "[rewrite]") {
  first_layer line{.channels = 2, .image = {60}, .kernel = {20}};
  line.attrs = attrs_of({{"strides", std::vector<int64_t>{20}}, {"auto_pad", std::string("VALID")}});
  CHECK(line.becomes_product());
  first_layer volume{.channels = 1, .image = {4, 8, 6}, .kernel = {4, 4, 2}};
  volume.attrs = attrs_of({{"strides", std::vector<int64_t>{4, 4, 2}}, {"pads", std::vector<int64_t>(6, 0)}});
  CHECK(volume.becomes_product());
}

TEST_CASE("other convolutions stay as they are", "[rewrite]") {
  const auto with = [](attribute strides, std::pair<std::string, attribute> other) {
    first_layer layer;
    layer.attrs = attrs_of({{"strides", std::move(strides)}, std::move(other)});
    return layer.becomes_product();
  };
  const std::vector<int64_t> own{4, 3};
  CHECK_FALSE(with(std::vector<int64_t>{2, 3}, {"group", int64_t{1}})); // windows overlap
  CHECK_FALSE(with(own, {"pads", std::vector<int64_t>{2, 0, 2, 0}}));   // padded
  CHECK_FALSE(with(own, {"dilations", std::vector<int64_t>{2, 1}}));    // windows have holes
  CHECK_FALSE(with(std::vector<int64_t>{4, 3}, {"auto_pad", std::string("SAME_UPPER")}));
  first_layer rest{.image = {8, 13}}; // a column that no patch has
  CHECK_FALSE(rest.becomes_product());
  first_layer deep{.channels = 8};
  CHECK_FALSE(deep.becomes_product());
  first_layer small{.channels = 1, .image = {8, 12}, .kernel = {4, 3}}; // twelve taps
  CHECK_FALSE(small.becomes_product());
  first_layer spatial{.tokens = false}; // stays an image
  CHECK_FALSE(spatial.becomes_product());
}
