#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Writes case_folds_data.inc: which characters differ only in case, as the flags i and u
// of the ECMAScript engine that runs this script have it (Unicode's simple case folding).
//
// usage: node case_folds.mjs > case_folds_data.inc

const LAST = 0x10FFFF;
const single = (text, c) => ([...text].length === 1 ? text.codePointAt(0) : c);
const escape = (c) => `\\u{${c.toString(16)}}`;
const isSurrogate = (c) => c >= 0xD800 && c <= 0xDFFF;

const first = new Map();  // of each character that has others: the least of them
function find(c) {
  while (first.has(c) && first.get(c) !== c) c = first.get(c);
  return c;
}
for (let c = 0; c <= LAST; ++c) {
  if (isSurrogate(c)) continue;
  const text = String.fromCodePoint(c);
  const others = [single(text.toLowerCase(), c), single(text.toUpperCase(), c),
                  single(text.toUpperCase().toLowerCase(), c), single(text.toLowerCase().toUpperCase(), c)];
  for (const other of others) {
    if (other === c || !new RegExp(`^${escape(c)}$`, "iu").test(String.fromCodePoint(other))) continue;
    const [a, b] = [find(c), find(other)];
    first.set(Math.max(a, b), Math.min(a, b));
    first.set(Math.min(a, b), Math.min(a, b));
  }
}
const known = [...first.keys()].sort((a, b) => a - b);
const all = new RegExp(`^[${known.map(escape).join("")}]$`, "iu");
for (let c = 0; c <= LAST; ++c) {
  if (!isSurrogate(c) && all.test(String.fromCodePoint(c)) && !first.has(c)) throw new Error(`lost ${c}`);
}

// Rows: low, high, step between characters, and the first of low's letter.
const rows = [];
for (const c of known) {
  const to = find(c);
  if (to === c) continue;
  const row = rows[rows.length - 1];
  if (row && to - row[3] === c - row[0]) {
    const step = c - row[1];
    if (row[0] === row[1] ? step <= 2 : step === row[2]) {
      row[1] = c;
      row[2] = step;
      continue;
    }
  }
  rows.push([c, c, 1, to]);
}
process.stdout.write(`// Characters that differ only in case, Unicode ${process.versions.unicode}. Written by case_folds.mjs.
${rows.map((row) => `{${row.join(", ")}},`).join("\n")}
`);
