"""onnxruntime's names: results, memory, types, errors, bindings."""
import pathlib
import subprocess
import tempfile
import threading
import unittest

import models
import numpy as np
from onnx import TensorProto, helper

import troupe as onnxruntime
from troupe import errors

CPU = ["CPUExecutionProvider"]


def digits(count=8):
    return np.load(models.DIGITS_DATA)["images"][:count, None].astype(np.float32) / 16


class Results(unittest.TestCase):
    def test_the_command_gives_the_same(self):
        image = digits()
        scores = onnxruntime.InferenceSession(str(models.DIGITS), providers=CPU).run(["scores"], {"image": image})[0]
        command = pathlib.Path(onnxruntime.__file__).parent / "bin" / "troupe"
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/image.npy", image)
            subprocess.run(
                [command, "run", models.DIGITS, "--devices", "cpu", "--input", f"image={folder}/image.npy", "--output",
                 folder],
                check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            np.testing.assert_array_equal(scores, np.load(f"{folder}/scores.npy"))

    def test_most_digits_are_recognised(self):
        data = np.load(models.DIGITS_DATA)
        session = onnxruntime.InferenceSession(models.DIGITS, providers=CPU)
        scores = session.run(None, {"image": data["images"][:, None].astype(np.float32) / 16})[0]
        self.assertGreater(np.mean(scores.argmax(1) == data["labels"]), 0.9)

    def test_all_element_types_of_numpy(self):
        for code in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 ?".split():
            with self.subTest(code):
                x = np.array([0, 1, 1, 0], code)
                number = {"f2": 10, "f4": 1, "f8": 11, "i1": 3, "i2": 5, "i4": 6, "i8": 7, "u1": 2, "u2": 4, "u4": 12,
                          "u8": 13, "?": 9}[code]
                y = onnxruntime.InferenceSession(models.unary("Identity", number), providers=CPU).run(None, {"x": x})[0]
                self.assertEqual(y.dtype, x.dtype)
                np.testing.assert_array_equal(y, x)

    def test_texts(self):
        session = onnxruntime.InferenceSession(models.unary("Identity", TensorProto.STRING), providers=CPU)
        for x in (np.array(["a", "größe"]), np.array(["a", "größe"], object),
                  np.array(["a".encode(), "größe".encode()], object)):
            self.assertEqual(session.run(None, {"x": x})[0].tolist(), ["a", "größe"])
        for text in (b"ab\xff", "größe".encode()):  # also what is not UTF-8 comes back as it was
            once = session.run(None, {"x": np.array([text], object)})[0]
            self.assertEqual(session.run(None, {"x": once})[0][0].encode(errors="surrogateescape"), text)
        with self.assertRaisesRegex(errors.InvalidArgument, "input 'x': a str holds half of a surrogate pair"):
            session.run(None, {"x": np.array(["\ud800"], object)})
        with self.assertRaisesRegex(errors.InvalidArgument, "input 'x'.*has to hold str or bytes, but holds.*int"):
            session.run(None, {"x": np.array([1, "a"], object)})

    def test_arrays_of_any_memory_order(self):
        session = onnxruntime.InferenceSession(models.unary("Neg", TensorProto.FLOAT, dims=("a", "b")), providers=CPU)
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        shifted = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4)
        for given in (x, x.T, x[::2, ::-1], x.astype(">f4"), x.tolist(), shifted, x[:0], np.asfortranarray(x)):
            expected = -np.asarray(given, np.float32)
            if not isinstance(given, list):
                np.testing.assert_array_equal(session.run(None, {"x": given})[0], expected)
            else:
                np.testing.assert_array_equal(session.run(None, {"x": np.asarray(given, np.float32)})[0], expected)

    def test_a_first_cache_may_have_no_batch(self):
        join = helper.make_node("Concat", ["past", "x"], ["y"], axis=1)
        dims = {"past": ["batch", "before", 2], "x": ["batch", "new", 2], "y": ["batch", "all", 2]}
        past, x, y = (models.value(name, TensorProto.FLOAT, dims[name]) for name in dims)
        session = onnxruntime.InferenceSession(models.model([join], [past, x], [y]), providers=CPU)
        new = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
        feed = {"past": np.zeros((0, 0, 2), np.float32), "x": new}
        np.testing.assert_array_equal(session.run(None, feed)[0], new)
        bound = session.io_binding()
        for name, array in feed.items():
            bound.bind_cpu_input(name, array)
        bound.bind_output("y")
        session.run_with_iobinding(bound)
        np.testing.assert_array_equal(bound.get_outputs()[0].numpy(), new)
        with self.assertRaises(errors.InvalidArgument):
            session.run(None, {**feed, "past": np.zeros((0, 1, 2), np.float32)})

    def test_a_scalar_may_be_a_list_of_one(self):
        add = helper.make_node("Add", ["x", "by"], ["y"])
        x, by, y = (models.value(name, TensorProto.FLOAT, dims) for name, dims in
                    (("x", ["n"]), ("by", []), ("y", ["n"])))
        session = onnxruntime.InferenceSession(models.model([add], [x, by], [y]), providers=CPU)
        result = session.run(None, {"x": np.ones(3, np.float32), "by": np.array([2], np.float32)})[0]
        np.testing.assert_array_equal(result, np.full(3, 3, np.float32))

    def test_bytes_are_a_model(self):
        data = pathlib.Path(models.DIGITS).read_bytes()
        by_bytes = onnxruntime.InferenceSession(data, providers=CPU).run(None, {"image": digits()})[0]
        by_file = onnxruntime.InferenceSession(models.DIGITS, providers=CPU).run(None, {"image": digits()})[0]
        np.testing.assert_array_equal(by_bytes, by_file)

    def test_what_the_model_says_of_itself(self):
        session = onnxruntime.InferenceSession(models.DIGITS, providers=CPU)
        (image,), (scores,) = session.get_inputs(), session.get_outputs()
        self.assertEqual((image.name, image.type, image.shape), ("image", "tensor(float)", ["batch", 1, 8, 8]))
        self.assertEqual((scores.name, scores.type, scores.shape), ("scores", "tensor(float)", ["batch", 10]))
        about = session.get_modelmeta()
        self.assertEqual((about.producer_name, about.graph_name, about.version), ("pytorch", "main_graph", 0))
        self.assertEqual(session.get_providers(), ["cpu"])


class Memory(unittest.TestCase):
    def test_a_large_input_is_not_copied(self):
        session = onnxruntime.InferenceSession(models.unary("Neg", TensorProto.FLOAT), providers=CPU)
        x = np.ones(16 << 20, np.float32)
        session.run(None, {"x": x})
        before = onnxruntime.copy_counters()
        session.run(None, {"x": x})
        after = onnxruntime.copy_counters()
        grown = {name: after[name] - before[name] for name in after}
        self.assertEqual(grown, {"borrowed_bytes": x.nbytes, "copied_bytes": 0, "handed_bytes": x.nbytes,
                                 "copied_out_bytes": 0})

    def test_outputs_may_be_written_to(self):
        session = onnxruntime.InferenceSession(models.shared_outputs(), providers=CPU)
        x = np.array([5, 6, 7, 8], np.float32)
        expected = [[1, 2, 3, 4], [5, 6, 7, 8], [-5, -6, -7, -8], [-5, -6, -7, -8], [4]]
        for _ in range(3):
            outputs = session.run(None, {"x": x})
            for output, want in zip(outputs, expected):
                self.assertEqual(output.tolist(), want)
            for number, output in enumerate(outputs):
                output[...] = 100 + number
            for number, output in enumerate(outputs):
                self.assertTrue((output == 100 + number).all())
        self.assertEqual(x.tolist(), [5, 6, 7, 8])

    def test_outputs_outlive_their_session(self):
        session = onnxruntime.InferenceSession(models.unary("Neg", TensorProto.FLOAT), providers=CPU)
        kept = [session.run(None, {"x": np.full(1000, i, np.float32)})[0] for i in range(50)]
        del session
        self.assertTrue(all((array == -i).all() for i, array in enumerate(kept)))

    def test_eight_threads(self):
        session = onnxruntime.InferenceSession(models.DIGITS, providers=CPU)
        images = digits(64)
        expected = [session.run(None, {"image": images[i : i + 8]})[0] for i in range(0, 64, 8)]
        failures = []

        def work(i):
            for _ in range(50):
                if not np.array_equal(session.run(None, {"image": images[8 * i : 8 * i + 8]})[0], expected[i]):
                    failures.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = onnxruntime.InferenceSession(models.DIGITS, providers=CPU)

    def test_inputs_that_do_not_fit(self):
        image = digits()
        for feed, text in (
            ({}, "input 'image' is missing"),
            ({"image": image, "more": image}, "the model has no input 'more'"),
            ({"image": image.astype(np.float64)}, "input 'image' is float64; the model takes float32"),
            ({"image": image[0]}, r"input 'image' has shape \[1, 8, 8\]; the model takes \[batch, 1, 8, 8\]"),
            ({"image": image.astype(np.complex64)}, "input 'image': arrays of complex64 cannot be passed"),
        ):
            with self.assertRaisesRegex(errors.InvalidArgument, text) as caught:
                self.session.run(None, feed)
            self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaisesRegex(errors.InvalidArgument, "a dict from names to arrays, not as list"):
            self.session.run(None, [image])

    def test_outputs_that_do_not_exist(self):
        with self.assertRaisesRegex(errors.InvalidArgument, "the model has no output 'more'"):
            self.session.run(["more"], {"image": digits()})

    def test_files_that_are_no_models(self):
        with self.assertRaisesRegex(errors.NoSuchFile, "/no/such.onnx"):
            onnxruntime.InferenceSession("/no/such.onnx", providers=CPU)
        for data in (b"", b"abc", b"\xff" * 100):
            with self.assertRaises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidProtobuf):
                onnxruntime.InferenceSession(data, providers=CPU)
        with self.assertRaises(errors.NotImplemented):
            onnxruntime.InferenceSession(models.unary("NoSuchOperator", TensorProto.FLOAT), providers=CPU)

    def test_sequences_at_the_ends_are_refused_by_name(self):
        floats = models.value("x", TensorProto.FLOAT, ["n"])
        made = models.helper.make_tensor_sequence_value_info("many", TensorProto.FLOAT, ["n"])
        sequence = models.model([models.helper.make_node("SequenceConstruct", ["x"], ["many"])], [floats], [made])
        with self.assertRaisesRegex(errors.NotImplemented, r"'many', which is a seq\(tensor\(float\)\)"):
            onnxruntime.InferenceSession(sequence, providers=CPU)

    def test_damaged_models_are_refused(self):
        data = pathlib.Path(models.DIGITS).read_bytes()
        for length in [*range(1, 60), *range(100, len(data), 997)]:
            with self.assertRaises(errors.Error, msg=f"{length} bytes"):
                onnxruntime.InferenceSession(data[:length], providers=CPU)

    def test_types_that_numpy_does_not_have(self):
        session = onnxruntime.InferenceSession(models.cast(TensorProto.FLOAT, TensorProto.BFLOAT16), providers=CPU)
        x = np.array([1, 2.5, -3], np.float32)
        with self.assertRaisesRegex(errors.NotImplemented,
                                    "'y' is of type bfloat16, which NumPy does not have: ask for it as an OrtValue"):
            session.run(None, {"x": x})
        value = session.run_with_ort_values(["y"], {"x": onnxruntime.OrtValue.ortvalue_from_numpy(x)})[0]
        self.assertEqual((value.data_type(), value.shape()), ("tensor(bfloat16)", [3]))
        self.assertEqual(value.bits().tolist(), [0x3F80, 0x4020, 0xC040])
        back = onnxruntime.InferenceSession(models.cast(TensorProto.BFLOAT16, TensorProto.FLOAT), providers=CPU)
        self.assertEqual(back.run(None, {"x": value})[0].tolist(), x.tolist())
        given = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(value.bits(), TensorProto.BFLOAT16)
        self.assertEqual(back.run(None, {"x": given})[0].tolist(), x.tolist())


class Bindings(unittest.TestCase):
    def setUp(self):
        self.session = onnxruntime.InferenceSession(models.unary("Neg", TensorProto.FLOAT), providers=CPU)
        self.x = np.array([1, 2, 3], np.float32)

    def test_outputs_in_all_ways(self):
        binding = self.session.io_binding()
        binding.bind_cpu_input("x", self.x)
        binding.bind_output("y")
        self.session.run_with_iobinding(binding)
        self.assertEqual(binding.copy_outputs_to_cpu()[0].tolist(), [-1, -2, -3])
        binding.bind_output("y", "vulkan")  # stays where it was made: here the CPU
        self.session.run_with_iobinding(binding)
        kept = binding.get_outputs()[0]
        self.assertEqual(kept.numpy().tolist(), [-1, -2, -3])
        binding.bind_ortvalue_input("x", kept)
        buffer = np.zeros(3, np.float32)
        binding.bind_output("y", "cpu", 0, np.float32, [3], buffer.ctypes.data)
        self.session.run_with_iobinding(binding)
        self.assertEqual(buffer.tolist(), [1, 2, 3])
        own = onnxruntime.OrtValue.ortvalue_from_shape_and_type([3], np.float32)
        binding.bind_ortvalue_output("y", own)
        self.session.run_with_iobinding(binding)
        self.assertEqual(own.numpy().tolist(), [1, 2, 3])
        binding.bind_input("x", "cpu", 0, np.float32, [3], buffer.ctypes.data)
        self.session.run_with_iobinding(binding)
        self.assertEqual(own.numpy().tolist(), [-1, -2, -3])

    def test_what_does_not_fit_is_refused(self):
        binding = self.session.io_binding()
        with self.assertRaisesRegex(errors.InvalidArgument, "the model has no input 'z'; it has: x"):
            binding.bind_cpu_input("z", self.x)
        binding.bind_cpu_input("x", self.x)
        binding.bind_ortvalue_output("y", onnxruntime.OrtValue.ortvalue_from_shape_and_type([2], np.float32))
        with self.assertRaisesRegex(errors.InvalidArgument,
                                    r"shape \[3\] does not fit one of type float32 and shape \[2\]"):
            self.session.run_with_iobinding(binding)
        buffer = np.zeros(2, np.float32)
        binding.bind_output("y", "cpu", 0, np.float32, [2], buffer.ctypes.data)
        with self.assertRaisesRegex(errors.InvalidArgument, "does not fit its buffer"):
            self.session.run_with_iobinding(binding)

    def test_run_async_calls_back(self):
        for feed, expected in (({"x": self.x}, [-1, -2, -3]), ({}, "input 'x' is missing")):
            done, seen = threading.Event(), []

            def callback(outputs, user_data, error):
                seen.append((outputs[0].tolist() if outputs else error, user_data))
                done.set()

            self.session.run_async(None, feed, callback, "mine")
            self.assertTrue(done.wait(30))
            self.assertEqual(seen, [(expected, "mine")])


class DLPack(unittest.TestCase):
    def test_out_without_a_copy(self):
        value = onnxruntime.OrtValue.ortvalue_from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
        array = np.from_dlpack(value)
        self.assertEqual(array.ctypes.data, value.data_ptr())
        del value
        self.assertEqual(array.tolist(), [[0, 1, 2], [3, 4, 5]])

    def test_values_of_arrays_share_their_memory(self):
        array = np.arange(3, dtype=np.float32)
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        array[0] = 7
        session = onnxruntime.InferenceSession(models.unary("Neg", TensorProto.FLOAT), providers=CPU)
        self.assertEqual(session.run(None, {"x": value})[0].tolist(), [-7, -1, -2])
        value.update_inplace(np.array([4, 5, 6], np.float32))
        self.assertEqual(array.tolist(), [4, 5, 6])
        fixed = np.arange(3, dtype=np.float32)
        fixed.flags.writeable = False
        for given in (fixed, fixed[::-1], fixed.astype(">f4"), fixed.tolist()):
            value = onnxruntime.OrtValue.ortvalue_from_numpy(given)
            value.update_inplace(np.zeros(3, np.asarray(given).dtype.newbyteorder("=")))
            self.assertEqual(sorted(np.asarray(given).tolist()), [0, 1, 2])
        output = session.run_with_ort_values(None, {"x": onnxruntime.OrtValue.ortvalue_from_numpy(array)})[0]
        with self.assertRaisesRegex(errors.NotImplemented, "no run's output"):
            output.update_inplace(array)
        state = onnxruntime.InferenceSession(models.counter(), providers=CPU).troupe_session.bind({"next": "state"})
        state.run({"state": onnxruntime.OrtValue.ortvalue_from_numpy(array), "x": array})
        array[:] = 99  # the state was a copy
        self.assertEqual(state.run({"x": np.ones(3, np.float32)})["seen"].tolist(), [9, 11, 13])

    def test_in_without_a_copy(self):
        array = np.arange(6, dtype=np.int64).reshape(2, 3)
        value = onnxruntime.OrtValue.from_dlpack(array)
        self.assertEqual((value.data_ptr(), value.shape(), value.data_type()),
                         (array.ctypes.data, [2, 3], "tensor(int64)"))
        with self.assertRaisesRegex(errors.InvalidArgument, "not contiguous"):
            onnxruntime.OrtValue.from_dlpack(array.T)
        session = onnxruntime.InferenceSession(models.unary("Neg", TensorProto.INT64, dims=("a", "b")), providers=CPU)
        self.assertEqual(session.run(None, {"x": value})[0].tolist(), (-array).tolist())

    def test_a_value_of_another_library_is_an_input(self):
        class Other:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        session = onnxruntime.InferenceSession(models.unary("Neg", TensorProto.FLOAT), providers=CPU)
        self.assertEqual(session.run(None, {"x": Other(np.array([1, 2], np.float32))})[0].tolist(), [-1, -2])


if __name__ == "__main__":
    unittest.main()
