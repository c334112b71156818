"""Folders as transformers.js loads them: a model that embeds text (BERT), and one that writes it (GPT-2).

No package of npm ships such a folder, so the weights here are drawn, by a seed: the texts mean nothing, but every word
and number must be that of another library. Written here: config.json, tokenizer.json, and onnx/model.onnx; of the BERT
also onnx/model_quantized.onnx, whose products are computed in 8-bit integers.
"""
import json

import numpy as np
from onnx import TensorProto, helper, numpy_helper

SIZE, HEADS, LAYERS, LONGEST = 128, 4, 3, 64
WORDS = """[PAD] [UNK] [CLS] [SEP] a an and at before brown by counts device every fox in is it jumps lazy dog last
of on one over part quick reads river runs ship slow small stars still stone that the then through to
tree two under water when which wind with words ##s ##ed ##ing . ,""".split()


class Writer:
    """Nodes and constants of a graph; each method adds one and returns the name of its output."""

    def __init__(self, seed, quantized):
        self.random, self.quantized, self.nodes, self.constants = np.random.default_rng(seed), quantized, [], {}

    def constant(self, name, array):
        self.constants.setdefault(name, numpy_helper.from_array(np.asarray(array), name))
        return name

    def drawn(self, name, *dims):
        return self.constant(name, (self.random.standard_normal(dims) * 0.3).astype(np.float32))

    def __call__(self, operator, *inputs, output=None, outputs=1, **attributes):
        name = output or f"{operator}.{len(self.nodes)}"
        names = [name, *(f"{name}.{i}" for i in range(1, outputs))]
        self.nodes.append(helper.make_node(operator, list(inputs), names, name=name, **attributes))
        return name if outputs == 1 else names

    def linear(self, x, name, inputs, outputs):
        """x times a drawn matrix, and a drawn bias."""
        matrix = (self.random.standard_normal((inputs, outputs)) * inputs**-0.5).astype(np.float32)
        if not self.quantized:
            product = self("MatMul", x, self.constant(f"{name}.matrix", matrix))
        else:
            step = np.float32(np.abs(matrix).max() / 127)
            weight = self.constant(f"{name}.matrix", np.rint(matrix / step).astype(np.int8))
            bytes_of_x, step_of_x, zero = self("DynamicQuantizeLinear", x, outputs=3)
            whole = self("MatMulInteger", bytes_of_x, weight, zero)
            steps = self("Mul", step_of_x, self.constant(f"{name}.step", step))
            product = self("Mul", self("Cast", whole, to=TensorProto.FLOAT), steps)
        return self("Add", product, self.drawn(f"{name}.bias", outputs))

    def norm(self, x, name):
        gain = self.constant(f"{name}.gain", np.ones(SIZE, np.float32))
        return self("LayerNormalization", x, gain, self.drawn(f"{name}.shift", SIZE), axis=-1)

    def gelu(self, x):
        bent = self("Erf", self("Mul", x, self.constant("root", np.float32(0.5**0.5))))
        half = self("Mul", x, self.constant("half", np.float32(0.5)))
        return self("Mul", half, self("Add", bent, self.constant("one", np.float32(1))))

    def length(self, x, axis):
        return self("Gather", self("Shape", x), self.constant(f"axis{axis}", np.int64(axis)), axis=0)

    def model(self, inputs, outputs):
        """Returns the model; inputs and outputs are (name, type, dims)."""
        infos = [[helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "drawn", *infos, list(self.constants.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def attention(g, x, name, mask, past=None):
    """Attention of x [batch, seq, SIZE]; past: the layer whose cache its keys and values follow."""
    def heads(part):
        product = g.linear(x, f"{name}.{part}", SIZE, SIZE)
        split = g("Reshape", product, g.constant("split", np.int64([0, 0, HEADS, SIZE // HEADS])))
        return g("Transpose", split, perm=[0, 2, 1, 3])

    query, key, value = heads("query"), heads("key"), heads("value")
    if past is not None:
        key = g("Concat", f"past_key_values.{past}.key", key, axis=2, output=f"present.{past}.key")
        value = g("Concat", f"past_key_values.{past}.value", value, axis=2, output=f"present.{past}.value")
    scores = g("MatMul", query, g("Transpose", key, perm=[0, 1, 3, 2]))
    scores = g("Add", g("Mul", scores, g.constant("scale", np.float32((SIZE // HEADS) ** -0.5))), mask)
    mixed = g("Transpose", g("MatMul", g("Softmax", scores, axis=-1), value), perm=[0, 2, 1, 3])
    return g.linear(g("Reshape", mixed, g.constant("join", np.int64([0, 0, SIZE]))), f"{name}.out", SIZE, SIZE)


def hidden(g, x, name):
    return g.linear(g.gelu(g.linear(x, f"{name}.up", SIZE, 4 * SIZE)), f"{name}.down", 4 * SIZE, SIZE)


def padding(g):
    """Returns what keeps a token from padding, [batch, 1, 1, past + seq]."""
    seen = g("Cast", g("Unsqueeze", "attention_mask", g.constant("middle", np.int64([1, 2]))), to=TensorProto.FLOAT)
    return g("Mul", g("Sub", g.constant("one", np.float32(1)), seen), g.constant("never", np.float32(-1e9)))


def embedder(quantized):
    g = Writer(63, quantized)
    places = g("Range", g.constant("axis0", np.int64(0)), g.length("input_ids", 1), g.constant("axis1", np.int64(1)))
    x = g("Gather", g.drawn("words", len(WORDS), SIZE), "input_ids", axis=0)
    x = g("Add", x, g("Gather", g.drawn("kinds", 2, SIZE), "token_type_ids", axis=0))
    x = g("Add", x, g("Gather", g.drawn("places", LONGEST, SIZE), places, axis=0))
    x, mask = g.norm(x, "start"), padding(g)
    for i in range(LAYERS):
        x = g.norm(g("Add", x, attention(g, x, f"{i}", mask)), f"{i}.attention")
        x = g.norm(g("Add", x, hidden(g, x, f"{i}")), f"{i}.hidden")
    g("Identity", x, output="last_hidden_state")
    tokens = [(name, TensorProto.INT64, ["batch", "seq"]) for name in ("input_ids", "attention_mask", "token_type_ids")]
    return g.model(tokens, [("last_hidden_state", TensorProto.FLOAT, ["batch", "seq", SIZE])])


def to_come(g):
    """Returns what keeps a token from later ones, [seq, past + seq]."""
    past, new = g.length("past_key_values.0.key", 2), g.length("input_ids", 1)
    end, zero, one = g("Add", past, new), g.constant("axis0", np.int64(0)), g.constant("axis1", np.int64(1))
    row = g("Unsqueeze", g("Range", past, end, one), g.constant("last", np.int64([1])))
    later = g("Less", row, g("Range", zero, end, one))
    return g("Where", later, g.constant("never", np.float32(-1e9)), g.constant("nothing", np.float32(0)))


def writer():
    g = Writer(64, False)
    x = g("Gather", g.drawn("words", len(WORDS), SIZE), "input_ids", axis=0)
    x = g("Add", x, g("Gather", g.drawn("places", LONGEST, SIZE), "position_ids", axis=0))
    mask = g("Add", padding(g), to_come(g))
    for i in range(LAYERS):
        x = g("Add", x, attention(g, g.norm(x, f"{i}.attention"), f"{i}", mask, past=i))
        x = g("Add", x, hidden(g, g.norm(x, f"{i}.hidden"), f"{i}"))
    g("MatMul", g.norm(x, "end"), g.drawn("next", SIZE, len(WORDS)), output="logits")
    cache = [(f"{{}}.{i}.{what}", TensorProto.FLOAT, ["batch", HEADS, "{}", SIZE // HEADS])
             for i in range(LAYERS) for what in ("key", "value")]
    named = lambda when, length: [(name.format(when), kind, [*dims[:2], length, dims[3]]) for name, kind, dims in cache]
    tokens = [(name, TensorProto.INT64, ["batch", length]) for name, length in
              (("input_ids", "seq"), ("attention_mask", "whole"), ("position_ids", "seq"))]
    return g.model(tokens + named("past_key_values", "past"),
                   [("logits", TensorProto.FLOAT, ["batch", "seq", len(WORDS)]), *named("present", "whole")])


def tokenizer(ends):
    """Returns tokenizer.json of words and word pieces; ends: whether a text is put between [CLS] and [SEP]."""
    ids = {word: i for i, word in enumerate(WORDS)}
    special = [{"id": i, "content": WORDS[i], "special": True, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False} for i in range(4)]
    piece = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    template = {"type": "TemplateProcessing", "single": [piece("[CLS]"), text, piece("[SEP]")], "pair": [],
                "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]}
                                   for name in ("[CLS]", "[SEP]")}}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                           "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": template if ends else None,
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": ids}}


def write_folder(folder, config, ends, models):
    (folder / "onnx").mkdir(parents=True)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
             "model_max_length": LONGEST, "tokenizer_class": "BertTokenizer"}
    for name, content in (("config", config), ("tokenizer", tokenizer(ends)), ("tokenizer_config", names)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    for name, model in models.items():
        (folder / "onnx" / f"{name}.onnx").write_bytes(model.SerializeToString())


def write(folder):
    """Writes the folders `embed` and `write` into the folder."""
    shared = {"vocab_size": len(WORDS), "pad_token_id": 0, "max_position_embeddings": LONGEST}
    bert = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": SIZE, "num_attention_heads": HEADS,
            "num_hidden_layers": LAYERS, "intermediate_size": 4 * SIZE, "type_vocab_size": 2}
    gpt2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": SIZE, "n_head": HEADS,
            "n_layer": LAYERS, "n_positions": LONGEST, "eos_token_id": 3, "bos_token_id": 2}
    write_folder(folder / "embed", shared | bert, True, {"model": embedder(False), "model_quantized": embedder(True)})
    write_folder(folder / "write", shared | gpt2, False, {"model": writer()})
