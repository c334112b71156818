// Prints the lines of text that @gutenye/ocr-node finds on a page.  node ocr.mjs MODULES PAGE.png
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const resolve = createRequire(path.resolve(process.argv[2], 'x.js')).resolve;
const { default: Ocr } = await import(pathToFileURL(resolve('@gutenye/ocr-node')));
const lines = await (await Ocr.create()).detect(process.argv[3]);
console.log(JSON.stringify(lines.map(line => line.text)));
