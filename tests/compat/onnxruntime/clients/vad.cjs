// Prints when sherpa-onnx's detector hears a voice in four seconds of made-up sound: silence, a vowel that swells four
// times a second, silence.  node vad.cjs MODULES
const path = require('path');
const load = require('module').createRequire(path.resolve(process.argv[2], 'x.js'));
const sherpa = load('sherpa-onnx-node');
const models = path.join(process.argv[2], '@ricky0123/vad-web/dist');
const rate = 16000, windowSize = 512;

function vowel(t) {
  const pitch = 120 + 20 * Math.sin(6 * t), swell = 0.5 + 0.5 * Math.sin(2 * Math.PI * 4 * t);
  const bump = (f, middle, width) => Math.exp(-(((f - middle) / width) ** 2));
  let sum = 0;
  for (let f = pitch; f < 25 * pitch; f += pitch)
    sum += (bump(f, 700, 300) + 0.7 * bump(f, 1200, 300) + 0.3 * bump(f, 2600, 400)) * Math.sin(2 * Math.PI * f * t);
  return 0.15 * swell * sum;
}

const sound = Float32Array.from({ length: 4 * rate }, (_, i) => i > rate && i < 2.5 * rate ? vowel(i / rate) : 0);
for (const name of ['silero_vad_legacy.onnx', 'silero_vad_v5.onnx']) {
  const limits = { threshold: 0.5, minSilenceDuration: 0.25, minSpeechDuration: 0.1, windowSize };
  const sileroVad = { model: path.join(models, name), ...limits };
  const vad = new sherpa.Vad({ sileroVad, sampleRate: rate, numThreads: 1, debug: 0 }, 30);
  for (let at = 0; at + windowSize <= sound.length; at += windowSize)
    vad.acceptWaveform(sound.subarray(at, at + windowSize));
  vad.flush();
  const heard = [];
  for (; !vad.isEmpty(); vad.pop())
    heard.push([vad.front().start, vad.front().samples.length]);
  console.log(name, JSON.stringify(heard));
}
