// Writes the first inputs of the fuzz targets into DIR/model, DIR/tensors, DIR/plans and DIR/wire: fuzz_seeds DIR
#include "cost/profile_file.hpp"
#include "fuzz/small_protos.hpp"
#include "fuzz/untrusted.hpp"
#include "loader/npy.hpp"
#include "plan/saved_plan.hpp"
#include "plan/show/print.hpp"
#include "remote/messages.hpp"
#include "rewrite/rewrite.hpp"
#include "troupe/tensor_file.hpp"
#include "wire/facts.hpp"
#include "wire/plans.hpp"

#include <cstdio>
#include <zlib.h>

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

void write_models(const fs::path& folder) {
  unsigned how = 0; // each in a variant of its own
  for (auto& [name, m] : small_protos()) {
    m.set_model_version(how++ % 32);
    write(folder / (name + ".onnx"), m.SerializeAsString());
  }
}

template <class T>
void put(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// An archive of one array, stored or deflated.
std::string zip_of(const std::string& array, bool deflated) {
  const auto* data = reinterpret_cast<const Bytef*>(array.data());
  std::string packed(array.size() + 64, '\0');
  if (deflated) {
    z_stream s{};
    deflateInit2(&s, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    s.next_in = const_cast<Bytef*>(data);
    s.avail_in = static_cast<uInt>(array.size());
    s.next_out = reinterpret_cast<Bytef*>(packed.data());
    s.avail_out = static_cast<uInt>(packed.size());
    deflate(&s, Z_FINISH);
    packed.resize(s.total_out);
    deflateEnd(&s);
  } else {
    packed = array;
  }
  const std::string name = "a.npy";
  std::string common; // of the local header and of the directory's entry
  for (uint16_t number : {20, 0, deflated ? 8 : 0, 0, 0})
    put(common, number);
  put(common, static_cast<uint32_t>(crc32_z(0, data, array.size())));
  put(common, static_cast<uint32_t>(packed.size()));
  put(common, static_cast<uint32_t>(array.size()));
  put(common, static_cast<uint16_t>(name.size()));
  put(common, uint16_t{0});
  const std::string entry = "PK\3\4" + common + name + packed;
  std::string directory = "PK\1\2" + std::string("\24\0", 2) + common + std::string(14, '\0') + name;
  std::string end = std::string("PK\5\6\0\0\0\0\1\0\1\0", 12);
  put(end, static_cast<uint32_t>(directory.size()));
  put(end, static_cast<uint32_t>(entry.size()));
  return entry + directory + end + std::string(2, '\0');
}

void write_tensors(const fs::path& folder) {
  for (dtype type : {dtype::float32, dtype::float16, dtype::float64, dtype::int64, dtype::uint8, dtype::boolean}) {
    tensor t(type, {2, 3});
    std::fill_n(t.mutable_data<char>(), t.bytes(), '\1');
    const std::string name(to_string(type));
    write_npy(folder / (name + ".npy"), t);
    write_pb(folder / (name + ".pb"), name, t);
    std::string array = make_npy_header(type, t.dims());
    array.append(t.data<char>(), static_cast<size_t>(t.bytes()));
    write(folder / (name + ".stored.npz"), zip_of(array, false));
    write(folder / (name + ".deflated.npz"), zip_of(array, true));
  }
}

void write_plans(const fs::path& folder) {
  size_t number = 0;
  for (const auto& program : plan_models())
    for (placement_policy policy : {placement_policy::single, placement_policy::round_robin}) {
      const auto made = make_plan(program, plan_devices(), {.policy = policy});
      write(folder / fmt::format("plan{}.json", number++), to_json(*made));
    }
  measured_profile p{.device = {"cpu", "a processor", 2}};
  p.values = {{"float32", 1e11}, {"launch_s", 1e-6}, {"up.bytes_per_s", 1e10}};
  p.nodes.nodes.emplace_back(hash128{1, 2}, 1e-5);
  p.nodes.operators["Conv"] = {1e-3, 5e-4};
  write(folder / "profiles.json",
        write_profiles({p, {.device = {"vulkan", "a GPU", 132}}}, {{"far:4242", 1e-3, 1e9, 2e9}}));
}

void write_message(const fs::path& file, uint8_t kind, const std::vector<uint8_t>& bytes) {
  write(file, static_cast<char>(kind) + std::string(bytes.begin(), bytes.end()));
}

/// One message of each kind, without empty members.
void write_frames(const fs::path& folder) {
  using namespace remote;
  const sent_value here{.type = dtype::float32, .dims = {1}, .bytes = {0, 0, 0, 0}},
      there{.from = origin::peer, .size = 9, .peer = "a:1"};
  const std::vector<std::byte> bytes(4);
  piece part;
  part.bytes = bytes;
  const std::vector<message> all{
      hello{.version = "1", .name = "a"},
      welcome{.version = "1", .devices = {device_info{.name = "cpu"}}},
      install{.encoded = {.size = 9}, .binding = {1, 2}},
      run_chunk{.uploads = {here, there}, .downloads = {wanted_value{.send = true}}},
      stop_chunks{},
      end_chunks{},
      retire{},
      forget_plan{},
      release{.keys = {hash128{}}},
      fetch_kept{},
      put_value{.value = here},
      ask_stats{},
      installed{.why = {.code = errc::io, .message = "m"}},
      chunk_made{.downloads = {there}},
      fetched{.value = here},
      was_put{},
      stats_told{},
      leaving{.why = "w"},
      ping{.load = {1}},
      pong{.load = {1}},
      piece_request{},
      part,
  };
  for (const message& m : all)
    write_message(folder / fmt::format("{}.frame", m.index()), message_kind::frame, encode(m));
}

void write_messages(const fs::path& folder) {
  for (const auto& [name, m] : small_protos())
    if (name != "external") {
      const auto program = std::make_shared<const graph>(rewrite(load(m), {}));
      const auto made = make_plan(program, plan_devices(), {placement_policy::round_robin});
      write_message(folder / (name + ".plan"), message_kind::plan, plan_message(*made));
    }
  const auto made = make_plan(plan_models()[0], plan_devices(), {});
  bindings symbols;
  for (const std::string& name : symbols_of(*made, 0))
    symbols[name] = 3;
  write_message(folder / "binding", message_kind::binding, wire::encode_binding(*bind_segment(made, 0, symbols)));
  device_info gpu{.name = "vulkan:0", .host = "a", .kind = device_kind::vulkan, .host_memory = false};
  gpu.gpu.emplace();
  write_message(folder / "device", message_kind::device, wire::encode(gpu));
  chunk_result result{.code = errc::io, .message = "m"};
  result.timings.push_back({.kernel = "k"});
  write_message(folder / "result", message_kind::result, wire::encode(result));
  write_message(folder / "stats", message_kind::stats, wire::encode(device_stats{}));
  write_message(folder / "tensor", message_kind::tensor, wire::encode(tensor::scalar(1.0f)));
  attributes attrs;
  attrs.set("axis", int64_t{1});
  attrs.set("names", std::vector<std::string>{"a", "b"});
  write_message(folder / "attributes", message_kind::attributes, wire::encode(attrs));
  write_frames(folder);
}

} // namespace
} // namespace troupe::test

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds DIR\n");
    return 2;
  }
  const std::filesystem::path root = arguments[1];
  for (const char* kind : {"model", "tensors", "plans", "wire"})
    std::filesystem::create_directories(root / kind);
  troupe::test::write_models(root / "model");
  troupe::test::write_tensors(root / "tensors");
  troupe::test::write_plans(root / "plans");
  troupe::test::write_messages(root / "wire");
}
