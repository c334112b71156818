// ONNX tensor files (TensorProto with raw_data), read and written; half-precision numbers.
import fs from 'node:fs';

// TensorProto.data_type: ONNX Runtime's name and the array that holds it.
const TYPES = {
  1: ['float32', Float32Array], 2: ['uint8', Uint8Array], 3: ['int8', Int8Array], 4: ['uint16', Uint16Array], 5: ['int16', Int16Array],
  6: ['int32', Int32Array], 7: ['int64', BigInt64Array], 9: ['bool', Uint8Array], 10: ['float16', Uint16Array], 11: ['float64', Float64Array],
  12: ['uint32', Uint32Array], 13: ['uint64', BigUint64Array],
};

function* fields(bytes) {
  let at = 0;
  const varint = () => {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128)
        return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(varint());
    if ((key & 7) === 0) {
      yield [key >> 3, varint()];
    } else {
      const length = Number(varint());
      yield [key >> 3, bytes.subarray(at, at += length)];
    }
  }
}

function packedInts(bytes) {
  const ints = [];
  for (let i = 0, value = 0, scale = 1; i < bytes.length; i++) {
    value += (bytes[i] & 127) * scale;
    scale *= 128;
    if (bytes[i] < 128) {
      ints.push(value);
      value = 0;
      scale = 1;
    }
  }
  return ints;
}

// Without a type, and without data, where ONNX Runtime's package has no name for it.
export function readTensor(file) {
  const dims = [], texts = [];
  let name = '', type = 1, raw = Buffer.alloc(0);
  for (const [field, value] of fields(fs.readFileSync(file))) {
    if (field === 1)
      dims.push(...(typeof value === 'bigint' ? [Number(value)] : packedInts(value)));
    else if (field === 2)
      type = Number(value);
    else if (field === 6)
      texts.push(Buffer.from(value).toString());
    else if (field === 8)
      name = Buffer.from(value).toString();
    else if (field === 9)
      raw = value;
  }
  if (type === 8)
    return { name, type: 'string', dims, data: texts };
  const [typeName, array] = TYPES[type] ?? [];
  if (!typeName)
    return { name, dims };
  return { name, type: typeName, dims, data: new array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.length)) };
}

const varint = number => {
  const bytes = [];
  for (let n = BigInt(number); ; n >>= 7n) {
    bytes.push(Number(n & 127n) | (n > 127n ? 128 : 0));
    if (n <= 127n)
      return Buffer.from(bytes);
  }
};

export function writeTensor(file, name, tensor) {
  const type = Number(Object.keys(TYPES).find(k => TYPES[k][0] === tensor.type));
  const raw = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength), title = Buffer.from(name);
  const dims = tensor.dims.map(d => Buffer.concat([Buffer.from([8]), varint(d)]));
  fs.writeFileSync(file, Buffer.concat([...dims, Buffer.from([16, type, 0x42]), varint(title.length), title, Buffer.from([0x4a]), varint(raw.length), raw]));
}

function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent === 31)
    return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + mantissa) : 2 ** -24 * mantissa);
}

// The elements as an array of plain numbers.
export function toNumbers(tensor) {
  return Array.from(tensor.data, tensor.type === 'float16' ? fromHalf : Number);
}
