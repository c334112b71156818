// Weights that a worker keeps: in use, on disk, and in the models of a folder.
#include "remote/weight_store.hpp"

#include "graph/weight.hpp"
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using remote::weight_store;
namespace fs = std::filesystem;

namespace {

tensor some_weight(float first, int64_t count = 1000) {
  tensor t(dtype::float32, {count});
  for (int64_t i = 0; i < count; ++i)
    t.mutable_data<float>()[i] = first + static_cast<float>(i);
  return t;
}

bool same(const tensor& a, const tensor& b) {
  return a.type() == b.type() && a.dims() == b.dims() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

tensor put(weight_store& store, const tensor& t) {
  auto writer = store.begin(content_hash(t), t.type(), t.dims());
  std::memcpy(writer.destination().mutable_data(), t.data(), static_cast<size_t>(t.bytes()));
  return store.commit(writer);
}

tensor find(weight_store& store, const tensor& like) {
  return store.find(content_hash(like), like.type(), like.dims());
}

fs::path file_of(const fs::path& folder, const tensor& t) {
  return folder / to_hex(content_hash(t));
}

int mode_of(const fs::path& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 ? static_cast<int>(s.st_mode & 0777) : -1;
}

size_t files_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

/// Makes a file's time of use that many seconds ago.
void use_before(const fs::path& file, time_t seconds) {
  const struct timespec times[2] = {{::time(nullptr) - seconds, 0}, {0, UTIME_OMIT}};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
}

/// No file may grow beyond this number of bytes, as if the disk were full.
class full_disk {
public:
  explicit full_disk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~full_disk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  full_disk(const full_disk&) = delete;
  full_disk& operator=(const full_disk&) = delete;

private:
  rlimit before_{};
  void (*handler_)(int);
};

} // namespace

TEST_CASE("a weight's content hash is that of type, dims and bytes", "[remote]") {
  const tensor w = some_weight(1);
  CHECK(content_hash(w) == content_hash(some_weight(1)));
  CHECK(content_hash(w) != content_hash(some_weight(2)));
  CHECK(content_hash(w) != content_hash(w.reshaped({10, 100})));
  CHECK(content_hash(w) == weight::from_tensor(w, "somewhere")->key);
  const std::vector<std::string> texts{"ab", "c"}, others{"a", "bc"};
  CHECK(content_hash(tensor::of<std::string>({2}, texts)) != content_hash(tensor::of<std::string>({2}, others)));
}

TEST_CASE("a weight is shared while it is in use and found on the disk later", "[remote]") {
  const scratch_folder scratch;
  const fs::path folder = scratch.path() / "cache" / "weights";
  const tensor w = some_weight(1);
  {
    weight_store store({.folder = folder});
    CHECK(store.problem().empty());
    CHECK(!find(store, w).defined());
    const tensor first = put(store, w);
    CHECK(same(first, w));
    CHECK(find(store, w).data() == first.data());
    CHECK(put(store, w).data() == first.data());
  }
  CHECK(mode_of(folder) == 0700);
  CHECK(mode_of(file_of(folder, w)) == 0600);
  CHECK(files_in(folder) == 1);
  weight_store store({.folder = folder});
  const tensor found = find(store, w);
  REQUIRE(found.defined());
  CHECK(same(found, w));
  CHECK(!store.find(content_hash(w), dtype::float32, {7}).reshaped({10, 100}).dims().empty()); // in use: as it is
}

TEST_CASE("without a folder weights live as long as they are used", "[remote]") {
  weight_store store({});
  CHECK(!store.problem().empty());
  const tensor w = some_weight(1), text = tensor::of<std::string>({1}, std::vector<std::string>{"text"});
  tensor first = put(store, w), shared = store.share(content_hash(text), text);
  CHECK(find(store, w).data() == first.data());
  CHECK(find(store, text).values<std::string>()[0] == "text");
  CHECK(put(store, tensor(dtype::float32, {0})).bytes() == 0);
  first = {};
  CHECK(!find(store, w).defined());
  CHECK(thrown_by([&] { store.share(content_hash(w), text); }).code() == errc::invalid_input);
}

TEST_CASE("a folder of another kind, or that others may use", "[remote]") {
  const scratch_folder scratch;
  scratch.write("file", "");
  weight_store none({.folder = scratch.path() / "file"});
  CHECK(none.problem() == (scratch.path() / "file").string() + " is not a folder");
  CHECK(same(put(none, some_weight(1)), some_weight(1)));
  const fs::path open = scratch.path() / "open";
  fs::create_directory(open);
  fs::permissions(open, fs::perms::all);
  const weight_store store({.folder = open});
  CHECK(store.problem().empty());
  CHECK(mode_of(open) == 0700);
}

TEST_CASE("a damaged file counts as missing and goes", "[remote]") {
  const scratch_folder scratch;
  const tensor w = some_weight(1);
  for (const bool shorter : {false, true}) {
    { // written by another process
      weight_store store({.folder = scratch.path()});
      put(store, w);
    }
    const fs::path file = file_of(scratch.path(), w);
    if (shorter)
      fs::resize_file(file, 3999);
    else
      std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).write("x", 1);
    weight_store store({.folder = scratch.path()});
    CHECK(!find(store, w).defined());
    CHECK(!fs::exists(file));
    CHECK(same(put(store, w), w));
    CHECK(fs::exists(file));
    // A file that has changed since it was checked is checked again.
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(1));
    CHECK(find(store, w).defined());
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).write("x", 1);
    CHECK(!find(store, w).defined());
  }
}

TEST_CASE("bytes that are not the announced content are refused and leave nothing", "[remote]") {
  const scratch_folder scratch;
  weight_store store({.folder = scratch.path()});
  const tensor w = some_weight(1);
  {
    auto writer = store.begin(content_hash(w), w.type(), w.dims());
    CHECK(files_in(scratch.path()) == 1);
    std::memset(writer.destination().mutable_data(), 1, static_cast<size_t>(w.bytes()));
    CHECK(thrown_by([&] { store.commit(writer); }).code() == errc::invalid_input);
  }
  { auto given_up = store.begin(content_hash(w), w.type(), w.dims()); }
  CHECK(files_in(scratch.path()) == 0);
  CHECK(!find(store, w).defined());
}

TEST_CASE("weights that were used the longest ago leave a full folder", "[remote]") {
  const scratch_folder scratch;
  weight_store store({.folder = scratch.path(), .max_bytes = 10'000});
  const tensor a = some_weight(1), b = some_weight(2), c = some_weight(3), d = some_weight(4);
  const tensor kept = put(store, a);
  put(store, b);
  use_before(file_of(scratch.path(), a), 200);
  use_before(file_of(scratch.path(), b), 100);
  put(store, c);
  CHECK(!fs::exists(file_of(scratch.path(), a)));
  CHECK(same(kept, a)); // in use, it stays readable
  CHECK(find(store, a).data() == kept.data());
  use_before(file_of(scratch.path(), b), 100);
  use_before(file_of(scratch.path(), c), 50);
  CHECK(find(store, b).defined()); // now c was used longer ago
  put(store, d);
  CHECK(fs::exists(file_of(scratch.path(), b)));
  CHECK(!fs::exists(file_of(scratch.path(), c)));
  const tensor large = some_weight(5, 3000);
  CHECK(same(put(store, large), large)); // in memory only
  CHECK(files_in(scratch.path()) == 2);
}

TEST_CASE("remainders of writers that have died leave, parts that are written stay", "[remote]") {
  const scratch_folder scratch;
  const tensor w = some_weight(1), v = some_weight(2);
  scratch.write(to_hex(content_hash(v)) + ".abcdef.part", std::string(5000, 'x'));
  weight_store store({.folder = scratch.path(), .max_bytes = 8000}),
      other({.folder = scratch.path(), .max_bytes = 8000});
  auto first = store.begin(content_hash(w), w.type(), w.dims());
  CHECK(files_in(scratch.path()) == 1);
  put(other, v);
  CHECK(files_in(scratch.path()) == 2);
  std::memcpy(first.destination().mutable_data(), w.data(), static_cast<size_t>(w.bytes()));
  CHECK(same(store.commit(first), w));
  CHECK(fs::exists(file_of(scratch.path(), w)));
}

TEST_CASE("a part that another process removes does not lose the weight", "[remote]") {
  const scratch_folder scratch;
  weight_store store({.folder = scratch.path()});
  const tensor w = some_weight(1);
  auto writer = store.begin(content_hash(w), w.type(), w.dims());
  fs::remove(fs::directory_iterator(scratch.path())->path());
  std::memcpy(writer.destination().mutable_data(), w.data(), static_cast<size_t>(w.bytes()));
  CHECK(same(store.commit(writer), w));
  CHECK(files_in(scratch.path()) == 0);
}

TEST_CASE("a full disk keeps weights in memory", "[remote]") {
  const scratch_folder scratch;
  weight_store store({.folder = scratch.path()});
  const tensor w = some_weight(1, 1 << 20);
  tensor kept;
  {
    const full_disk limit(1 << 20);
    kept = put(store, w);
  }
  CHECK(same(kept, w));
  CHECK(find(store, w).data() == kept.data());
  CHECK(files_in(scratch.path()) == 0);
}

TEST_CASE("two stores share one folder at the same time", "[remote]") {
  const scratch_folder scratch;
  std::vector<tensor> weights;
  for (int i = 0; i < 20; ++i)
    weights.push_back(some_weight(static_cast<float>(i), 20'000 + i));
  std::atomic<int> wrong = 0;
  const auto work = [&](int seed) { // half of the weights fit
    weight_store store({.folder = scratch.path(), .max_bytes = 800'000});
    for (int i = 0; i < 300; ++i) {
      const tensor& w = weights[static_cast<size_t>(i * (7 + 2 * seed) + seed) % weights.size()];
      tensor found = find(store, w);
      if (!found.defined())
        found = put(store, w);
      wrong += !same(found, w);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back(work, i);
  for (auto& t : threads)
    t.join();
  CHECK(wrong == 0);
  int64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(scratch.path())) {
    CHECK(file.path().extension() != ".part");
    bytes += static_cast<int64_t>(file.file_size());
  }
  CHECK(bytes <= 4 * 800'000);
}
