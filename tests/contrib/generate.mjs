// Makes cases.jsonl: calls of operators of com.microsoft with the results of ONNX Runtime's CPU kernels, one a line.
//
//   npm install --prefix DIR --ignore-scripts onnxruntime-node@1.30.0
//   NODE_PATH=DIR/node_modules node tests/contrib/generate.mjs
//
// A line: {"name", "op", "domain", "attrs", "inputs", "outputs"}; an operand is null where it is left out, else {"t": element type,
// "d": dims, "b": bytes in base64, "c": true for an initializer}. Names given as arguments make only the operators that they name, and print
// instead of writing.
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { model } from './model.mjs';
import { seed } from './tensors.mjs';
import * as attention from './attention.mjs';
import * as elementwise from './elementwise.mjs';
import * as grouped from './grouped.mjs';
import * as norms from './norms.mjs';
import * as products from './products.mjs';
import * as quantised from './quantised.mjs';

const ort = createRequire(path.join(process.env.NODE_PATH, 'x.js'))('onnxruntime-node');
ort.env.logLevel = 'fatal';

const families = [elementwise, norms, products, attention, grouped, quantised];

const written = t => t && { t: t.type, d: [...t.dims], b: Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength).toString('base64'),
  ...(t.constant ? { c: true } : {}) };

async function complete(c) {
  // ONNX Runtime's CPU kernels lack some forms: `instead` holds operands of an equal call that they have.
  const asked = { ...c, ...c.instead };
  if (process.env.SHOW)
    console.log(c.name);
  const session = await ort.InferenceSession.create(model(asked), { graphOptimizationLevel: 'disabled', logSeverityLevel: 4, intraOpNumThreads: 1 });
  const feeds = {};
  asked.inputs.forEach((t, i) => { if (t && !t.constant) feeds[`x${i}`] = new ort.Tensor(t.type, t.data, t.dims); });
  const made = await session.run(feeds);
  return { name: c.name, op: c.op, domain: c.domain, attrs: c.attrs ?? {}, inputs: c.inputs.map(written),
    outputs: c.outputs.map(n => n && written({ type: made[n].type, dims: made[n].dims, data: made[n].data })) };
}

const lines = [], only = process.argv.slice(2);
let refused = 0;
for (const [op, cases] of families.flatMap(f => Object.entries(f.cases))) {
  if (only.length && !only.includes(op))
    continue;
  for (const [index, make] of cases.entries()) {
    seed(1000 * op.length + 17 * index + op.charCodeAt(0));
    const c = { domain: 'com.microsoft', outputs: ['y'], op, ...make() };
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
  fs.writeFileSync(path.join(path.dirname(fileURLToPath(import.meta.url)), 'cases.jsonl'), text);
console.log(`${lines.length} cases of ${text.length} bytes, ${refused} refused`);
process.exit(refused ? 1 : 0);
