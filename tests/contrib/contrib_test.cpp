// Operators of com.microsoft, and experiments that ai.onnx had up to opset 9, against ONNX Runtime: the cases that
// generate.mjs wrote, on the CPU and on a GPU.
#include "actors/engine_access.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/peer_cases.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

using namespace troupe;
using namespace troupe::test;
using troupe::testing::attrs_of;
using troupe::testing::ramp;

namespace {

void check_on(const std::vector<std::string>& devices) {
  engine e = make_engine({.devices = devices}, {.gpu_validation = gpus_are_validated()});
  for (const peer_case& c : read_peer_cases("contrib/cases.jsonl")) {
    std::string problem;
    try {
      problem = peer_difference(c, run_peer_case(e, c));
    } catch (const error& e) {
      problem = e.what();
    }
    if (!problem.empty())
      FAIL_CHECK(c.name << " on " << devices.front() << ": " << problem);
  }
  CHECK(gpu_messages(e).empty());
}

} // namespace

TEST_CASE("operators of com.microsoft give ONNX Runtime's results", "[ops][contrib]") {
  check_on({"cpu"});
}

TEST_CASE("operators of com.microsoft give them on a GPU, the CPU running those that it lacks",
          "[ops][contrib][vulkan][slow]") {
  check_on({"vulkan:0", "cpu"});
}

// ONNX Runtime has these norms on GPUs only.
TEST_CASE("GroupQueryAttention normalises queries and keys head by head before it turns them", "[ops][contrib]") {
  const auto op = [](std::string_view domain, const char* name) { return find_op(domain, name, newest_opset(domain)); };
  const tensor q = ramp({1, 2, 32}, 0.25f), k = ramp({1, 2, 16}, -0.5f), v = ramp({1, 2, 16}), scale = ramp({16}, 0.1f);
  const tensor lengths = tensor::of<int32_t>({1}, std::vector<int32_t>{1}), total = tensor::scalar<int32_t>(2);
  const attributes heads =
      attrs_of({{"num_heads", int64_t{2}}, {"kv_num_heads", int64_t{1}}, {"qk_norm_epsilon", 0.5f}});
  const auto normalised = [&](const tensor& x, int64_t count) {
    const auto made = evaluate(*op("", "RMSNormalization"), attrs_of({{"axis", int64_t{-1}}, {"epsilon", 0.5f}}),
                               std::vector<tensor>{x.reshaped({1, 2, count, 16}), scale});
    return made[0].reshaped(x.dims());
  };
  std::vector<tensor> inputs{q, k, v, {}, {}, lengths, total, {}, {}, {}, {}, {}, {}, {}, scale, scale};
  const auto got = evaluate(*op("com.microsoft", "GroupQueryAttention"), heads, inputs, 3);
  inputs.resize(7);
  inputs[0] = normalised(q, 2);
  inputs[1] = normalised(k, 1);
  const auto want = evaluate(*op("com.microsoft", "GroupQueryAttention"), heads, inputs, 3);
  for (size_t i = 0; i < 3; ++i)
    CHECK(to_double(got[i].view()) == to_double(want[i].view()));
}

TEST_CASE("GroupQueryAttention takes a packed projection whose width has a name", "[ops][contrib]") {
  graph_builder b;
  const value_id packed = b.input("packed", {1, 2, dim::symbol("width")}),
                 lengths = b.input("lengths", {1}, dtype::int32), total = b.input("total", {}, dtype::int32);
  b.output(b.call("GroupQueryAttention", {packed, no_value, no_value, no_value, no_value, lengths, total}, {"y"},
                  attrs_of({{"num_heads", int64_t{2}}, {"kv_num_heads", int64_t{1}}}), "com.microsoft")[0]);
  check_fusion(
      b.g, {ramp({1, 2, 64}, 0.25f), tensor::of<int32_t>({1}, std::vector<int32_t>{1}), tensor::scalar<int32_t>(2)});
}

// ONNX Runtime's own results are wrong then.
TEST_CASE("SparseAttention gives each element of a batch the same as alone, whatever their lengths", "[ops][contrib]") {
  const op_def& op = *find_op("com.microsoft", "SparseAttention", 1);
  const attributes attrs =
      attrs_of({{"num_heads", int64_t{2}}, {"kv_num_heads", int64_t{1}}, {"sparse_block_size", int64_t{2}}});
  const tensor q = ramp({2, 1, 16}, 0.25f), k = ramp({2, 1, 8}, -0.5f), v = ramp({2, 1, 8}),
               past = ramp({2, 1, 6, 8}, 0.125f);
  const tensor rows = tensor::of<int32_t>({1, 4}, std::vector<int32_t>{0, 1, 2, 4}),
               columns = tensor::of<int32_t>({1, 4}, std::vector<int32_t>{0, 1, 0, 2});
  const auto attend = [&](const std::vector<tensor>& batch, std::vector<int32_t> lengths) {
    const tensor total = tensor::scalar<int32_t>(*std::max_element(lengths.begin(), lengths.end()));
    const auto count = std::ssize(lengths);
    return evaluate(op, attrs,
                    std::vector<tensor>{batch[0], batch[1], batch[2], batch[3], batch[3], rows, columns, total,
                                        tensor::of<int32_t>({count}, lengths)},
                    3);
  };
  const auto element = [](const tensor& t, int64_t i) {
    shape dims = t.dims();
    dims[0] = 1;
    const auto* from = t.data<float>() + i * volume(dims);
    return tensor::of<float>(dims, std::vector<float>(from, from + volume(dims)));
  };
  const std::vector<int32_t> lengths{3, 6};
  const auto both = attend({q, k, v, past}, lengths);
  for (int64_t i = 0; i < 2; ++i) {
    const auto alone =
        attend({element(q, i), element(k, i), element(v, i), element(past, i)}, {lengths[static_cast<size_t>(i)]});
    for (size_t y = 0; y < 3; ++y)
      for (int64_t j = 0; j < alone[y].size(); ++j)
        CHECK(element(both[y], i).data<float>()[j] == Approx(alone[y].data<float>()[j]));
  }
}

TEST_CASE("SparseAttention refuses sizes that make no blocks", "[ops][contrib]") {
  const op_def& op = *find_op("com.microsoft", "SparseAttention", 1);
  const tensor q = ramp({1, 1, 16}), k = ramp({1, 1, 8}), past = ramp({1, 1, 4, 8});
  const tensor rows = tensor::of<int32_t>({1, 3}, std::vector<int32_t>{0, 1, 2}),
               columns = tensor::of<int32_t>({1, 2}, std::vector<int32_t>{0, 1}),
               length = tensor::of<int32_t>({1}, std::vector<int32_t>{2});
  const auto refused = [&](int64_t block, const tensor& layout, const tensor& cache, const tensor& count) {
    const attributes attrs =
        attrs_of({{"num_heads", int64_t{2}}, {"kv_num_heads", int64_t{1}}, {"sparse_block_size", block}});
    const std::vector<tensor> inputs{q, k, k, cache, cache, layout, columns, tensor::scalar<int32_t>(2), count};
    return std::string(thrown_by([&] { evaluate(op, attrs, inputs, 3); }).what());
  };
  CHECK_THAT(refused(0, rows, past, length), Catch::Contains("blocks of 0 places"));
  CHECK_THAT(refused(2, tensor::of<int32_t>({3, 1}, std::vector<int32_t>{0, 0, 0}), past, length),
             Catch::Contains("2 heads cannot share 3 layouts"));
  CHECK_THAT(refused(2, rows, {}, length), Catch::Contains("input 3 is missing"));
  CHECK_THAT(refused(2, rows, past, tensor::of<int32_t>({1}, std::vector<int32_t>{6})),
             Catch::Contains("a cache of 4"));
}

TEST_CASE("QMoE refuses codes that are not bytes, and a limit that is none", "[ops][contrib]") {
  // one expert; two numbers of 4 bits share a byte
  const auto codes = [](dtype type, shape dims) {
    tensor t(type, std::move(dims));
    std::memset(t.mutable_data(), 0x99, static_cast<size_t>(t.bytes()));
    return t;
  };
  const tensor x = ramp({1, 2}), router = ramp({1, 1}), weights = codes(dtype::uint8, {1, 2, 1}), scales = ramp({1, 2}),
               zeros = codes(dtype::uint8, {1, 1});
  const auto result = [&](const tensor& first, const tensor& second, const tensor& zero, float limit) {
    std::vector<tensor> inputs{x, router, first, scales, {}, second, scales, {}, {}, {}, {}, zero};
    const attributes attrs = attrs_of({{"swiglu_limit", limit}});
    return evaluate(*find_op("com.microsoft", "QMoE", 1), attrs, inputs)[0];
  };
  CHECK(to_double(result(weights, weights, zeros, 7).view()) == std::vector<double>{0, 0});
  for (const dtype type : {dtype::uint4, dtype::int4, dtype::int8, dtype::float32}) {
    const auto refused = [&](const tensor& first, const tensor& second, const tensor& zero) {
      return thrown_by([&] { result(first, second, zero, 7); });
    };
    const tensor others = codes(type, {1, 2, 1}), other_zeros = codes(type, {1, 1});
    CHECK_THAT(refused(others, others, other_zeros).what(), Catch::Contains("fc1 has weights of"));
    CHECK_THAT(refused(weights, others, zeros).what(), Catch::Contains("input 5 ('') is"));
    CHECK_THAT(refused(weights, weights, other_zeros).what(), Catch::Contains("input 11 ('') is"));
  }
  std::vector<tensor> other_weights{x, router, weights, scales, {}, weights, scales};
  other_weights.resize(14);
  other_weights.push_back(ramp({1, 2}));
  CHECK_THAT(thrown_by([&] { evaluate(*find_op("com.microsoft", "QMoE", 1), {}, other_weights); }).what(),
             Catch::Contains("router_weights"));
  for (const float limit : {-1.f, std::numeric_limits<float>::quiet_NaN()})
    CHECK_THAT(thrown_by([&] { result(weights, weights, zeros, limit); }).what(), Catch::Contains("'swiglu_limit'"));
}

TEST_CASE("compositions refuse operands that are missing or of the wrong rank", "[ops][contrib]") {
  const tensor single = tensor::of<float>({1}, std::vector<float>{1}),
               cube = tensor::of<float>({1, 1, 1}, std::vector<float>{1});
  for (const op_def* def : all_ops()) {
    if (!def->expand)
      continue;
    INFO(def->domain << "." << def->name);
    const auto most = std::min<size_t>(def->inputs.max, 16);
    for (size_t count = 0; count <= most; ++count) {
      CHECK_THROWS_AS(evaluate(*def, {}, std::vector<tensor>(count)), error);
      for (const tensor& t : {single, cube, tensor::scalar<uint8_t>(1), tensor::scalar<int32_t>(1)})
        try {
          evaluate(*def, {}, std::vector<tensor>(count, t));
        } catch (const error& e) {
          CHECK(e.code() != errc::internal);
        }
    }
  }
}
