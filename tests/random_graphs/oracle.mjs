// Adds ONNX Runtime's outputs (optimisation off) to the cases of make.py, and removes the cases that say nothing about an engine:
// those that ONNX Runtime itself refuses, whose numbers grow large or are none, where a rounding, comparison or order is nearer
// to a tie than the case's margin, and half-precision graphs whose float16 and float32 answers differ much in ONNX Runtime alone.
//   NODE_PATH=… node oracle.mjs DIR
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';
import { readTensor, writeTensor, toNumbers } from './tensor_file.mjs';

const ort = createRequire(path.join(process.env.NODE_PATH, 'x.js'))('onnxruntime-node');
ort.env.logLevel = 'fatal';

const LARGEST = 2000, MASK = -9000; // masks of attention add -10,000 on purpose
const HALF_DISTANCE = 1e-2;

const load = file => ort.InferenceSession.create(file, { graphOptimizationLevel: 'disabled', logSeverityLevel: 4, intraOpNumThreads: 1 });

function readInputs(folder) {
  const feeds = {};
  for (const file of fs.readdirSync(folder).filter(f => f.startsWith('input_'))) {
    const { name, type, data, dims } = readTensor(path.join(folder, file));
    feeds[name] = new ort.Tensor(type, data, dims);
  }
  return feeds;
}

const fraction = x => Math.abs(x) - Math.floor(Math.abs(x));

// How far element x is from a jump of this kind.
const distances = {
  half: x => Math.abs(fraction(x) - 0.5),
  whole: x => x === 0 ? Infinity : Math.min(fraction(x), 1 - fraction(x)),
  zero: (x, probe) => x === 0 && !probe ? Infinity : Math.abs(x),
};

function nearOrder(numbers, dims, axis, margin) {
  axis = axis < 0 ? axis + dims.length : axis;
  const inner = dims.slice(axis + 1).reduce((a, b) => a * b, 1), length = dims[axis];
  for (let at = 0; at < numbers.length; at++) {
    if (Math.floor(at / inner) % length !== 0)
      continue;
    const line = Array.from({ length }, (_, k) => numbers[at + k * inner]).sort((a, b) => a - b);
    if (line.some((x, k) => k > 0 && !(x - line[k - 1] > margin * (1 + Math.abs(x)))))
      return true;
  }
  return false;
}

const reasons = { even: 'odd dims', beside: 'parts that do not fit', elements: 'no elements' };

function violates(check, tensor, values) {
  if (check.kind === 'even')
    return tensor.dims[check.axis] % 2 !== 0;
  if (check.kind === 'beside')
    return Object.entries(check.parts).some(([name, dims]) =>
      (values[name]?.dims ?? dims).some((size, axis) => axis !== check.axis && size !== tensor.dims[axis]));
  const numbers = toNumbers(tensor);
  if (check.kind === 'elements')
    return numbers.length === 0;
  if (check.kind === 'order')
    return nearOrder(numbers, tensor.dims, check.axis, check.margin);
  const probe = check.value.startsWith('probe'), edges = check.edges ?? [];
  return numbers.some(x => !edges.includes(x) && !(distances[check.kind](x, probe) > check.margin + 1e-6 * Math.abs(x)));
}

// Why these values prove nothing, or null.
function objection(values, plan) {
  for (const name of plan.floats)
    if (values[name] && toNumbers(values[name]).some(x => !(Math.abs(x) < LARGEST || (x < MASK && x > 2 * MASK))))
      return 'large or no number';
  for (const check of plan.checks)
    if (violates(check, values[check.value], values))
      return reasons[check.kind] ?? `${check.kind} near a tie`;
  return null;
}

function relativeDistance(a, b) {
  const x = toNumbers(a), y = toNumbers(b);
  const norm = v => Math.sqrt(v.reduce((s, e) => s + e * e, 0));
  return norm(x.map((e, k) => e - y[k])) / Math.max(norm(y), 1e-3);
}

async function runSet(sessions, folder, plan) {
  const feeds = readInputs(folder), values = { ...feeds, ...await sessions.probe.run(feeds) };
  const why = objection(values, plan);
  if (why)
    return why;
  if (sessions.twin) {
    const half = sessions.twin.inputMetadata ? feedsAs(sessions.twin, feeds) : feeds, other = await sessions.twin.run(half);
    for (const name of plan.outputs)
      if (plan.floats.includes(name) && !(relativeDistance(other[name], values[name]) < HALF_DISTANCE))
        return 'half precision is too coarse';
  }
  plan.outputs.forEach((name, k) => writeTensor(path.join(folder, `output_${k}.pb`), name, values[name]));
  return null;
}

// The same inputs in the float type that the twin wants.
function feedsAs(twin, feeds) {
  const changed = {};
  for (const { name, type } of twin.inputMetadata) {
    const given = feeds[name];
    if (given.type === type)
      changed[name] = given;
    else
      changed[name] = new ort.Tensor(type, type === 'float16' ? Uint16Array.from(toNumbers(given), toHalf) : Float32Array.from(toNumbers(given)), given.dims);
  }
  return changed;
}

function toHalf(x) {
  const bits = new Uint32Array(Float32Array.of(x).buffer)[0], sign = bits >>> 16 & 0x8000, exponent = (bits >>> 23 & 255) - 112, m = bits & 0x7fffff;
  if (exponent <= 0)
    return sign; // inputs this small are zero here
  return sign | (exponent << 10) + (m >>> 13) + ((m >>> 12 & 1) & ((m >>> 13 & 1) | ((m & 0xfff) ? 1 : 0)));
}

async function complete(folder) {
  const plan = JSON.parse(fs.readFileSync(path.join(folder, 'checks.json')));
  const twin = path.join(folder, 'twin.onnx');
  const sessions = { probe: await load(path.join(folder, 'probe.onnx')), twin: fs.existsSync(twin) ? await load(twin) : null };
  const result = await runSet(sessions, path.join(folder, 'test_data_set_0'), plan);
  if (result)
    return result;
  const second = path.join(folder, 'test_data_set_1');
  if (fs.existsSync(second)) {
    // Constants may fit the first data set only.
    const again = await runSet(sessions, second, plan).catch(e => String(e.message));
    if (again)
      fs.rmSync(second, { recursive: true });
  }
  for (const s of Object.values(sessions))
    await s?.release?.();
  for (const file of ['probe.onnx', 'twin.onnx', 'checks.json'])
    fs.rmSync(path.join(folder, file), { force: true });
  return null;
}

// ONNX Runtime's reason, names left out so that like reasons are counted together.
function refusal(name, message) {
  if (process.env.SHOW_REFUSED)
    console.log(name, message);
  return `refused: ${message.replace(/Load model from \S+ failed:/, '').replace(/[A-Za-z]*_*v\d+/g, '*').slice(0, 80)}`;
}

const root = process.argv[2], dropped = {};
let kept = 0;
const current = path.join(root, 'current.txt'); // the graph at which ONNX Runtime itself died, should it
for (const name of fs.readdirSync(root)) {
  const folder = path.join(root, name);
  if (!fs.existsSync(path.join(folder, 'checks.json')))
    continue;
  fs.writeFileSync(current, name);
  const why = await complete(folder).catch(e => refusal(name, String(e.message)));
  if (why === null) {
    kept++;
    continue;
  }
  dropped[why] = (dropped[why] ?? 0) + 1;
  fs.rmSync(folder, { recursive: true });
}
fs.rmSync(current, { force: true });
console.log(`${kept} graphs kept; dropped: ${JSON.stringify(dropped)}`);
