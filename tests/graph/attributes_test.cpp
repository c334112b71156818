#include "graph/attributes.hpp"

#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("attributes are found by name, or have the default that is given", "[graph]") {
  attributes attrs;
  attrs.set("axis", int64_t{-1});
  attrs.set("alpha", 0.5f);
  attrs.set("mode", std::string("edge"));
  attrs.set("pads", std::vector<int64_t>{1, 2});
  attrs.set("value", tensor::scalar<int64_t>(7));
  CHECK(attrs.integer("axis") == -1);
  CHECK(attrs.integer("axis", 3) == -1);
  CHECK(attrs.integer("other", 3) == 3);
  CHECK(attrs.real("alpha") == 0.5f);
  CHECK(attrs.text("mode", "constant") == "edge");
  CHECK(attrs.text("other", "constant") == "constant");
  CHECK(attrs.integers("pads") == std::vector<int64_t>{1, 2});
  CHECK(attrs.reals("scales", {2.f}) == std::vector<float>{2.f});
  CHECK(attrs.tensor_value("value").values<int64_t>()[0] == 7);
  attrs.set("axis", int64_t{2}); // in place of the first
  CHECK(attrs.integer("axis") == 2);
  attrs.erase("axis");
  CHECK_FALSE(attrs.has("axis"));
}

TEST_CASE("an attribute that is missing or of another type is named", "[graph]") {
  attributes attrs;
  attrs.set("axis", int64_t{1});
  for (const error& e :
       {thrown_by([&] { attrs.real("axis"); }), thrown_by([&] { attrs.text("axis", "none"); }),
        thrown_by([&] { attrs.integers("axis", {}); }), thrown_by([&] { attrs.tensor_value("axis"); })}) {
    CHECK(e.code() == errc::invalid_model);
    CHECK(std::string(e.what()).find("'axis' is an integer, but must be a") != std::string::npos);
  }
  CHECK(std::string(thrown_by([&] { attrs.integer("to"); }).what()).find("'to' is missing") != std::string::npos);
}
