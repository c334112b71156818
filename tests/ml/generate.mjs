// Makes cases.jsonl: calls of operators of ai.onnx.ml with the results of ONNX Runtime (../contrib/peer.mjs says how they are written).
//
//   npm install --prefix DIR --ignore-scripts onnxruntime-node@1.30.0
//   NODE_PATH=DIR/node_modules node tests/ml/generate.mjs [OPERATOR…]
import { fileURLToPath } from 'node:url';
import { write } from '../contrib/peer.mjs';
import * as features from './features.mjs';
import * as labels from './labels.mjs';
import * as linear from './linear.mjs';
import * as trees from './trees.mjs';

await write([features, labels, linear, trees], 'ai.onnx.ml', fileURLToPath(new URL('cases.jsonl', import.meta.url)));
