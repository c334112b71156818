// The CPU's kernels of troupe.Projections and troupe.AttentionProjection, which run the kernels of their parts.
#include "cpu/kernel_check.hpp"
#include "ops/composed/projections.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"

using namespace troupe;
using namespace troupe::testing;
using test::attrs_of;

TEST_CASE("CPU projections are as the reference: norms, ends, gates, few rows and many", "[cpu][projections]") {
  for (const int64_t rows : {1, 3, 40}) {
    INFO(rows);
    kernel_check three("troupe", "Projections",
                       attrs_of({{"norm", std::string("LayerNormalization")},
                                 {"products", int64_t{3}},
                                 {"transB.1", int64_t{1}},
                                 {"activation.2", std::string("Relu")}}));
    three.input({1, rows, 72}).input({72}, true).input({72}, true);
    three.input({72, 40}, true).absent().absent().input({40}, true).absent();
    three.input({24, 72}, true).absent().absent().absent().absent();
    three.input({72, 17}, true);
    CHECK(three.worst("projections", 1e-4, 1e-4, 3) <= 1);

    kernel_check gated("troupe", "Projections",
                       attrs_of({{"norm", std::string("RMSNormalization")},
                                 {"products", int64_t{2}},
                                 {"gated", int64_t{1}},
                                 {"activation.0", std::string("Swish")},
                                 {"activation_alpha.0", 1.f}}));
    gated.input({rows, 64}).input({64}, true).absent();
    gated.input({64, 40}, true).absent().absent().absent().absent().input({64, 40}, true);
    CHECK(gated.worst("projections", 1e-4, 1e-4) <= 1);
  }
}

TEST_CASE("CPU products with a norm after them are as the reference", "[cpu][projections]") {
  for (const size_t outputs : {1, 2}) {
    kernel_check check("troupe", "Projections",
                       attrs_of({{"products", int64_t{1}},
                                 {"last_norm", std::string("LayerNormalization")},
                                 {"epsilon.last_norm", 0.25f}}));
    check.input({5, 72}).absent().absent().input({72, 40}, true).absent().absent().input({40}, true).input({5, 40});
    check.input({40}, true).input({40}, true);
    CHECK(check.worst("projections", 1e-4, 1e-4, outputs) <= 1);
  }
}

TEST_CASE("CPU projections of codes end in a residual and an activation", "[cpu][projections]") {
  for (const int64_t rows : {1, 9}) {
    kernel_check check("troupe", "Projections",
                       attrs_of({{"products", int64_t{1}},
                                 {"K.0", int64_t{64}},
                                 {"N.0", int64_t{24}},
                                 {"bits.0", int64_t{4}},
                                 {"block_size.0", int64_t{32}},
                                 {"activation.0", std::string("Tanh")}}));
    check.input({rows, 64}).absent().absent();
    check.bytes(dtype::uint8, {24, 2, 16}, true).input({24, 2}, true, layout::plain, 0.01f, 0.02f);
    check.absent().input({24}, true).input({rows, 24});
    CHECK(check.worst("projections", 1e-3, 1e-3) <= 1);
  }
}

TEST_CASE("CPU attention with its projection is as the reference", "[cpu][attention]") {
  for (const int64_t queries : {1, 5}) {
    kernel_check check("troupe", "AttentionProjection",
                       attrs_of({{"q_layout", std::string("bshd")},
                                 {"kv_layout", std::string("bshd")},
                                 {"out_layout", std::string("bshd")},
                                 {"scale", 0.25f}}));
    check.input({2, queries, 4, 16}).input({2, queries, 2, 16}).input({2, queries, 2, 24});
    check.input({2, 1, 1, 7 + queries}).input({2, 2, 7, 16}).input({2, 2, 7, 24});
    check.input({96, 40}, true).input({40}, true).input({2, queries, 40});
    CHECK(check.worst("attention.projection", 1e-4, 1e-4) <= 1);
  }
}
