// The proof against the results of models: a batch cut by rows gives what the whole gives, and no model that mixes rows
// passes.
#include "actors/engine_access.hpp"
#include "rewrite/rewrite.hpp"
#include "strategy/random_rows.hpp"
#include "strategy/row_proof.hpp"
#include "strategy/row_tensors.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

bool is_close(const tensor& a, const tensor& b) {
  if (a.type() != b.type() || a.dims() != b.dims())
    return false;
  for (int64_t i = 0; i < a.size(); ++i)
    if (const double x = a.data<float>()[i], y = b.data<float>()[i];
        !(std::abs(x - y) <= 1e-5 * std::max(1., std::abs(x))) && !(x != x && y != y))
      return false;
  return true;
}

/// Runs pieces of 1 to 3 rows and joins their results, output by output.
std::vector<tensor> run_in_pieces(const session& s, const graph& g, const batch_rows& rows, const named_tensors& whole,
                                  int64_t count, std::mt19937& random) {
  std::vector<std::vector<tensor>> parts(g.outputs.size());
  for (int64_t first = 0, n = 0; first < count; first += n) {
    n = std::min<int64_t>(count - first, 1 + static_cast<int64_t>(random() % 3));
    named_tensors piece;
    for (size_t i = 0; i < g.inputs.size(); ++i) {
      const std::string& name = g.values[g.inputs[i]].name;
      piece[name] = rows.inputs[i] ? rows_of(whole.at(name), *rows.inputs[i], first, n) : whole.at(name);
    }
    const auto results = s.run(piece).outputs;
    for (size_t i = 0; i < g.outputs.size(); ++i)
      parts[i].push_back(results.at(g.values[g.outputs[i]].name));
  }
  std::vector<tensor> joined;
  for (size_t i = 0; i < parts.size(); ++i)
    joined.push_back(rows.outputs[i] ? join_rows(parts[i], *rows.outputs[i]) : parts[i][0]);
  return joined;
}

} // namespace

TEST_CASE("random models: rows proved independent can be cut and mixed ones are refused", "[strategy][C1]") {
  engine cpu({.devices = {"cpu"}});
  std::map<std::string, size_t> refused;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const bool mixes = seed % 2 == 1;
    const random_rows r(seed, mixes);
    INFO("seed " << seed << " " << r.mixer());
    const graph plain = inferred(r.b.g), fused = rewrite(r.b.g, {});
    if (mixes) {
      CHECK(thrown_by([&] { prove_rows(plain); }).code() == errc::unsupported);
      CHECK(thrown_by([&] { prove_rows(fused); }).code() == errc::unsupported);
      ++refused[r.mixer()];
      continue;
    }
    const batch_rows rows = prove_rows(fused);
    CHECK(rows.outputs == prove_rows(plain).outputs);
    const named_tensors whole{{"x", random_tensor({7, 4, 6}, seed)}, {"z", random_tensor({3, 7}, seed + 1)}};
    const session s = cpu.load(r.b.g);
    const auto expected = s.run(whole).outputs;
    std::mt19937 random(seed);
    const auto joined = run_in_pieces(s, fused, rows, whole, 7, random);
    for (size_t i = 0; i < joined.size(); ++i)
      CHECK(is_close(expected.at(fused.values[fused.outputs[i]].name), joined[i]));
  }
  CHECK(refused.size() == 15); // each way of mixing has been tried
}
