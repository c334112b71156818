// Makes cases.jsonl: calls of operators of com.microsoft, and of experiments of ai.onnx, with the results of ONNX Runtime's CPU kernels (peer.mjs says how they are written).
//
//   npm install --prefix DIR --ignore-scripts onnxruntime-node@1.30.0
//   NODE_PATH=DIR/node_modules node tests/contrib/generate.mjs [OPERATOR…]
import { fileURLToPath } from 'node:url';
import { write } from './peer.mjs';
import * as attention from './attention.mjs';
import * as blocks from './blocks.mjs';
import * as decoding from './decoding.mjs';
import * as elementwise from './elementwise.mjs';
import * as experimental from './experimental.mjs';
import * as gates from './gates.mjs';
import * as grouped from './grouped.mjs';
import * as mixtures from './mixtures.mjs';
import * as norms from './norms.mjs';
import * as plain from './plain.mjs';
import * as positions from './positions.mjs';
import * as products from './products.mjs';
import * as quantised from './quantised.mjs';
import * as texts from './texts.mjs';
import * as words from './words.mjs';

await write([elementwise, norms, products, attention, grouped, quantised, plain, blocks, mixtures, decoding, words, gates, positions, texts, experimental], 'com.microsoft', fileURLToPath(new URL('cases.jsonl', import.meta.url)));
