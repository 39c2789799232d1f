// SPDX-License-Identifier: Apache-2.0
// Writes a small adapter (LoRA) for a llama model, as tests/support/adapter_files.py does.
import fs from "node:fs";

const number = (value, bytes) => {
  const out = Buffer.alloc(8);
  out.writeBigUInt64LE(BigInt(value));
  return out.subarray(0, bytes);
};
const text = (value) => Buffer.concat([number(Buffer.byteLength(value), 8), Buffer.from(value)]);
const aligned = (data) => Buffer.concat([data, Buffer.alloc((32 - data.length % 32) % 32)]);

/** One pair, for a tensor with `width` inputs and outputs. */
export function writeAdapter(path, tensor, width, gain, rank = 4) {
  const entries = { "general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora" };
  const head = [Buffer.from("GGUF"), number(3, 4), number(2, 8), number(Object.keys(entries).length, 8)];
  for (const [key, value] of Object.entries(entries)) head.push(text(key), number(8, 4), text(value));
  let data = Buffer.alloc(0);
  let state = 1;
  for (const [half, cols, rows] of [["a", width, rank], ["b", rank, width]]) {
    head.push(text(`${tensor}.lora_${half}`), number(2, 4), number(cols, 8), number(rows, 8), number(0, 4), number(data.length, 8));
    const values = Float32Array.from({ length: cols * rows }, () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return gain * (state / 2 ** 32 - 0.5);
    });
    data = aligned(Buffer.concat([data, Buffer.from(values.buffer)]));
  }
  fs.writeFileSync(path, Buffer.concat([aligned(Buffer.concat(head)), data]));
}
