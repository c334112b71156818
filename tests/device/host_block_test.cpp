#include "device/host_block.hpp"

#include "support/catch.hpp"

#include <cstring>
#include <random>
#include <set>
#include <thread>

using namespace troupe;

namespace {

constexpr int64_t page = host_block_alignment;

tensor bytes(host_block_pool& pool, int64_t count) {
  return make_host_tensor(pool, dtype::uint8, {count});
}

uint64_t id_of(const host_block_pool& pool, const tensor& t) {
  const host_block_ptr block = pool.find(t.data(), t.bytes());
  REQUIRE(block);
  return block->id();
}

} // namespace

TEST_CASE("tensors are in aligned blocks that are found by address", "[device]") {
  host_block_pool pool;
  tensor t = make_host_tensor(pool, dtype::float32, {3, 100'000});
  CHECK(t.dims() == shape{3, 100'000});
  CHECK(reinterpret_cast<uintptr_t>(t.data()) % page == 0);
  std::memset(t.mutable_data(), 1, static_cast<size_t>(t.bytes()));
  const host_block_ptr block = pool.find(t.data(), t.bytes());
  REQUIRE(block);
  CHECK(block->data() == t.data());
  CHECK(block->bytes() % page == 0);
  CHECK(block->bytes() >= t.bytes());
  const auto* first = static_cast<const std::byte*>(block->data());
  CHECK(pool.find(first + 17, 40) == block);
  CHECK(pool.find(first, block->bytes()) == block);
  CHECK(pool.find(first, block->bytes() + 1) == nullptr);
  CHECK(pool.find(first + block->bytes(), 1) == nullptr);
  CHECK(pool.find(first - 1, 1) == nullptr);
  const tensor other(dtype::float32, {1000});
  CHECK(pool.find(other.data(), other.bytes()) == nullptr);
  CHECK(host_block_pool().find(t.data(), t.bytes()) == nullptr);
}

TEST_CASE("a block is used again, with its id, when the last handle is gone", "[device][C7]") {
  host_block_pool pool;
  tensor t = bytes(pool, 5 * page + 1);
  const uint64_t id = id_of(pool, t);
  const tensor reshaped = t.reshaped({1, 5 * page + 1});
  t = {};
  const tensor beside = bytes(pool, 5 * page + 1);
  CHECK(id_of(pool, beside) != id); // the reshaped handle still holds the first
  CHECK(id_of(pool, reshaped) == id);
  t = bytes(pool, 9 * page); // another class
  CHECK(id_of(pool, t) != id);
  CHECK(pool.stats().idle_bytes == 0);
  CHECK(pool.stats().mapped == 3);
  CHECK(pool.stats().reused == 0);
}

TEST_CASE("sizes of one class share blocks", "[device][C7]") {
  host_block_pool pool;
  const uint64_t id = id_of(pool, bytes(pool, 8 * page + 1));
  CHECK(id_of(pool, bytes(pool, 10 * page)) == id);
  CHECK(id_of(pool, bytes(pool, 10 * page + 1)) != id);
  CHECK(pool.stats().reused == 1);
  CHECK(pool.stats().used_bytes == 0);
  CHECK(pool.stats().idle_bytes == 22 * page);
  CHECK(pool.stats().mapped_bytes == 22 * page);
}

TEST_CASE("over the bound the block that is idle longest is given up", "[device][C7]") {
  host_block_pool pool(3 * page);
  host_block_ptr first;
  {
    const tensor a = bytes(pool, page), b = bytes(pool, 2 * page);
    first = pool.find(a.data(), 1);
  } // b is idle before a
  CHECK(pool.stats().idle_bytes == 3 * page);
  CHECK(!first->retired());
  { const tensor c = bytes(pool, 3 * page); } // as large as the bound: both others go
  CHECK(pool.stats().idle_bytes == 3 * page);
  CHECK(first->retired());
  // A device that imported the block keeps its memory.
  std::memset(first->data(), 1, static_cast<size_t>(first->bytes()));
  CHECK(pool.stats().mapped_bytes == 4 * page);
  first.reset();
  CHECK(pool.stats().mapped_bytes == 3 * page);
  { const tensor d = bytes(pool, 4 * page); } // larger than the bound: not kept
  CHECK(pool.stats().idle_bytes == 3 * page);
  pool.trim();
  CHECK(pool.stats().mapped_bytes == 0);
}

TEST_CASE("tensors outlive their pool", "[device]") {
  auto pool = std::make_unique<host_block_pool>();
  tensor t = bytes(*pool, page);
  const host_block_ptr block = pool->find(t.data(), 1);
  pool.reset();
  std::memset(t.mutable_data(), 1, page);
  CHECK(!block->retired());
  t = {};
  CHECK(block->retired());
  CHECK(static_cast<const unsigned char*>(block->data())[page - 1] == 1);
}

TEST_CASE("strings and empty tensors are ordinary, too much memory is an error", "[device]") {
  host_block_pool pool;
  CHECK(make_host_tensor(pool, dtype::string, {2}).values<std::string>()[1].empty());
  CHECK(make_host_tensor(pool, dtype::float32, {0, 4}).size() == 0);
  CHECK(pool.stats().mapped == 0);
  CHECK_THROWS_WITH(bytes(pool, int64_t{1} << 47), Catch::Contains("140737488355328 bytes"));
  CHECK_THROWS_AS(bytes(pool, int64_t{1} << 60), error);
  CHECK(pool.stats().used_bytes == 0);
}

TEST_CASE("threads take, find and give back at the same time", "[device]") {
  host_block_pool pool(64 * page);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&pool, &wrong, seed] {
      std::minstd_rand random(seed + 1);
      std::vector<tensor> held(8);
      for (int i = 0; i < 2000; ++i) {
        tensor& t = held[random() % held.size()];
        if (t.defined() && t.data<unsigned char>()[t.size() - 1] != seed)
          ++wrong; // another thread wrote here
        t = make_host_tensor(pool, dtype::uint8, {static_cast<int64_t>(1 + random() % (20 * page))});
        t.mutable_data<unsigned char>()[t.size() - 1] = static_cast<unsigned char>(seed);
        wrong += pool.find(t.data(), t.bytes()) == nullptr;
      }
    });
  for (std::thread& t : threads)
    t.join();
  CHECK(wrong == 0);
  CHECK(pool.stats().used_bytes == 0);
  CHECK(pool.stats().idle_bytes <= 64 * page);
  CHECK(pool.stats().mapped_bytes == pool.stats().idle_bytes);
}
