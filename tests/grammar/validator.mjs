// SPDX-License-Identifier: Apache-2.0
// JSON Schema by another implementation, npm's @hyperjump/json-schema, as loadValidator(DIR) finds it in
// DIR/node_modules. Formats are asserted in all drafts, and multipleOf is computed with exact rationals of the shortest
// decimal texts of the two numbers, where the package takes the remainder of doubles.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const DIALECTS = [
  ["draft-04", "http://json-schema.org/draft-04/schema"],
  ["draft-06", "http://json-schema.org/draft-06/schema"],
  ["draft-07", "http://json-schema.org/draft-07/schema"],
  ["2019-09", "https://json-schema.org/draft/2019-09/schema"],
  ["2020-12", "https://json-schema.org/draft/2020-12/schema"],
];

// The number as [integer, power of ten].
const decimal = (number) => {
  const [mantissa, exponent = "0"] = String(number).split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  return [BigInt(whole + fraction), Number(exponent) - fraction.length];
};

export const isMultiple = (number, of) => {
  if (!Number.isFinite(number)) return false;
  const [a, m] = decimal(number);
  const [b, n] = decimal(of);
  const least = Math.min(m, n);
  return (a * 10n ** BigInt(m - least)) % (b * 10n ** BigInt(n - least)) === 0n;
};

const dialectOf = (schema) => {
  const said = typeof schema === "object" && schema !== null ? schema.$schema : undefined;
  if (typeof said !== "string") return DIALECTS[4][1];
  const found = DIALECTS.find(([part]) => said.includes(part));
  return found ? found[1] : DIALECTS[4][1];
};

// A function of schemas, with other documents by URI. It returns a function of instances, or why there is none.
export const loadValidator = async (dir) => {
  const home = pathToFileURL(createRequire(join(resolve(dir), "x.js")).resolve("@hyperjump/json-schema"));
  const at = (path) => import(new URL(path, home));
  const { registerSchema, unregisterSchema, validate, setShouldValidateFormat, setShouldValidateSchema } = await at("../draft-2020-12/index.js");
  for (const name of ["draft-04", "draft-06", "draft-07", "draft-2019-09"]) await at(`../${name}/index.js`);
  await at("../formats/index.js");
  const { addKeyword, getKeyword } = await at("../lib/experimental.js");
  setShouldValidateFormat(true);
  setShouldValidateSchema(false);
  const Instance = await at("../lib/instance.js");
  const id = "https://json-schema.org/keyword/multipleOf";
  addKeyword({
    ...getKeyword(id),
    interpret: (of, instance) => Instance.typeOf(instance) !== "number" || isMultiple(Instance.value(instance), of),
  });
  // Patterns that are none in the form with the flag u are those of a browser.
  const regex = (text) => {
    try {
      return new RegExp(text, "u");
    } catch {
      return new RegExp(text);
    }
  };
  const Browser = await import(createRequire(home).resolve("@hyperjump/browser"));
  const pattern = getKeyword("https://json-schema.org/keyword/pattern");
  addKeyword({ ...pattern, compile: (node) => regex(Browser.value(node)) });
  // Older drafts name fewer formats; here they have them all.
  const { default: format } = await at("../draft-2020-12/format.js");
  for (const draft of ["draft-04", "draft-06", "draft-07", "draft-2019-09"]) {
    const { default: older } = await at(`../${draft}/format.js`);
    addKeyword({ ...format, id: older.id });
  }
  let count = 0;
  return async (schema, others = {}) => {
    const uri = `https://example.test/${++count}`;
    const known = [];
    try {
      const dialect = dialectOf(schema);
      for (const [name, other] of Object.entries(others)) {
        registerSchema(structuredClone(other), name, dialect);
        known.push(name);
      }
      const copy = typeof schema === "object" ? structuredClone(schema) : schema;
      if (typeof copy === "object" && "$schema" in copy) copy.$schema = dialect.includes("/draft/") ? dialect : dialect + "#";
      registerSchema(copy, uri, dialect);
      known.push(uri);
      const valid = await validate(uri);
      return (instance) => valid(instance).valid;
    } catch (error) {
      return String(error?.message ?? error).split("\n")[0].slice(0, 200) || "refused";
    } finally {
      for (const name of known) unregisterSchema(name);
    }
  };
};
