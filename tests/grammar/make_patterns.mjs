// SPDX-License-Identifier: Apache-2.0
// Random patterns with the verdict of `new RegExp(text, "u")`, one a line: a letter, then the pattern as a JSON string.
//   node make_patterns.mjs SEED COUNT > patterns.txt
// v: valid; n: not valid; l: valid, with something that the grammar of patterns leaves out (pattern_texts.h).
class Maker {
  constructor(seed) {
    this.state = seed >>> 0;
  }
  below(n) {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
  }
  pick(list) {
    return list[this.below(list.length)];
  }
  literal() {
    return this.pick(["a", "b", "Z", "_", " ", "-", "/", ",", ":", "=", "!", "<", ">", "é", "я", "中", "\u{1f600}", "#", "0", "7", "k", "u", "\""]);
  }
  escape() {
    return "\\" + this.pick(["d", "D", "w", "W", "s", "S", "n", "r", "t", "f", "v", "cA", "cz", "x41", "xfF", "u0041", "uFFFF", "uD83D\\uDE00",
      "u{0}", "u{10FFFF}", "u{000041}", "u{10fffe}", "u{fffff}", "p{L}", "P{Lu}", "p{Script=Greek}", "p{scx=Latn}", "p{gc=Nd}", "p{Alphabetic}",
      "p{General_Category=Letter}", ".", "*", "+", "?", "(", ")", "[", "]", "{", "}", "|", "^", "$", "/", "\\"]);
  }
  wrong_escape() {
    return "\\" + this.pick(["a", "e", "Z", "A", "-", "_", "x4", "xg1", "u004", "u{110000}", "u{}", "u{1000000}", "p{Zx}", "pL", "p{Script=Q}", "c1", "c", "00", "9", "1", "k", "k<q>", "é", " "]);
  }
  end() {
    return this.pick(["a", "f", "z", "0", "9", " ", "!", "~", "A", "Z", "-", "\\t", "\\n", "\\x20", "\\x7E", "\\u0000", "\\u00ff", "\\uffff", "\\cA", "\\b",
      "\\-", "\\]", "\\\\", "À", "я", "\u4e00", "\u9fa5", "\u{1f600}", "^", "[", "."]);
  }
  item() {
    const kind = this.below(10);
    if (kind < 4) return this.literal();
    if (kind < 6) return this.escape();
    if (kind < 8) return this.end() + "-" + this.end();
    if (kind < 9) return this.pick(["\\d", "\\W", "\\p{L}", "a"]) + "-" + this.pick(["", "", "\\d", "a", "\\S-"]);
    return this.pick(["-", "^", "[", "(", ".", "*", "\\b", "\\-", "\\0", this.wrong_escape()]);
  }
  char_class() {
    let text = this.pick(["[", "[", "[^"]);
    for (let i = this.below(4); i > 0; --i) text += this.item();
    return text + "]";
  }
  quantifier() {
    const number = () => String(this.pick([0, 1, 2, 5, 9, 10, 12, 35, 99, "00", "07", "010", 100, 150, 1000]));
    const kind = this.below(12);
    if (kind < 6) return "";
    const lazy = this.pick(["", "", "?"]);
    if (kind < 9) return this.pick(["*", "+", "?"]) + lazy;
    if (kind < 10) return `{${number()}}` + lazy;
    if (kind < 11) return `{${number()},}` + lazy;
    return `{${number()},${number()}}` + lazy;
  }
  term(depth) {
    const kind = this.below(20);
    if (kind < 6) return this.literal() + this.quantifier();
    if (kind < 9) return this.escape() + this.quantifier();
    if (kind < 12) return this.char_class() + this.quantifier();
    if (kind < 13) return this.pick(["^", "$", "\\b", "\\B", "|", "."]);
    if (kind < 14) return "\\0" + this.pick(["", "", "a", "5"]) + this.quantifier();
    if (kind < 15) return this.pick(["\\1", "\\2", "\\k<a>", this.wrong_escape()]);
    if (depth === 0) return this.literal();
    const open = this.pick(["(", "(", "(?:", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?<a>", "(?<$b2>", "(?P<a>", "(?i)", "(?"]);
    return open + this.pattern(depth - 1) + ")" + (open.includes("?=") || open.includes("!") || open.includes("<=") ? "" : this.quantifier());
  }
  pattern(depth) {
    let text = "";
    for (let i = this.below(5); i > 0; --i) text += this.term(depth);
    return text;
  }
  damaged(text) {
    const all = [...text];
    const at = this.below(all.length + 1);
    const letter = this.pick(["(", ")", "[", "]", "{", "}", "*", "?", "\\", "|", "-", "1", "a", ",", "^"]);
    all.splice(at, this.below(2), ...(this.below(3) > 0 ? [letter] : []));
    return all.join("");
  }
}

const is_left_out = (text) => {
  const bare = text.replace(/\[(?:[^\]\\]|\\.)*\]/gu, (one) => (/\\0|\\u\{[^}]*\}-|-\\u\{|\\u[dD][89a-fA-F]/u.test(one.replace(/\\u[dD][89abAB]..\\u[dD][c-fC-F]../gu, "")) ? "\\1" : "")) // classes have rules of their own
  const far = /[^\0-\x7f]-[^\0-\x7f]|\\u(?!00[0-7])....-(?:[^\0-\x7f]|\\u(?!00[0-7]))|[^\0-\x7f]-\\u(?!00[0-7])|\\x[89a-fA-F]/u.test(text);
  const many = /\{0*[1-9]\d\d+,\d/u.test(text);
  const names = text.split(/\(\?<[^=!]/u).length > 2;
  return far || many || names || /\\[1-9k]|\\u[dD][89a-fA-F]/u.test(bare.replace(/\\\\/gu, ""). replace(/\\u[dD][89abAB]..\\u[dD][c-fC-F]../gu, ""));
};

const [seed, count] = process.argv.slice(2).map(Number);
const maker = new Maker(seed);
const seen = new Set();
while (seen.size < count) {
  let text = maker.pattern(3);
  if (maker.below(3) === 0) text = maker.damaged(text);
  if (text.length > 120 || seen.has(text)) continue;
  seen.add(text);
  let valid = true;
  try {
    new RegExp(text, "u");
  } catch {
    valid = false;
  }
  console.log((valid ? (is_left_out(text) ? "l" : "v") : "n") + JSON.stringify(text));
}
