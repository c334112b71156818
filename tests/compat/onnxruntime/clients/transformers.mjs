// Prints what transformers.js makes of texts: the likeness of their embeddings, in float32 and in 8-bit integers, the
// first numbers of one, and words that a decoder adds. Lines that begin with "ms" are times.
//   node transformers.mjs MODULES FOLDER       the folders that language_models.py writes
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const resolve = createRequire(path.resolve(process.argv[2], 'x.js')).resolve;
const { env, pipeline, cos_sim } = await import(pathToFileURL(resolve('@huggingface/transformers')));
env.allowRemoteModels = false;
env.localModelPath = path.resolve(process.argv[3]);

const texts = ['The quick brown fox jumps over the lazy dog.', 'A slow ship runs on water, by stars.', 'Stone',
               'Every device runs a part of it, and the last one counts words that the wind reads.'];
const rounds = 8;

async function timed(what, work) {
  await work(); // the first run plans
  const begin = performance.now();
  for (let i = 0; i < rounds; i++)
    await work();
  console.log(`ms ${what}: ${((performance.now() - begin) / rounds).toFixed(2)}`);
}

for (const dtype of ['fp32', 'q8']) {
  const embed = await pipeline('feature-extraction', 'embed', { dtype, device: 'cpu' });
  const all = (await embed(texts, { pooling: 'mean', normalize: true })).tolist();
  for (const [i, a] of all.entries())
    console.log(dtype, ...all.slice(0, i).map(b => cos_sim(a, b).toFixed(6)), ...a.slice(0, 4).map(x => x.toFixed(6)));
  await timed(`four texts in ${dtype}`, () => embed(texts, { pooling: 'mean', normalize: true }));
  await embed.dispose();
}

const write = await pipeline('text-generation', 'write', { dtype: 'fp32', device: 'cpu' });
const more = { max_new_tokens: 24, min_new_tokens: 24, do_sample: false };
for (const text of texts)
  console.log((await write(text, more))[0].generated_text);
await timed('24 words', () => write(texts[0], more));
await write.dispose();
