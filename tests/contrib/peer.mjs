// Runs calls of single operators on ONNX Runtime's CPU and writes them down with their results, one a line:
//
//   {"name", "op", "domain", "version" unless 1, "loose" where results may differ by that much, "attrs", "inputs", "outputs"}
//
// An operand is null where it is left out, else {"t": element type, "d": dims, "b": bytes in base64 (of strings "s": a list), "c": true for an
// initializer}. Names given as arguments make only the operators that they name, and print instead of writing.
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';
import { model } from './model.mjs';
import { seed } from './tensors.mjs';

const ort = createRequire(path.join(process.env.NODE_PATH, 'x.js'))('onnxruntime-node');
ort.env.logLevel = 'fatal';

const written = t => t && { t: t.type, d: [...t.dims], ...(t.type === 'string' ? { s: [...t.data] }
  : { b: Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength).toString('base64') }), ...(t.constant ? { c: true } : {}) };
// JSON has no NaN.
const number = x => (Number.isNaN(x) ? 'NaN' : x);
function writtenAttribute(v) {
  if (v.tensor)
    return { tensor: written(v.tensor) };
  if (v.reals)
    return { reals: v.reals.map(number) };
  return v.real !== undefined ? { real: number(v.real) } : v;
}
const writtenAttributes = attrs => Object.fromEntries(Object.entries(attrs ?? {}).map(([k, v]) => [k, writtenAttribute(v)]));

async function complete(c) {
  // ONNX Runtime's CPU kernels lack some forms: `instead` holds operands of an equal call that they have.
  const asked = { ...c, ...c.instead };
  if (process.env.SHOW)
    console.log(c.name);
  const session = await ort.InferenceSession.create(model(asked), { graphOptimizationLevel: 'disabled', logSeverityLevel: 4, intraOpNumThreads: 1 });
  const feeds = {};
  asked.inputs.forEach((t, i) => { if (t && !t.constant) feeds[`x${i}`] = new ort.Tensor(t.type, t.data, t.dims); });
  const inputs = c.inputs.map(written);
  // Results that must be where an operand is: `shared` maps their names to operands.
  const fetches = Object.fromEntries(session.outputNames.map(n => [n, feeds[`x${asked.shared?.[n]}`] ?? null]));
  const made = await session.run(feeds, fetches);
  return { name: c.name, op: c.op, domain: c.domain, ...(c.version > 1 ? { version: c.version } : {}), ...(c.loose ? { loose: c.loose } : {}), attrs: writtenAttributes(c.attrs), inputs,
    outputs: c.outputs.map(n => n && written({ type: made[n].type, dims: made[n].dims, data: made[n].data })) };
}

// Each family maps operators to lists of functions that make a case.
export async function write(families, domain, file) {
  const lines = [], only = process.argv.slice(2);
  let refused = 0;
  for (const [op, cases] of families.flatMap(f => Object.entries(f.cases))) {
    if (only.length && !only.includes(op))
      continue;
    for (const [index, make] of cases.entries()) {
      seed(1000 * op.length + 17 * index + op.charCodeAt(0));
      const c = { domain, outputs: ['y'], op, ...make() };
      c.name = `${op} ${index}: ${c.what}`;
      try {
        lines.push(JSON.stringify(await complete(c)));
      } catch (e) {
        refused++;
        console.log(`${c.name}: refused: ${String(e.message).slice(0, 300)}`);
      }
    }
  }
  const text = lines.join('\n') + '\n';
  if (only.length)
    console.log(lines.map(l => l.slice(0, 300)).join('\n'));
  else
    fs.writeFileSync(file, text);
  console.log(`${lines.length} cases of ${text.length} bytes, ${refused} refused`);
  process.exit(refused ? 1 : 0);
}
