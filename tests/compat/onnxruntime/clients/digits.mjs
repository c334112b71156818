// Prints the scores that the digits' model gives 64 made-up pictures, as onnxruntime-node runs it, and writes a profile.
//   node digits.mjs MODULES MODEL.onnx PROFILE_PREFIX
import { createRequire } from 'node:module';
import path from 'node:path';

const [modules, model, profileFilePrefix] = process.argv.slice(2);
const ort = createRequire(path.resolve(modules, 'x.js'))('onnxruntime-node');
const session = await ort.InferenceSession.create(model, { enableProfiling: true, profileFilePrefix });
const pictures = Float32Array.from({ length: 64 * 64 }, (_, i) => ((i * i * 7) % 97) / 6);
const { scores } = await session.run({ image: new ort.Tensor('float32', pictures, [64, 1, 8, 8]) });
session.endProfiling();
for (let i = 0; i < scores.data.length; i += 10)
  console.log(...Array.from(scores.data.subarray(i, i + 10), score => score.toFixed(4)));
