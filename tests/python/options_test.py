"""onnxruntime's options and arguments: which are mapped, which are hints, which are refused."""
import contextlib
import json
import pathlib
import tempfile
import threading
import unittest
import warnings

import models
import numpy as np
from onnx import TensorProto, helper

import troupe as onnxruntime
from troupe import errors


CPU = ["CPUExecutionProvider"]


def digits(count=8):
    return np.load(models.DIGITS_DATA)["images"][:count, None].astype(np.float32) / 16


class Options(unittest.TestCase):
    def test_absent_providers_are_skipped_with_a_warning(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session = onnxruntime.InferenceSession(models.DIGITS, providers=["CUDAExecutionProvider", "cpu"])
        self.assertEqual(session.get_providers(), ["cpu"])
        self.assertIn("'CUDAExecutionProvider' is not in available provider names", str(caught[0].message))

    def test_devices_in_troupes_words(self):
        session = onnxruntime.InferenceSession(models.DIGITS, providers=["cpu*2"])
        self.assertEqual(session.get_providers(), ["cpu", "cpu#1"])
        self.assertEqual(session.run(None, {"image": digits()})[0].shape, (8, 10))
        limited = onnxruntime.InferenceSession(models.DIGITS, providers=["cpu"], provider_options=[{"memory": 1 << 30}])
        self.assertEqual(limited.get_provider_options()["cpu"]["memory_bytes"], str(1 << 30))
        with self.assertRaisesRegex(errors.InvalidArgument, "provider 'cpu' has no option 'arena'; they are: memory"):
            onnxruntime.InferenceSession(models.DIGITS, providers=[("cpu", {"arena": 1})])

    def test_what_does_not_map_is_refused(self):
        options = onnxruntime.SessionOptions()
        for name, value in (("use_deterministic_compute", True), ("optimized_model_filepath", "x")):
            with self.assertRaisesRegex(errors.NotImplemented, f"SessionOptions.{name} = "):
                setattr(options, name, value)
        with self.assertRaises(AttributeError):
            options.no_such_option = 1
        with self.assertRaisesRegex(errors.NotImplemented,
                                    "configuration entry 'ep.x': no entry has this name; there are troupe"):
            options.add_session_config_entry("ep.x", "1")
        with self.assertRaisesRegex(errors.NotImplemented, "what a GPU cannot run, the CPU does"):
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        with self.assertRaisesRegex(errors.NotImplemented, "beside the model's file"):
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", "elsewhere")
        with self.assertRaisesRegex(errors.NotImplemented, "run configuration entry 'x'|configuration entry 'x'"):
            onnxruntime.RunOptions().add_run_config_entry("x", "1")

    def test_hints_are_accepted_and_noted_once(self):
        with self.assertLogs("troupe", "DEBUG") as log:
            for _ in range(2):
                options = onnxruntime.SessionOptions()
                options.log_verbosity_level = 7
                options.enable_cpu_mem_arena = options.enable_mem_pattern = options.enable_mem_reuse = False
                options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
                options.add_session_config_entry("session.intra_op.allow_spinning", "0")
                options.add_session_config_entry("session.set_denormal_as_zero", "1")
                run_options = onnxruntime.RunOptions()
                run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self.assertEqual(len([line for line in log.output if "log_verbosity_level = 7 has no effect" in line]), 1)
        self.assertEqual(options.get_session_config_entry("session.intra_op.allow_spinning"), "0")
        session = onnxruntime.InferenceSession(models.DIGITS, options, providers=["cpu"],
                                               disabled_optimizers=["ConstantFolding"])
        self.assertEqual(session.run(None, {"image": digits()}, run_options)[0].shape, (8, 10))

    def test_numbers_of_threads_are_taken(self):
        options = onnxruntime.SessionOptions()
        for number in (1, 0, -1):  # less than 1: as many as there are
            options.intra_op_num_threads, options.inter_op_num_threads = number, number
            session = onnxruntime.InferenceSession(models.DIGITS, options, providers=["cpu"])
            self.assertEqual(session.run(None, {"image": digits()})[0].shape, (8, 10))

    def test_dims_that_a_model_has_not_are_let_be(self):
        options = onnxruntime.SessionOptions()
        options.add_free_dimension_override_by_name("of_another_model", 3)
        session = onnxruntime.InferenceSession(models.DIGITS, options, providers=["cpu"])
        self.assertEqual(session.run(None, {"image": digits(2)})[0].shape, (2, 10))
        options.add_free_dimension_override_by_name("batch", 8)
        session = onnxruntime.InferenceSession(models.DIGITS, options, providers=["cpu"])
        self.assertEqual(session.run(None, {"image": digits()})[0].shape, (8, 10))
        with self.assertRaisesRegex(errors.InvalidArgument, "batch"):
            session.run(None, {"image": digits(2)})

    def test_telemetry_is_neither_there_nor_refused(self):
        onnxruntime.enable_telemetry_events()
        onnxruntime.disable_telemetry_events()

    def test_a_named_device_that_runs_nothing_is_logged_once(self):
        session = onnxruntime.InferenceSession(models.DIGITS, providers=["cpu*2"])
        with self.assertLogs("troupe", "WARNING") as log:
            for _ in range(2):
                session.run(None, {"image": digits()})
        self.assertEqual(len(log.output), 1)
        self.assertIn("device 'cpu#1' runs no node of this model (cpu runs all): policy single puts all on cpu",
                      log.output[0])
        with self.assertNoLogs("troupe", "WARNING") if hasattr(self, "assertNoLogs") else contextlib.nullcontext():
            onnxruntime.InferenceSession(models.DIGITS, providers=["cpu"]).run(None, {"image": digits()})

    def test_a_declared_shape_that_is_not_so_is_logged(self):
        node = helper.make_node("Neg", ["x"], ["y"])
        wrong = models.model(
            [node], [models.value("x", TensorProto.FLOAT, [3])], [models.value("y", TensorProto.FLOAT, [1, 4])]
        )
        with self.assertLogs("troupe", "WARNING") as log:
            result = onnxruntime.InferenceSession(wrong, providers=["cpu"]).run(None, {"x": np.ones(3, np.float32)})
        self.assertEqual(result[0].shape, (3,))
        self.assertIn("output 'y' has shape [3], though the model declares [1, 4]", log.output[0])

    def test_set_providers_loads_the_model_there(self):
        session = onnxruntime.InferenceSession(models.DIGITS, providers=["cpu*2"])
        session.set_providers(["CPUExecutionProvider"])
        self.assertEqual(session.get_providers(), ["cpu"])
        self.assertEqual(session.run(None, {"image": digits()})[0].shape, (8, 10))

    def test_arguments_of_the_wrong_kind_are_named(self):
        session = onnxruntime.InferenceSession(models.DIGITS, providers="cpu")
        with self.assertRaisesRegex(TypeError, "output_names is a list of names, not a str"):
            session.run("scores", {"image": digits()})
        with self.assertRaisesRegex(TypeError, "inputs are given as a dict"):
            session.run(None, [digits()])
        with self.assertRaisesRegex(TypeError, "names of inputs are str, not int"):
            session.run(None, {0: digits()})
        with self.assertRaisesRegex(ValueError, "input 'image': "):
            session.run(None, {"image": [[1.0], [1.0, 2.0]]})
        with self.assertRaisesRegex(TypeError, "sess_options is a list, not SessionOptions"):
            onnxruntime.InferenceSession(models.DIGITS, ["cpu"])

    def test_an_initializer_that_is_an_input_can_be_given(self):
        weight = helper.make_tensor("w", TensorProto.FLOAT, [2], [10, 20])
        inputs = [models.value("x", TensorProto.FLOAT, [2]), models.value("w", TensorProto.FLOAT, [2])]
        model = models.model([helper.make_node("Add", ["x", "w"], ["y"])], inputs,
                             [models.value("y", TensorProto.FLOAT, [2])], [weight])
        session = onnxruntime.InferenceSession(model, providers=["cpu"])
        self.assertEqual([i.name for i in session.get_inputs()], ["x"])
        self.assertEqual([i.name for i in session.get_overridable_initializers()], ["w"])
        x = np.ones(2, np.float32)
        self.assertEqual(session.run(None, {"x": x})[0].tolist(), [11, 21])
        self.assertEqual(session.run(None, {"x": x, "w": x})[0].tolist(), [2, 2])

    def test_dims_are_called_as_the_file_does(self):
        model = models.unary("Neg", TensorProto.FLOAT, dims=("past_sequence_length + 1",))
        options = onnxruntime.SessionOptions()
        options.add_free_dimension_override_by_name("past_sequence_length + 1", 3)
        session = onnxruntime.InferenceSession(model, options, providers=["cpu"])
        self.assertEqual(session.get_inputs()[0].shape, ["past_sequence_length + 1"])
        self.assertEqual(session.run(None, {"x": np.ones(3, np.float32)})[0].tolist(), [-1, -1, -1])
        with self.assertRaisesRegex(ValueError, "3 expected"):
            session.run(None, {"x": np.ones(4, np.float32)})

    def test_what_maps_is_mapped(self):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_free_dimension_override_by_name("batch", 8)
        options.add_session_config_entry("troupe.strategy", "data-parallel")
        session = onnxruntime.InferenceSession(models.DIGITS, options, providers=["cpu*2"])
        self.assertEqual(session.run(None, {"image": digits()})[0].shape, (8, 10))
        with self.assertRaisesRegex(errors.InvalidArgument, "8"):
            session.run(None, {"image": digits(4)})
        plan = session.troupe_session.plan({"image": digits()})
        self.assertIn("data-parallel", plan)
        self.assertNotIn("troupe.Conv", plan)

    def test_profiling_writes_a_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            options = onnxruntime.SessionOptions()
            options.enable_profiling = True
            options.profile_file_prefix = f"{folder}/run_"
            session = onnxruntime.InferenceSession(models.DIGITS, options, providers=CPU)
            session.run(None, {"image": digits()})
            self.assertIn("traceEvents", json.loads(pathlib.Path(session.end_profiling()).read_text()))

    def test_terminate_ends_runs(self):
        session = onnxruntime.InferenceSession(models.long_loop(50_000_000), providers=CPU)
        options = onnxruntime.RunOptions()
        timer = threading.Timer(0.3, lambda: setattr(options, "terminate", True))
        timer.start()
        with self.assertRaises(errors.Cancelled):
            session.run(None, {"x": np.ones(4, np.float32)}, options)
        timer.join()

    def test_terminate_ends_runs_that_nobody_waits_for(self):
        session = onnxruntime.InferenceSession(models.long_loop(50_000_000), providers=CPU)
        options, done, seen = onnxruntime.RunOptions(), threading.Event(), []

        def callback(outputs, user_data, error):
            seen.append((outputs, error))
            done.set()

        session.run_async(None, {"x": np.ones(4, np.float32)}, callback, None, options)
        self.assertFalse(done.wait(0.2))
        options.terminate = True
        self.assertTrue(done.wait(30))
        self.assertEqual(seen[0][0], [])
        self.assertIn("cancelled", seen[0][1])

    def test_a_run_takes_no_longer_than_it_may(self):
        session = onnxruntime.InferenceSession(models.long_loop(50_000_000), providers=CPU)
        options = onnxruntime.RunOptions()
        options.timeout = 0.2
        with self.assertRaises(TimeoutError):
            session.run(None, {"x": np.ones(4, np.float32)}, options)


if __name__ == "__main__":
    unittest.main()
