// Unpacks the arrays of numbers that the service sends in base64.

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

// Unpacks weights from 0 to 1, exact numbers, or small integers.
export function unpackArray(packed) {
  let values;
  if (packed.u16 !== undefined) values = Float32Array.from(new Uint16Array(bytes(packed.u16).buffer), (v) => v / 65535);
  else if (packed.f32 !== undefined) values = new Float32Array(bytes(packed.f32).buffer);
  else values = new Int8Array(bytes(packed.i8).buffer);
  return new Values(packed.shape, values);
}

class Values {
  constructor(shape, values) {
    this.shape = shape;
    this.values = values;
  }

  // Returns the part at an index of the first dimension.
  get(index) {
    const [, ...rest] = this.shape;
    const size = rest.reduce((a, b) => a * b, 1);
    return new Values(rest, this.values.subarray(index * size, (index + 1) * size));
  }

  row(index) {
    const width = this.shape.at(-1);
    return this.values.subarray(index * width, (index + 1) * width);
  }

  at(row, column) {
    return this.values[row * this.shape.at(-1) + column];
  }

  map(change) {
    return new Values(this.shape, Float32Array.from(this.values, change));
  }
}

// Returns the mean of arrays of one shape.
export function mean(arrays) {
  if (arrays.length === 1) return arrays[0];
  return arrays[0].map((_, i) => arrays.reduce((sum, one) => sum + one.values[i], 0) / arrays.length);
}

// Unpacks a matrix, or one head of it: the first numbers of each row, and a colour map of more of them.
export function unpackMatrix(packed, head) {
  let first = unpackArray(packed.first);
  let map = unpackArray(packed.map);
  if (packed.shape.length === 3) {
    first = first.get(head);
    map = map.get(head);
  }
  return { rows: packed.shape.at(-2), columns: packed.shape.at(-1), first, map };
}
