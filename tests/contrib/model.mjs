// A model of one node as ONNX's protobuf message: fields as number and bytes, nothing else.
const CODES = { float32: 1, uint8: 2, int8: 3, uint16: 4, int16: 5, int32: 6, int64: 7, string: 8, bool: 9, float16: 10, float64: 11, uint4: 21, int4: 22 };

function varint(number) {
  const bytes = [];
  for (let n = BigInt.asUintN(64, BigInt(number)); ; n >>= 7n) {
    bytes.push(Number(n & 127n) | (n > 127n ? 128 : 0));
    if (n <= 127n)
      return Buffer.from(bytes);
  }
}
const integer = (field, n) => Buffer.concat([varint(field << 3), varint(n)]);
const bytes = (field, b) => Buffer.concat([varint((field << 3) | 2), varint(b.length), b]);
const text = (field, s) => bytes(field, Buffer.from(s));
const message = (field, ...parts) => bytes(field, Buffer.concat(parts));
function float(field, x) {
  const b = Buffer.alloc(4);
  b.writeFloatLE(x);
  return Buffer.concat([varint((field << 3) | 5), b]);
}

// The fields of a tensor.
function elements(t) {
  const dims = t.dims.map(d => integer(1, d));
  if (t.type === 'string')
    return [...dims, integer(2, CODES.string), ...t.data.map(x => text(6, x))];
  return [...dims, integer(2, CODES[t.type]), bytes(9, Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength))];
}

function attribute(name, value) {
  const typed = (type, ...parts) => message(5, text(1, name), ...parts, integer(20, type));
  if (typeof value === 'string')
    return typed(3, text(4, value));
  if (Array.isArray(value))
    return typed(7, ...value.map(x => integer(8, x)));
  if (value.reals)
    return typed(6, ...value.reals.map(x => float(7, x)));
  if (value.texts)
    return typed(8, ...value.texts.map(x => text(9, x)));
  if (value.tensor)
    return typed(4, message(5, ...elements(value.tensor)));
  return value.real !== undefined ? typed(1, float(2, value.real)) : typed(2, integer(3, value));
}

const initializer = (name, t) => message(5, ...elements(t), text(8, name));

function input(name, t) {
  const shape = message(2, ...t.dims.map(d => message(1, integer(1, d))));
  return message(11, text(1, name), message(2, message(1, integer(1, CODES[t.type]), shape)));
}

// `outputs` holds a name or null for each result; operands are x0, x1 … `types` names results whose type follows from no operand.
// `version` is that of the operator's domain.
export function model({ op, domain, version = 1, attrs = {}, inputs, outputs, types = {} }) {
  const names = inputs.map((t, i) => (t ? `x${i}` : ''));
  const node = message(1, ...names.map(n => text(1, n)), ...outputs.map(n => text(2, n ?? '')), text(4, op),
    ...Object.entries(attrs).map(([k, v]) => attribute(k, v)), text(7, domain));
  const ends = inputs.flatMap((t, i) => (t ? [t.constant ? initializer(names[i], t) : input(names[i], t)] : []));
  const graph = message(7, node, text(2, 'case'), ...ends, ...outputs.filter(n => n).map(n => message(12, text(1, n), ...(types[n] ? [message(2, message(1, integer(1, CODES[types[n]])))] : []))));
  const opset = (name, version) => message(8, text(1, name), integer(2, version));
  return Buffer.concat([integer(1, 10), graph, opset('', domain ? 21 : version), ...(domain ? [opset(domain, version)] : [])]);
}
