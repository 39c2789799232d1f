// SPDX-License-Identifier: Apache-2.0
// What another validator says of the instances that maskbench --make has written.
//   npm install --prefix DIR @hyperjump/json-schema @hyperjump/json-schema-formats   (for development only)
//   node maskbench_verdicts.mjs DIR OUT [--own]
// OUT/*.json are files {"schema": …, "tests": [{"text": …} or {"data": …}]}; OUT/verdicts.jsonl gets a line for each:
// {"file": …, "valid": "01?…"}, '?' where the validator has no answer. With --own it prints where it differs from the
// files' own verdicts ("valid"), and writes nothing.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadValidator } from "../grammar/validator.mjs";

const [modules, folder, own] = process.argv.slice(2);
const validator = await loadValidator(modules);
const lines = [];
for (const name of readdirSync(folder).sort()) {
  if (!name.endsWith(".json")) continue;
  const { schema, tests = [] } = JSON.parse(readFileSync(join(folder, name), "utf8"));
  const valid = await validator(schema);
  const verdicts = tests.map((test) => {
    if (typeof valid === "string") return "?";
    try {
      return valid("text" in test ? JSON.parse(test.text) : test.data) ? "1" : "0";
    } catch {
      return "?";
    }
  });
  if (own) {
    const wrong = tests.flatMap((test, i) => (verdicts[i] === (test.valid ? "1" : "0") ? [] : [`${i}${verdicts[i]}`]));
    if (wrong.length > 0) console.log(name, wrong.join(" "), typeof valid === "string" ? valid : "");
    continue;
  }
  if (typeof valid === "string" && tests.length > 0) console.error(`${name}: ${valid}`);
  lines.push(JSON.stringify({ file: name, valid: verdicts.join("") }));
}
if (!own) writeFileSync(join(folder, "verdicts.jsonl"), lines.join("\n") + "\n");
