// Runs ONNX's test cases through onnxruntime-node and prints a line of JSON for each: its verdict, and why.
//   node cases.mjs MODULES [--rtol R] [--atol A] <LIST OF CASE FOLDERS
// A case that JavaScript cannot say (bfloat16, 8-bit floats, sequences …) is "skipped", with the reason; "thrown" is one
// in which the package throws.
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';
import { readTensor, toNumbers } from '../../../random_graphs/tensor_file.mjs';

const ort = createRequire(path.resolve(process.argv[2], 'x.js'))('onnxruntime-node');
ort.env.logLevel = 'fatal';
const option = (name, otherwise) => {
  const at = process.argv.indexOf(name);
  return at < 0 ? otherwise : Number(process.argv[at + 1]);
};
const relative = option('--rtol', 1e-3), absolute = option('--atol', 1e-7);

class Skipped extends Error {}

// The tensor of a file, for the value that the model declares.
function read(file, declared) {
  if (declared && !declared.isTensor)
    throw new Skipped('sequences and optionals');
  const tensor = readTensor(file);
  if (!tensor.type)
    throw new Skipped('element types that JavaScript has not');
  const count = tensor.dims.reduce((a, b) => a * b, 1);
  if (tensor.data.length !== count)
    throw new Skipped('values that are not raw bytes in their file');
  return tensor;
}

function files(folder, kind) {
  const number = name => parseInt(name.slice(kind.length));
  const found = fs.readdirSync(folder).filter(f => f.startsWith(kind)).sort((a, b) => number(a) - number(b));
  return found.map(f => path.join(folder, f));
}

// Returns the differences; empty if there are none.
function difference(got, want) {
  if (got.type !== want.type || got.dims.join() !== want.dims.join())
    return `${got.type} [${got.dims}] instead of ${want.type} [${want.dims}]`;
  const [a, b] = [got, want].map(t => t.type === 'string' ? t.data : toNumbers(t));
  const floats = got.type.startsWith('float');
  const equal = (x, y) =>
    Object.is(x, y) || x === y || (floats && Math.abs(x - y) <= absolute + relative * Math.abs(y));
  const worst = a.findIndex((x, i) => !equal(x, b[i]));
  return worst < 0 ? '' : `element ${worst} is ${a[worst]} instead of ${b[worst]}`;
}

async function runSet(session, folder) {
  const feeds = {};
  files(folder, 'input_').forEach((file, i) => {
    const { type, data, dims } = read(file, session.inputMetadata?.[i]);
    feeds[session.inputNames[i]] = new ort.Tensor(type, data, dims);
  });
  const results = await session.run(feeds);
  let why = '';
  files(folder, 'output_').forEach((file, i) => {
    const name = session.outputNames[i];
    why ||= difference(results[name], read(file, session.outputMetadata?.[i]));
  });
  return why;
}

async function runCase(folder) {
  let session;
  try {
    session = await ort.InferenceSession.create(path.join(folder, 'model.onnx'), { logSeverityLevel: 4 });
    let why = '';
    for (const set of fs.readdirSync(folder).filter(f => f.startsWith('test_data_set_')).sort())
      why ||= await runSet(session, path.join(folder, set));
    return { verdict: why ? 'failed' : 'passed', why };
  } catch (problem) {
    return { verdict: problem instanceof Skipped ? 'skipped' : 'thrown', why: problem.message };
  } finally {
    await session?.release?.();
  }
}

for (const folder of fs.readFileSync(0, 'utf8').split('\n').filter(Boolean))
  console.log(JSON.stringify({ name: folder, ...await runCase(folder) }));
