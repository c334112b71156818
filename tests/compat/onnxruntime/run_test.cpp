// Runs: whose memory is whose, errors, ends before the end, threads.
#include "compat/onnxruntime/client.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

using namespace troupe::test;
using Catch::Contains;

TEST_CASE("onnxruntime: outputs are new values, or go into the client's memory", "[onnxruntime]") {
  const auto env = make_env();
  const auto session = make_session(env.get(), onnx_bytes::add(), make_options().get());
  std::vector<float> a{1, 2, 3, 4}, b{10, 20, 30, 40}, c(4, 0), narrow(2, 0);
  const auto first = over(a, {2, 2}), second = over(b, {2, 2});
  OrtValue* made = nullptr;
  must(run(session.get(), {"a", "b"}, {first.get(), second.get()}, "c", &made));
  CHECK(floats(own(made).get()) == std::vector<float>{11, 22, 33, 44});

  a[0] = 100; // the client's memory, as it is when the run begins
  const auto target = over(c, {2, 2});
  OrtValue* place = target.get();
  must(run(session.get(), {"a", "b"}, {first.get(), second.get()}, "c", &place));
  CHECK(place == target.get());
  CHECK(c == std::vector<float>{110, 22, 33, 44});

  const auto too_small = over(narrow, {1, 2});
  place = too_small.get();
  const problem p = problem_of(run(session.get(), {"a", "b"}, {first.get(), second.get()}, "c", &place));
  CHECK(p.code == ORT_INVALID_ARGUMENT);
  CHECK_THAT(p.message, Contains("'c'"));
  CHECK(narrow == std::vector<float>{0, 0});
}

TEST_CASE("onnxruntime: an output that is an input has memory of its own", "[onnxruntime]") {
  using namespace onnx_bytes;
  const std::string type = tensor_type(1, {"n"});
  const auto env = make_env();
  const auto session = make_session(env.get(),
                                    model({.nodes = {node("Identity", {"x"}, {"y"})},
                                           .inputs = {value("x", type)},
                                           .outputs = {value("y", type)},
                                           .initializers = {}}),
                                    make_options().get());
  std::vector<float> x{1, 2, 3};
  OrtValue* y = nullptr;
  must(run(session.get(), {"x"}, {over(x, {3}).get()}, "y", &y));
  x[0] = 9;
  CHECK(floats(own(y).get()) == std::vector<float>{1, 2, 3});
}

TEST_CASE("onnxruntime: a scalar may be given as a list of one", "[onnxruntime]") {
  using namespace onnx_bytes;
  const auto env = make_env();
  const auto session =
      make_session(env.get(),
                   model({.nodes = {node("Add", {"x", "by"}, {"y"})},
                          .inputs = {value("x", tensor_type(1, {"n"})), value("by", tensor_type(1, {}))},
                          .outputs = {value("y", tensor_type(1, {"n"}))},
                          .initializers = {}}),
                   make_options().get());
  std::vector<float> x{1, 2}, by{10}, two{10, 20};
  OrtValue* y = nullptr;
  must(run(session.get(), {"x", "by"}, {over(x, {2}).get(), over(by, {1}).get()}, "y", &y));
  CHECK(floats(own(y).get()) == std::vector<float>{11, 12});
  CHECK(problem_of(run(session.get(), {"x", "by"}, {over(x, {2}).get(), over(two, {2}).get()}, "y", &y)).code ==
        ORT_INVALID_ARGUMENT);
}

TEST_CASE("onnxruntime: an input without elements takes the sizes of names that others have", "[onnxruntime]") {
  using namespace onnx_bytes;
  const auto env = make_env();
  const auto rows = [](const char* count) { return tensor_type(1, {"batch", count, "2"}); };
  const auto session = make_session(env.get(),
                                    model({.nodes = {node("Concat", {"past", "x"}, {"y"}, {attribute("axis", 1)})},
                                           .inputs = {value("past", rows("before")), value("x", rows("new"))},
                                           .outputs = {value("y", rows("all"))},
                                           .initializers = {}}),
                                    make_options().get());
  std::vector<float> none, two{1, 2, 3, 4}, three{5, 6, 7, 8, 9, 10};
  const auto joined = [&](const owned<OrtValue>& past, const owned<OrtValue>& x) {
    OrtValue* y = nullptr;
    const problem p = problem_of(run(session.get(), {"past", "x"}, {past.get(), x.get()}, "y", &y));
    return p.code == ORT_OK ? floats(own(y).get()) : std::vector<float>{};
  };
  CHECK(joined(over(none, {0, 0, 2}), over(two, {2, 1, 2})) == two);
  CHECK(joined(over(none, {0, 0, 2}), over(three, {1, 3, 2})) == three);
  CHECK(joined(over(three, {1, 3, 2}), over(none, {0, 0, 2})) == three);
  CHECK(joined(over(two, {1, 2, 2}), over(three, {1, 3, 2})) == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(joined(over(none, {0, 0, 2}), over(none, {0, 1, 2})).empty());
  // Filled in, this one would have elements: it stays what it is, and joins nothing.
  CHECK(joined(over(none, {0, 1, 2}), over(two, {2, 1, 2})).empty());
}

TEST_CASE("onnxruntime: wrong inputs and outputs are errors that name them", "[onnxruntime]") {
  const auto env = make_env();
  const auto session = make_session(env.get(), onnx_bytes::add(), make_options().get());
  std::vector<float> a{1, 2, 3, 4};
  const auto first = over(a, {2, 2}), flat = over(a, {4});
  OrtValue* made = nullptr;
  const auto fails = [&](const std::vector<const char*>& names, const std::vector<const OrtValue*>& inputs,
                         const char* output) {
    const problem p = problem_of(run(session.get(), names, inputs, output, &made));
    CHECK(p.code == ORT_INVALID_ARGUMENT);
    CHECK(made == nullptr);
    return p.message;
  };
  CHECK_THAT(fails({"a"}, {first.get()}, "c"), Contains("b"));
  CHECK_THAT(fails({"a", "z"}, {first.get(), first.get()}, "c"), Contains("'z'"));
  CHECK_THAT(fails({"a", "b"}, {first.get(), first.get()}, "d"), Contains("'d'"));
  CHECK_THAT(fails({"a", "b"}, {first.get(), flat.get()}, "c"), Contains("b"));
  CHECK_THAT(fails({"a", "b"}, {first.get(), nullptr}, "c"), Contains("'b'"));
}

TEST_CASE("onnxruntime: a run that fails on a device returns at once, and gives its inputs back", "[onnxruntime]") {
  const auto env = make_env();
  const auto session = make_session(env.get(), onnx_bytes::gather(), make_options().get());
  std::vector<float> x{1, 2, 3};
  std::vector<int64_t> at{1}, outside{5};
  const auto data = over(x, {3}), good = over(at, {1}), bad = over(outside, {1});
  OrtValue* y = nullptr;
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const problem p = problem_of(run(session.get(), {"x", "at"}, {data.get(), bad.get()}, "y", &y));
    CHECK(p.code == ORT_INVALID_ARGUMENT);
    CHECK(y == nullptr);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)); // else it waits a minute for them
    must(run(session.get(), {"x", "at"}, {data.get(), good.get()}, "y", &y));
    CHECK(floats(own(std::exchange(y, nullptr)).get()) == std::vector<float>{2});
  }
}

TEST_CASE("onnxruntime: inputs that decide shapes are the client's again after a run", "[onnxruntime]") {
  using namespace onnx_bytes;
  const std::string model_bytes =
      model({.nodes = {node("Slice", {"x", "from", "to"}, {"y"})},
             .inputs = {value("x", tensor_type(1, {"n"})), value("from", tensor_type(7, {"1"})),
                        value("to", tensor_type(7, {"1"}))},
             .outputs = {value("y", tensor_type(1, {"m"}))},
             .initializers = {}});
  const auto env = make_env();
  const auto options = make_options();
  std::vector<owned<OrtSession>> sessions;
  for (int i = 0; i < 3; ++i) {
    sessions.push_back(make_session(env.get(), model_bytes, options.get()));
    std::vector<float> x{1, 2, 3, 4};
    std::vector<int64_t> from{1}, to{3};
    const auto values = over(x, {4}), begin = over(from, {1}), end = over(to, {1});
    OrtValue* y = nullptr;
    must(run(sessions.back().get(), {"x", "from", "to"}, {values.get(), begin.get(), end.get()}, "y", &y));
    CHECK(floats(own(y).get()) == std::vector<float>{2, 3});
    from = {0}, to = {4};
  }
}

TEST_CASE("onnxruntime: a run never says that the model is invalid", "[onnxruntime]") {
  using namespace onnx_bytes;
  const auto env = make_env();
  const auto session =
      make_session(env.get(),
                   model({.nodes = {node("Reshape", {"x", "to"}, {"y"})},
                          .inputs = {value("x", tensor_type(1, {"n"})), value("to", tensor_type(7, {"2"}))},
                          .outputs = {value("y", tensor_type(1, {"a", "b"}))},
                          .initializers = {}}),
                   make_options().get());
  std::vector<float> x{1, 2, 3, 4};
  std::vector<int64_t> to{-1, -1};
  OrtValue* y = nullptr;
  CHECK(problem_of(run(session.get(), {"x", "to"}, {over(x, {4}).get(), over(to, {2}).get()}, "y", &y)).code ==
        ORT_FAIL);
}

TEST_CASE("onnxruntime: a value of another kind than the output is refused", "[onnxruntime]") {
  using namespace onnx_bytes;
  const auto env = make_env();
  const std::string row = tensor_type(1, {"n"});
  const auto session = make_session(env.get(),
                                    model({.nodes = {node("SequenceConstruct", {"x"}, {"y"})},
                                           .inputs = {value("x", row)},
                                           .outputs = {value("y", sequence_type(row))},
                                           .initializers = {}}),
                                    make_options().get());
  std::vector<float> x{1, 2}, place(2, 0);
  const auto target = over(place, {2});
  OrtValue* y = target.get();
  CHECK(problem_of(run(session.get(), {"x"}, {over(x, {2}).get()}, "y", &y)).code == ORT_INVALID_ARGUMENT);
  CHECK(place == std::vector<float>{0, 0});
}

TEST_CASE("onnxruntime: a run is ended by its options, and others with them until that is undone", "[onnxruntime]") {
  const auto env = make_env();
  const auto session = make_session(env.get(), onnx_bytes::count(1'000'000'000), make_options().get());
  OrtRunOptions* options = nullptr;
  must(ort().CreateRunOptions(&options));
  const owned<OrtRunOptions> keep(options, {ort().ReleaseRunOptions});
  must(ort().RunOptionsSetRunTag(options, "the long one"));
  const char* tag = nullptr;
  must(ort().RunOptionsGetRunTag(options, &tag));
  CHECK(std::string(tag) == "the long one");
  must(ort().RunOptionsSetRunTag(options, nullptr)); // it stays
  must(ort().RunOptionsGetRunTag(options, &tag));
  CHECK(std::string(tag) == "the long one");

  std::vector<float> x{0};
  const auto input = over(x, {1});
  OrtValue* y = nullptr;
  auto running = std::async(std::launch::async,
                            [&] { return problem_of(run(session.get(), {"x"}, {input.get()}, "y", &y, options)); });
  CHECK(running.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout);
  must(ort().RunOptionsSetTerminate(options));
  CHECK(running.get().code == ORT_FAIL);
  CHECK(problem_of(run(session.get(), {"x"}, {input.get()}, "y", &y, options)).code == ORT_FAIL);
  CHECK(y == nullptr);

  must(ort().RunOptionsUnsetTerminate(options));
  const auto brief = make_session(env.get(), onnx_bytes::count(3), make_options().get());
  must(run(brief.get(), {"x"}, {input.get()}, "y", &y, options));
  CHECK(floats(own(y).get()) == std::vector<float>{3});
}

TEST_CASE("onnxruntime: an asynchronous run calls back once", "[onnxruntime]") {
  struct answer {
    std::promise<problem> problem_promise;
    size_t count = 0;
  };
  const auto env = make_env();
  const auto session = make_session(env.get(), onnx_bytes::add(), make_options().get());
  std::vector<float> a{1, 2}, b{3, 4}, wrong{1};
  const auto first = over(a, {1, 2}), second = over(b, {1, 2}), bad = over(wrong, {1, 1});
  const char *names[] = {"a", "b"}, *output = "c";
  const auto call = [](void* data, OrtValue** /*outputs*/, size_t count, OrtStatus* status) {
    static_cast<answer*>(data)->count = count;
    static_cast<answer*>(data)->problem_promise.set_value(problem_of(status));
  };
  for (const OrtValue* other : {second.get(), bad.get()}) {
    answer got;
    const OrtValue* inputs[] = {first.get(), other};
    OrtValue* made = nullptr;
    must(ort().RunAsync(session.get(), nullptr, names, inputs, 2, &output, 1, &made, call, &got));
    const problem p = got.problem_promise.get_future().get();
    CHECK(got.count == 1);
    if (other == second.get()) {
      CHECK(p.code == ORT_OK);
      CHECK(floats(own(made).get()) == std::vector<float>{4, 6});
    } else {
      CHECK(p.code == ORT_INVALID_ARGUMENT);
      CHECK(made == nullptr);
    }
  }
}

TEST_CASE("onnxruntime: a value that is released keeps its memory until no run reads it", "[onnxruntime]") {
  struct freeing : OrtAllocator {
    std::atomic<int> freed = 0;
    freeing() : OrtAllocator{} {
      version = 14;
      Free = [](OrtAllocator* self, void* /*data*/) { ++static_cast<freeing*>(self)->freed; };
    }
  } frees;
  const auto env = make_env();
  const auto session = make_session(env.get(), onnx_bytes::count(1'000'000'000), make_options().get());
  OrtRunOptions* options = nullptr;
  must(ort().CreateRunOptions(&options));
  const owned<OrtRunOptions> keep(options, {ort().ReleaseRunOptions});
  std::vector<float> x{0};
  const int64_t dims[] = {1};
  OrtValue *input = nullptr, *made = nullptr;
  must(ort().CreateTensorWithDataAndDeleterAsOrtValue(&frees, x.data(), sizeof(float), dims, 1,
                                                      ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
  std::promise<problem> ended;
  const char *name = "x", *output = "y";
  const OrtValue* inputs[] = {input};
  const auto call = [](void* data, OrtValue** /*outputs*/, size_t /*count*/, OrtStatus* status) {
    static_cast<std::promise<problem>*>(data)->set_value(problem_of(status));
  };
  must(ort().RunAsync(session.get(), options, &name, inputs, 1, &output, 1, &made, call, &ended));
  ort().ReleaseValue(input);
  CHECK(frees.freed == 0);
  must(ort().RunOptionsSetTerminate(options));
  CHECK(ended.get_future().get().code == ORT_FAIL);
  for (int i = 0; i < 1000 && frees.freed == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(frees.freed == 1);
}

TEST_CASE("onnxruntime: a session and options that are released go when their asynchronous run has ended",
          "[onnxruntime]") {
  const auto env = make_env();
  auto session = make_session(env.get(), onnx_bytes::count(20'000), make_options().get());
  OrtRunOptions* options = nullptr;
  must(ort().CreateRunOptions(&options));
  std::vector<float> x{0};
  std::promise<problem> ended;
  const char *name = "x", *output = "y";
  OrtValue* made = nullptr;
  {
    const auto input = over(x, {1});
    const OrtValue* inputs[] = {input.get()};
    const auto call = [](void* data, OrtValue** /*outputs*/, size_t /*count*/, OrtStatus* status) {
      static_cast<std::promise<problem>*>(data)->set_value(problem_of(status));
    };
    must(ort().RunAsync(session.get(), options, &name, inputs, 1, &output, 1, &made, call, &ended));
  }
  ort().ReleaseRunOptions(options);
  session.reset();
  CHECK(ended.get_future().get().code == ORT_OK);
  CHECK(floats(own(made).get()) == std::vector<float>{20'000});
}

TEST_CASE("onnxruntime: many threads run one session, and two sessions, side by side", "[onnxruntime]") {
  const auto env = make_env();
  const auto options = make_options();
  const auto one = make_session(env.get(), onnx_bytes::add(), options.get());
  const auto two = make_session(env.get(), onnx_bytes::add(), options.get());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      OrtSession* session = t % 4 == 0 ? two.get() : one.get();
      for (int i = 0; i < 50; ++i) {
        std::vector<float> a(static_cast<size_t>(2 * (1 + i % 3)), static_cast<float>(t)), b(a.size(), 1);
        const std::vector<int64_t> dims{static_cast<int64_t>(a.size() / 2), 2};
        OrtMemoryInfo* memory = nullptr; // no assertions here: Catch2 takes them from one thread only
        OrtValue *values[2] = {}, *sum = nullptr;
        OrtStatus* status = ort().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory);
        for (int v = 0; v < 2 && !status; ++v)
          status =
              ort().CreateTensorWithDataAsOrtValue(memory, (v ? b : a).data(), a.size() * sizeof(float), dims.data(), 2,
                                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &values[v]);
        if (!status)
          status = run(session, {"a", "b"}, {values[0], values[1]}, "c", &sum);
        void* data = nullptr;
        if (!status)
          status = ort().GetTensorMutableData(sum, &data);
        if (status || static_cast<float*>(data)[a.size() - 1] != static_cast<float>(t + 1))
          ++wrong;
        ort().ReleaseStatus(status);
        for (OrtValue* v : {values[0], values[1], sum})
          ort().ReleaseValue(v);
        ort().ReleaseMemoryInfo(memory);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(wrong == 0);
}
