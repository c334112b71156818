"""Recognisers as sherpa-onnx loads them: one of whole sounds (a CTC model) and one of sounds as they come (a transducer
over an LSTM, whose state goes from chunk to chunk). No package of npm ships such models, so these are written here.
They tell notes apart: each token is a band of the 80 mel bands, and the words are the notes' names. To the loudest
bands the transducer adds what a drawn LSTM says, too little to change a note.

Written: ctc.onnx, encoder.onnx, decoder.onnx, joiner.onnx, tokens.txt, notes.wav.
"""
import math
import wave

import numpy as np
from onnx import TensorProto, helper, numpy_helper

BANDS, SIZE, LAYERS, CHUNK, STEP = 80, 32, 2, 32, 4  # STEP: frames of the sound for one of the model's
NOTES = {"do": 300, "re": 500, "mi": 800, "fa": 1200, "so": 1800, "la": 2700}  # Hz
TUNE = "do mi so mi la fa re do so".split()
RATE, LOUD = 16000, -5.0  # a band of a note is above, silence below


def mel(hertz):
    return 1127 * math.log(1 + hertz / 700)


def band_of(hertz):
    """Returns the mel band, of those from 20 Hz to 7600 Hz, that hears a tone best."""
    low, high = mel(20), mel(RATE / 2 - 400)
    return round((mel(hertz) - low) / (high - low) * (BANDS + 1) - 1)


def ears():
    """Returns a matrix from bands to tokens: a note's is the mean of three bands, silence's is nothing."""
    matrix = np.zeros((BANDS, len(NOTES) + 1), np.float32)
    for token, hertz in enumerate(NOTES.values(), 1):
        matrix[band_of(hertz) - 1 : band_of(hertz) + 2, token] = 1 / 3
    return matrix


def save(file, nodes, inputs, outputs, constants, facts):
    infos = [[helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs)]
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "recogniser", *infos, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {key: str(value) for key, value in facts.items()})
    file.write_bytes(model.SerializeToString())


def listening(constants):
    """Returns nodes from x [batch, frames, BANDS] to how loud each token is, [batch, frames / STEP, tokens]."""
    silence = np.zeros(len(NOTES) + 1, np.float32)
    silence[0] = LOUD
    constants.update(ears=ears(), silence=silence)
    return [helper.make_node("Transpose", ["x"], ["bands"], perm=[0, 2, 1]),
            helper.make_node("AveragePool", ["bands"], ["fewer"], kernel_shape=[STEP], strides=[STEP]),
            helper.make_node("Transpose", ["fewer"], ["frames"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["frames", "ears"], ["heard"]),
            helper.make_node("Add", ["heard", "silence"], ["loud"])]


def write_ctc(file):
    constants = {"step": np.int64(STEP)}
    nodes = [*listening(constants), helper.make_node("LogSoftmax", ["loud"], ["log_probs"], axis=-1),
             helper.make_node("Div", ["x_lens", "step"], ["log_probs_len"])]
    save(file, nodes, [("x", TensorProto.FLOAT, ["N", "T", BANDS]), ("x_lens", TensorProto.INT64, ["N"])],
         [("log_probs", TensorProto.FLOAT, ["N", "frames", len(NOTES) + 1]),
          ("log_probs_len", TensorProto.INT64, ["N"])], constants, {"model_type": "zipformer2_ctc"})


def write_encoder(file):
    random = np.random.default_rng(63)
    drawn = lambda *dims: (random.standard_normal(dims) * dims[-1] ** -0.5).astype(np.float32)
    constants = {"little": np.float32(0.02), "out": drawn(SIZE, len(NOTES) + 1), "one": np.int64([1])}
    nodes = [*listening(constants), helper.make_node("Transpose", ["frames"], ["layer0"], perm=[1, 0, 2])]
    for state in ("h", "c"):
        nodes.append(helper.make_node("Split", [state], [f"{state}{i}" for i in range(LAYERS)], axis=0))
    for i in range(LAYERS):
        inputs = SIZE if i else BANDS
        constants.update({f"W{i}": drawn(1, 4 * SIZE, inputs), f"R{i}": drawn(1, 4 * SIZE, SIZE),
                          f"B{i}": drawn(1, 8 * SIZE)})
        nodes.append(helper.make_node("LSTM", [f"layer{i}", f"W{i}", f"R{i}", f"B{i}", "", f"h{i}", f"c{i}"],
                                      [f"all{i}", f"next_h{i}", f"next_c{i}"], hidden_size=SIZE))
        nodes.append(helper.make_node("Squeeze", [f"all{i}", "one"], [f"layer{i + 1}"]))
    for state in ("h", "c"):
        nodes.append(helper.make_node("Concat", [f"next_{state}{i}" for i in range(LAYERS)], [f"next_{state}"], axis=0))
    nodes += [helper.make_node("Transpose", [f"layer{LAYERS}"], ["felt"], perm=[1, 0, 2]),
              helper.make_node("MatMul", ["felt", "out"], ["said"]),
              helper.make_node("Mul", ["said", "little"], ["a_little"]),
              helper.make_node("Add", ["loud", "a_little"], ["encoder_out"])]
    states = [(f"{name}", TensorProto.FLOAT, [LAYERS, "N", SIZE]) for name in ("h", "c", "next_h", "next_c")]
    save(file, nodes, [("x", TensorProto.FLOAT, ["N", CHUNK, BANDS]), *states[:2]],
         [("encoder_out", TensorProto.FLOAT, ["N", CHUNK // STEP, len(NOTES) + 1]), *states[2:]], constants,
         {"model_type": "lstm", "num_encoder_layers": LAYERS, "T": CHUNK, "decode_chunk_len": CHUNK,
          "rnn_hidden_size": SIZE, "d_model": SIZE})


def write_decoder(file):
    """The last note cannot come again at once: a note that lasts is one."""
    table = -100 * np.eye(len(NOTES) + 1, dtype=np.float32)
    table[0] = 0
    nodes = [helper.make_node("Gather", ["y", "last"], ["note"], axis=1),
             helper.make_node("Gather", ["table", "note"], ["decoder_out"])]
    save(file, nodes, [("y", TensorProto.INT64, ["N", 2])], [("decoder_out", TensorProto.FLOAT, ["N", len(NOTES) + 1])],
         {"last": np.int64(1), "table": table}, {"vocab_size": len(NOTES) + 1, "context_size": 2})


def write_joiner(file):
    values = [(name, TensorProto.FLOAT, ["N", len(NOTES) + 1]) for name in ("encoder_out", "decoder_out", "logit")]
    save(file, [helper.make_node("Add", ["encoder_out", "decoder_out"], ["logit"])], values[:2], values[2:], {}, {})


def write_tune(file):
    """A note lasts 0.3 s, and 0.2 s of silence come after it."""
    times = np.arange(int(0.3 * RATE)) / RATE
    swell = np.minimum(1, np.minimum(times, 0.3 - times) / 0.02)
    silence = np.zeros(int(0.2 * RATE))
    parts = [silence]
    for note in TUNE:
        parts += [0.3 * swell * np.sin(2 * np.pi * NOTES[note] * times), silence]
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes((np.concatenate([*parts, silence]) * 32767).astype("<i2").tobytes())


def write(folder):
    write_ctc(folder / "ctc.onnx")
    write_encoder(folder / "encoder.onnx")
    write_decoder(folder / "decoder.onnx")
    write_joiner(folder / "joiner.onnx")
    write_tune(folder / "notes.wav")
    (folder / "tokens.txt").write_text("".join(f"{token} {i}\n" for i, token in
                                               enumerate(["<blk>", *("▁" + note for note in NOTES)])))
