// Prints what sherpa-onnx's recognisers hear in a tune, and when: of the whole sound, and as it comes.
//   node recognise.cjs MODULES FOLDER       the folder that recognisers.py writes
const path = require('path');
const sherpa = require('module').createRequire(path.resolve(process.argv[2], 'x.js'))('sherpa-onnx-node');
const file = name => path.join(process.argv[3], name);
const featConfig = { sampleRate: 16000, featureDim: 80 };
const tune = sherpa.readWave(file('notes.wav'));
const shared = { tokens: file('tokens.txt'), numThreads: 1, provider: 'cpu', debug: 0 };
const rounded = times => times.map(time => time.toFixed(2)).join(' ');

const whole = new sherpa.OfflineRecognizer({
  featConfig, modelConfig: { ...shared, zipformerCtc: { model: file('ctc.onnx') } } });
const sound = whole.createStream();
sound.acceptWaveform({ samples: tune.samples, sampleRate: tune.sampleRate });
whole.decode(sound);
const heard = whole.getResult(sound);
console.log('whole:', heard.text.trim(), rounded(heard.timestamps));

const coming = new sherpa.OnlineRecognizer({ featConfig, modelConfig: {
  ...shared, modelType: 'lstm',
  transducer: { encoder: file('encoder.onnx'), decoder: file('decoder.onnx'), joiner: file('joiner.onnx') } } });
const stream = coming.createStream();
for (let at = 0; at < tune.samples.length; at += 1600) {
  stream.acceptWaveform({ samples: tune.samples.subarray(at, at + 1600), sampleRate: tune.sampleRate });
  while (coming.isReady(stream))
    coming.decode(stream);
}
const last = coming.getResult(stream);
console.log('as it comes:', last.text.trim(), rounded(last.timestamps));
