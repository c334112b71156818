"""The table of onnxruntime's names (scripts/python-names): its entries are true."""
import importlib.machinery
import importlib.util
import unittest

import models
import numpy as np
from onnx import TensorProto

import troupe
from troupe import errors

loader = importlib.machinery.SourceFileLoader("python_names", str(models.ROOT / "scripts" / "python-names"))
table = importlib.util.module_from_spec(importlib.util.spec_from_loader("python_names", loader))
loader.exec_module(table)


class Names(unittest.TestCase):
    def test_at_most_a_tenth_is_missing(self):
        verdicts = [table.verdict(name)[0] for name in table.names()]
        self.assertGreater(len(verdicts), 140)
        self.assertLessEqual(verdicts.count("missing"), len(verdicts) // 10)
        self.assertEqual(table.verdict("InferenceSession.no_such_method"), ("missing", ""))
        self.assertEqual(table.verdict("InferenceSession.run"), ("works", ""))

    def test_what_is_refused_raises(self):
        session = troupe.InferenceSession(models.unary("Neg", TensorProto.FLOAT), providers=["cpu"])
        made = {
            "InferenceSession": session,
            "SessionOptions": troupe.SessionOptions(),
            "RunOptions": troupe.RunOptions(),
            "OrtValue": troupe.OrtValue.ortvalue_from_numpy(np.zeros(1)),
        }
        refused = [name for name in table.names() if table.verdict(name)[0] == "refused"]
        self.assertGreater(len(refused), 10)
        for name in refused:
            owner, _, attribute = name.rpartition(".")
            holder = made[owner] if owner else troupe
            with self.subTest(name), self.assertRaises(errors.NotImplemented):
                if isinstance(getattr(type(holder), attribute, None), property):
                    setattr(holder, attribute, True)
                    continue
                call = getattr(holder, attribute)
                call(*["x"] * self.arguments_of(call))

    @staticmethod
    def arguments_of(call):
        code = (call.__init__ if isinstance(call, type) else call).__code__
        return code.co_argcount - len((call.__init__ if isinstance(call, type) else call).__defaults__ or ()) - (
            0 if "self" not in code.co_varnames[:1] else 1
        )


if __name__ == "__main__":
    unittest.main()
