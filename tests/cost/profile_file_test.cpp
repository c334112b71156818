#include "cost/profile_file.hpp"

#include "cost/cost_model.hpp"
#include "support/catch.hpp"

#include <fstream>
#include <random>
#include <unistd.h>

using namespace troupe;
using Catch::Contains;

namespace {

measured_profile some_profile(std::string name) {
  return {{"vulkan", std::move(name), 132},
          {{"float32", 3e13}, {"launch_s", 0}, {"submit_s", 7e-6}, {"up.bytes_per_s", 4.9e10}},
          {{{{1, 2}, 1.5e-5}, {{UINT64_MAX, 0}, 0}}, {{"Conv", {2.5, 2}}, {"troupe.\"\n", {3, 1}}}}};
}

struct temporary_folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("troupe_profiles_{}", getpid());
  ~temporary_folder() { std::filesystem::remove_all(path); }
};

} // namespace

TEST_CASE("device profiles survive a round trip through a file", "[cost][profile]") {
  const temporary_folder folder;
  const auto file = folder.path / "deep" / "profiles.json";
  store_profiles(file, {some_profile("A"), some_profile("B \"\xff\" \n")});
  measured_profile newer = some_profile("A");
  newer.values = {{"float16", 1e14}};
  newer.nodes = {{{{1, 2}, 1e-6}, {{3, 4}, 1}}, {}};
  store_profiles(file, {newer});
  const loaded_profiles read = load_profiles(file);
  CHECK(read.problem.empty());
  REQUIRE(read.devices.size() == 2);
  CHECK(read.devices[0].device == newer.device);
  CHECK(read.devices[0].values == newer.values);
  CHECK(read.devices[0].nodes.nodes == decltype(newer.nodes.nodes){{{UINT64_MAX, 0}, 0}, {{1, 2}, 1e-6}, {{3, 4}, 1}});
  CHECK(read.devices[0].nodes.operators.empty()); // of another roofline
  CHECK(read.devices[1].nodes == some_profile("B").nodes);
  const device_profile refined = refine(typical_gpu(132, true), read.devices[1]);
  CHECK(refined.submit_s == 7e-6);
  CHECK(refined.measured->seconds({{1, 2}, "Conv"}, 1) == 1.5e-5);
  CHECK(refined.measured->seconds({{9, 9}, "Conv"}, 1) == 1.25);
  CHECK(refined.flops_per_s[1] == 3e13);
  CHECK(refined.flops_per_s[2] == typical_gpu(132, true).flops_per_s[2]);
  CHECK(refined.launch_s == 0);
  CHECK(refined.up.bytes_per_s == 4.9e10);
  CHECK(load_profiles("").problem.empty());
  CHECK(load_profiles(folder.path / "absent").problem.empty());
  CHECK_THROWS_AS(store_profiles(folder.path / "deep" / "profiles.json" / "below", {newer}), error);
}

TEST_CASE("nodes' times join a device's calibration and stay beside the next one", "[cost][profile][A14]") {
  const temporary_folder folder;
  const auto file = folder.path / "profiles.json";
  measured_profile calibrated = some_profile("A"), kept = some_profile("A");
  calibrated.nodes = {};
  kept.values.clear();
  const auto read = [&] { return load_profiles(file).devices.at(0); };
  store_profiles(file, {kept});
  CHECK(read().values.empty());
  store_profiles(file, {calibrated});
  CHECK(read().values.size() == calibrated.values.size());
  CHECK(read().nodes.nodes == kept.nodes.nodes);
  CHECK(read().nodes.operators.empty());
  store_profiles(file, {kept});
  CHECK(read().values.size() == calibrated.values.size());
  CHECK(read().nodes.operators == kept.nodes.operators);
}

TEST_CASE("a profile file that is wrong is refused, and says why", "[cost][profile]") {
  const auto device = [](const std::string& measured) {
    return R"({"version":1,"devices":[{"kind":"cpu","description":"x","units":2,"measured":)" + measured + "}]}";
  };
  CHECK(read_profiles(device("{}")).devices.size() == 1);
  CHECK_THROWS_WITH(read_profiles("{"), Contains("must be JSON"));
  CHECK_THROWS_WITH(read_profiles("[]"), Contains("'version'"));
  CHECK_THROWS_WITH(read_profiles(R"({"version":2})"), Contains("another version"));
  CHECK_THROWS_WITH(read_profiles(R"({"version":1,"devices":{}})"), Contains("'devices'"));
  CHECK_THROWS_WITH(read_profiles(R"({"version":1,"devices":[7]})"), Contains("'kind'"));
  CHECK_THROWS_WITH(read_profiles(device(R"({"speed":1})")), Contains("no 'speed'"));
  CHECK_THROWS_WITH(read_profiles(device(R"({"float32":"fast"})")), Contains("not a number"));
  for (const char* speed : {"0", "-1", "1e300", "1e999", "null"})
    CHECK_THROWS_AS(read_profiles(device(fmt::format(R"({{"float32":{}}})", speed))), error);
  for (const char* time : {"-1e-9", "1e9"})
    CHECK_THROWS_WITH(read_profiles(device(fmt::format(R"({{"launch_s":{}}})", time))), Contains("launch_s"));
}

TEST_CASE("nodes' times that are wrong are refused", "[cost][profile][A14]") {
  const auto with = [](const std::string& members) {
    return R"({"version":1,"devices":[{"kind":"cpu","description":"x","units":2,"measured":{},)" + members + "}]}";
  };
  const auto node = [&](const std::string& key, const std::string& seconds) {
    return with(fmt::format(R"("nodes":[[{},{}]])", key, seconds));
  };
  const std::string key = '"' + std::string(32, 'a') + '"';
  CHECK(read_profiles(node(key, "0.5")).devices.at(0).nodes.nodes.size() == 1);
  CHECK_THROWS_WITH(read_profiles(with(R"("nodes":{})")), Contains("'nodes'"));
  CHECK_THROWS_WITH(read_profiles(with(R"("nodes":[7])")), Contains("pairs"));
  CHECK_THROWS_WITH(read_profiles(with(R"("nodes":[["a",1,2]])")), Contains("pairs"));
  for (const char* bad : {"7", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"", "\"\"", "\"xyz\"",
                          "\"+aaaaaaaaaaaaaaa0xaaaaaaaaaaaaaa\"", "\"aaaaaaaaaaaaaaaa-aaaaaaaaaaaaaaa\""})
    CHECK_THROWS_WITH(read_profiles(node(bad, "1")), Contains("hexadecimal"));
  for (const char* seconds : {"-1e-9", "1e9"})
    CHECK_THROWS_WITH(read_profiles(node(key, seconds)), Contains("cannot take"));
  for (const char* seconds : {"1e999", "null", "\"1\""})
    CHECK_THROWS_AS(read_profiles(node(key, seconds)), error);
  CHECK_THROWS_WITH(read_profiles(with(R"("operators":[])")), Contains("'operators'"));
  CHECK_THROWS_WITH(read_profiles(with(R"("operators":{"Conv":["x",1]})")), Contains("not a number"));
  CHECK_THROWS_WITH(read_profiles(with(R"("operators":{"Conv":1})")), Contains("'Conv' must have"));
  for (const char* sums : {"0,1", "1,0", "0,0", "-1,-1", "1,-1", "1,1e10", "1e9,1e9", "1,1e-300"})
    CHECK_THROWS_WITH(read_profiles(with(fmt::format(R"("operators":{{"Conv":[{}]}})", sums))), Contains("'Conv'"));
  CHECK_THROWS_WITH(read_profiles(with(R"("operators":{"":[1,1]})")), Contains("0 bytes"));
  CHECK_THROWS_WITH(read_profiles(with(R"("operators":{")" + std::string(201, 'x') + R"(":[1,1]})")),
                    Contains("201 bytes"));
  std::string many;
  for (size_t i = 0; i <= max_kept_nodes; ++i)
    many += fmt::format(R"({}["{:032x}",1])", i == 0 ? "" : ",", i);
  CHECK_THROWS_WITH(read_profiles(with("\"nodes\":[" + many + "]")), Contains("at most 20000"));
}

TEST_CASE("choices of kernels are kept by call, beside times, and wrong ones are refused", "[cost][profile][C11]") {
  const temporary_folder folder;
  const auto file = folder.path / "profiles.json";
  measured_profile m = some_profile("A");
  m.kernels = {{{1, 1}, {5, 5}, "matmul \"64x64\"\n", 2e-6, 3e-6}, {{1, 2}, {6, 6}, "", 0, 0}};
  store_profiles(file, {m});
  measured_profile newer{m.device, {}, {}, {{{1, 1}, {7, 7}, "gemv", 1e-6, 3e-6}}};
  store_profiles(file, {newer});
  const measured_profile read = load_profiles(file).devices.at(0);
  CHECK(read.nodes == m.nodes);
  REQUIRE(read.kernels.size() == 2);
  CHECK(read.kernels[0].call == hash128{1, 2}); // the newest comes last
  CHECK(read.kernels[1].kernel == hash128{7, 7});
  CHECK(read.kernels[1].name == "gemv");
  CHECK(read.kernels[1].seconds == 1e-6);
  CHECK(read.kernels[1].usual_s == 3e-6);
  m.kernels.assign(max_kept_kernels + 1, {{1, 1}, {2, 2}, "x", 1, 1});
  for (size_t i = 0; i < m.kernels.size(); ++i)
    m.kernels[i].call.low = i;
  store_profiles(file, {m});
  const std::vector<kernel_choice> newest = load_profiles(file).devices.at(0).kernels;
  CHECK(newest.size() == max_kept_kernels);
  CHECK(newest.back().call.low == max_kept_kernels);

  const auto with = [](const std::string& kernels) {
    return R"({"version":1,"devices":[{"kind":"vulkan","description":"x","units":2,"measured":{},"kernels":)" +
           kernels + "}]}";
  };
  const std::string keys = R"("0123456789abcdef0123456789abcdef","0123456789abcdef0123456789abcdef")";
  CHECK(read_profiles(with("[[" + keys + R"(,"n",1,2]])")).devices.at(0).kernels.size() == 1);
  for (const std::string& text :
       {std::string("{}"), std::string("[1]"), "[[" + keys + "]]", "[[" + keys + R"(,"n",1]])",
        "[[" + keys + ",1,1,1]]", "[[" + keys + R"(,"n",-1,1]])", "[[" + keys + R"(,"n",1,1e9]])",
        "[[" + keys + R"(,"n","1",1]])", std::string(R"([["0","1","n",1,1]])"),
        "[[" + keys + ",\"" + std::string(max_kernel_name + 1, 'n') + R"(",1,1]])"}) {
    INFO(text);
    CHECK_THROWS_AS(read_profiles(with(text)), error);
  }
}

TEST_CASE("links to other hosts are kept by address, beside devices", "[cost][profile]") {
  const temporary_folder folder;
  const auto file = folder.path / "profiles.json";
  store_profiles(file, {some_profile("A")}, {{"far:4242", 1e-3, 1e9, 2e9}, {"near:1", 2e-3, 3e9, 4e9}});
  store_profiles(file, {some_profile("B")});
  store_profiles(file, {}, {{"far:4242", 5e-3, 6e9, 7e9}});
  const loaded_profiles read = load_profiles(file);
  CHECK(read.problem.empty());
  CHECK(read.devices.size() == 2);
  REQUIRE(read.links.size() == 2);
  CHECK(read.links[0].address == "near:1");
  CHECK(read.links[0].to_bytes_per_s == 3e9);
  CHECK(read.links[1].address == "far:4242");
  CHECK(read.links[1].round_trip_s == 5e-3);
  CHECK(read.links[1].to_bytes_per_s == 6e9);
  CHECK(read.links[1].from_bytes_per_s == 7e9);
}

TEST_CASE("links that cannot be are refused", "[cost][profile]") {
  const auto with = [](const std::string& links) {
    return fmt::format(R"({{"version":1,"devices":[],"links":{}}})", links);
  };
  const auto link = [&](const std::string& trip, const std::string& to, const std::string& from) {
    return with(fmt::format(R"([{{"address":"a:1","round_trip_s":{},"to_bytes_per_s":{},"from_bytes_per_s":{}}}])",
                            trip, to, from));
  };
  CHECK(read_profiles(link("0.001", "1e9", "1e8")).links.size() == 1);
  CHECK_THROWS_WITH(read_profiles(with("7")), Contains("'links'"));
  CHECK_THROWS_WITH(read_profiles(with("[7]")), Contains("'address'"));
  CHECK_THROWS_WITH(read_profiles(with(R"([{"address":"a:1"}])")), Contains("to_bytes_per_s"));
  CHECK_THROWS_WITH(read_profiles(link("-1", "1e9", "1e8")), Contains("round_trip_s"));
  CHECK_THROWS_WITH(read_profiles(link("1000", "1e9", "1e8")), Contains("round_trip_s"));
  CHECK_THROWS_WITH(read_profiles(link("1", "0", "1e8")), Contains("to_bytes_per_s"));
  CHECK_THROWS_WITH(read_profiles(link("1", "1e9", "1e30")), Contains("from_bytes_per_s"));
  CHECK_THROWS_WITH(read_profiles(link("1", "1e9", "\"fast\"")), Contains("not a number"));
}

TEST_CASE("no profile file stops an engine", "[cost][profile]") {
  const temporary_folder folder;
  std::filesystem::create_directories(folder.path);
  const auto file = folder.path / "profiles.json";
  const std::string good = write_profiles({some_profile("A"), some_profile("B")});
  std::mt19937 random(7);
  size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    for (size_t hits = 1 + random() % 4; hits > 0; --hits)
      text[random() % text.size()] = static_cast<char>(random());
    if (i % 5 == 0)
      text.resize(random() % text.size());
    try {
      read_profiles(text);
    } catch (const error&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
  std::ofstream(file, std::ios::binary) << good.substr(0, good.size() / 2);
  CHECK_THAT(load_profiles(file).problem, Contains(file.string()) && Contains("JSON"));
  std::ofstream(file, std::ios::binary) << std::string(200'000, '[');
  CHECK_THAT(load_profiles(file).problem, Contains("JSON"));
  CHECK_FALSE(load_profiles(folder.path).problem.empty()); // a folder
}

TEST_CASE("predicted times follow the roofline", "[cost]") {
  device_profile p;
  p.flops_per_s[static_cast<size_t>(arithmetic::float32)] = 1e9;
  p.memory_bytes_per_s = 1e6;
  p.launch_s = 0.5;
  CHECK(seconds({.flops = 2e9, .bytes = 1e6}, p) == Approx(2.5));
  CHECK(seconds({.flops = 1e9, .bytes = 3e6}, p) == Approx(3.5));
  CHECK(seconds({.flops = 1e9, .bytes = 3e6, .launches = false}, p) == 0);
}
