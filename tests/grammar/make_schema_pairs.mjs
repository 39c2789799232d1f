// SPDX-License-Identifier: Apache-2.0
// Random schemas of all drafts with instances and another validator's verdicts, one schema a line:
// {"schema": …, "instances": [text, …], "valid": "0110…"}
//   npm install --prefix DIR @hyperjump/json-schema @hyperjump/json-schema-formats   (for development only)
//   node make_schema_pairs.mjs DIR SEED COUNT [most bytes of a line] > schema_pairs.jsonl
// Instances are random values, values built to fit, and those changed in one place; numbers, strings and white space are
// spelt in all ways that count by value. Schemas that the other validator has no answer for are left out.
import { loadValidator } from "./validator.mjs";

const SCHEMAS = {
  4: "http://json-schema.org/draft-04/schema#",
  6: "http://json-schema.org/draft-06/schema#",
  7: "http://json-schema.org/draft-07/schema#",
  2019: "https://json-schema.org/draft/2019-09/schema",
  2020: undefined,
};
const STRINGS = ["", "a", "b", "ab", "aab", "xy", "é", '"q', "abc", "\u{1f999}", "a.b", "2024-02-29", "1.2.3.4", "a/b"];
const NAMES = ["a", "b", "c", "ab", "x1", "y"];
const PATTERNS = ["^a", "b$", "^[a-c]*$", "[0-9]", "^.{2}$", "a.b", "^(?!a)", "^\\w+$", "\\.", "^[^b]*$", "(a|x)(b|y)?$"];
const NUMBERS = [0, 1, -1, 2, 3, 1.5, -2.5, 10, 100, 0.1, 1e-5, 1e20, 5, 6, 0.25, 7, 12];
const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];
const FORMATS = ["date", "time", "date-time", "duration", "ipv4", "ipv6", "uuid", "email", "hostname", "uri",
  "uri-reference", "json-pointer", "relative-json-pointer", "uri-template", "iri", "unheard-of"];
const FORMATTED = ["2024-02-29", "2023-02-29", "12:00:00Z", "23:59:60Z", "1990-01-01T00:00:00+01:00", "P1DT2H", "P", "1.2.3.4",
  "256.1.1.1", "::1", "1::2::3", "123e4567-e89b-12d3-a456-426614174000", "a@b.c", "a@", "a-b.c", "-a", "http://a.b/c?d#e",
  "//a", "a b", "/a~0b", "~", "0#", "1/a", "{a}", "{", "http://é/"];
const OF = {
  any: ["type", "type", "enum", "const", "not", "allOf", "anyOf", "anyOf", "oneOf", "oneOf", "if", "$ref", "$ref"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  string: ["minLength", "maxLength", "pattern", "pattern", "format"],
  array: ["items", "items", "prefixItems", "contains", "uniqueItems", "minItems", "maxItems", "unevaluatedItems"],
  object: ["properties", "properties", "properties", "required", "additionalProperties", "patternProperties", "propertyNames",
    "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"],
};

class Maker {
  constructor(seed) {
    this.state = seed >>> 0;
  }
  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }
  below(n) {
    return Math.floor(this.next() * n);
  }
  chance(p) {
    return this.next() < p;
  }
  pick(list) {
    return list[this.below(list.length)];
  }
  some(list, most) {
    const made = new Set();
    if (list.length === 0) return [];
    for (let i = this.below(most + 1); i > 0; --i) made.add(this.pick(list));
    return [...made];
  }
  map(names, make) {
    return Object.fromEntries(names.map((name) => [name, make(name)]));
  }

  value(depth) {
    switch (this.below(depth > 0 ? 9 : 6)) {
      case 0: return null;
      case 1: return this.chance(0.5);
      case 2: case 3: return this.pick(NUMBERS);
      case 4: case 5: return this.pick(this.chance(0.2) ? FORMATTED : STRINGS);
      case 6: return Array.from({ length: this.below(4) }, () => this.value(depth - 1));
      default: return this.map(this.some(NAMES, 4), () => this.value(depth - 1));
    }
  }

  schema(depth) {
    if (this.draft !== 4 && this.chance(0.06)) return this.chance(0.7);
    const made = {};
    const type = this.pick(["number", "string", "array", "object", "object"]);
    if (this.chance(0.4)) made.type = this.chance(0.2) ? [type, this.pick(TYPES)].filter((t, i, all) => all.indexOf(t) === i) : type === "number" && this.chance(0.5) ? "integer" : type;
    for (let i = 1 + this.below(3); i > 0; --i) {
      this.keyword(made, this.pick(this.chance(0.35) ? OF.any : OF[this.chance(0.85) ? type : this.pick(["number", "string", "array", "object"])]), depth);
    }
    return made;
  }
  schemas(depth) {
    return Array.from({ length: 1 + this.below(3) }, () => this.schema(depth - 1));
  }

  keyword(made, keyword, depth) {
    const { draft } = this;
    const sub = () => this.schema(depth - 1);
    const nested = !["type", "enum", "const", "$ref", "uniqueItems", "required", "dependentRequired", ...OF.number, ...OF.string].includes(keyword) && !/^(min|max)/.test(keyword);
    if (nested && depth <= 0) return;
    switch (keyword) {
      case "type": made.type = this.chance(0.3) ? this.some(TYPES, 2) : this.pick(TYPES); if (made.type.length === 0) delete made.type; break;
      case "enum": made.enum = Array.from({ length: 1 + this.below(3) }, () => this.value(2)); break;
      case "const": if (draft !== 4) made.const = this.value(2); break;
      case "minimum": case "maximum": made[keyword] = this.pick(NUMBERS); break;
      case "exclusiveMinimum": case "exclusiveMaximum":
        if (draft === 4) {
          made[keyword === "exclusiveMinimum" ? "minimum" : "maximum"] = this.pick(NUMBERS);
          made[keyword] = this.chance(0.7);
        } else made[keyword] = this.pick(NUMBERS);
        break;
      case "multipleOf": made.multipleOf = this.pick([1, 2, 3, 0.5, 2.5, 5, 0.01, 0.1, 7, 1e-5, 1.5]); break;
      case "pattern": made.pattern = this.pick(PATTERNS); break;
      case "format": made.format = this.pick(FORMATS); break;
      case "minLength": case "maxLength": case "minItems": case "maxItems": case "minProperties": case "maxProperties":
        made[keyword] = this.below(4); break;
      case "uniqueItems": made.uniqueItems = this.chance(0.9); if (!("items" in made) && depth > 0) made.items = { enum: Array.from({ length: 4 }, () => this.value(1)) }; break;
      case "required": made.required = this.some(NAMES, 3); if (draft === 4 && made.required.length === 0) made.required = ["a"]; break;
      case "properties": made.properties = this.map(this.some(NAMES, 3), sub); break;
      case "patternProperties": made.patternProperties = this.map(this.some(PATTERNS, 2), sub); break;
      case "additionalProperties": made.additionalProperties = this.chance(0.4) ? false : sub(); break;
      case "propertyNames": if (draft !== 4) made.propertyNames = this.chance(0.5) ? { pattern: this.pick(PATTERNS) } : sub(); break;
      case "dependentRequired": if (draft >= 2019) made.dependentRequired = this.map(this.some(NAMES, 2), () => this.some(NAMES, 2)); break;
      case "dependentSchemas": if (draft >= 2019) made.dependentSchemas = this.map(this.some(NAMES, 2), sub); break;
      case "dependencies": if (draft <= 7) made.dependencies = this.map(this.some(NAMES, 2), () => (this.chance(0.5) ? [this.pick(NAMES)] : sub())); break;
      case "prefixItems":
        if (draft >= 2020) made.prefixItems = this.schemas(depth);
        else {
          made.items = this.schemas(depth);
          if (this.chance(0.6)) made.additionalItems = this.chance(0.4) && draft !== 4 ? false : sub();
        }
        break;
      case "contains":
        if (draft === 4) break;
        made.contains = sub();
        for (const count of ["minContains", "maxContains"]) if (draft >= 2019 && this.chance(0.4)) made[count] = this.below(3);
        break;
      case "if":
        if (draft === 4 || draft === 6) break;
        made.if = sub();
        for (const name of ["then", "else"]) if (this.chance(0.7)) made[name] = sub();
        break;
      case "allOf": case "anyOf": case "oneOf": made[keyword] = this.schemas(depth); break;
      case "unevaluatedProperties": case "unevaluatedItems": if (draft >= 2019) made[keyword] = this.chance(0.6) ? false : sub(); break;
      case "$ref":
        // In older drafts a reference stands alone.
        if (draft <= 7) { if (Object.keys(made).length === 0) made.$ref = this.reference(); break; }
        if (draft === 2020 && this.chance(0.2)) made.$dynamicRef = "#dyn";
        else made.$ref = this.reference();
        break;
      default: made[keyword] = sub();
    }
    if (draft <= 7 && "$ref" in made) for (const key of Object.keys(made)) if (key !== "$ref") delete made[key];
  }
  reference() {
    const defs = this.draft >= 2019 ? "$defs" : "definitions";
    const forms = [`#/${defs}/d`, `#/${defs}/d`, `#/${defs}/e`];
    if (this.draft !== 4) forms.push("#here", "http://a.test/d/e");
    return this.pick(forms);
  }

  root(draft) {
    this.draft = draft;
    let made = this.schema(2);
    if (typeof made === "boolean") made = {};
    if (draft <= 7 && "$ref" in made) made = { allOf: [made] };
    const [d, e] = [this.schema(0), this.schema(1)];
    if (typeof d === "object" && draft !== 4 && !("$ref" in d)) {
      if (draft >= 2019) d.$anchor = "here"; else d.$id = "#here";
    }
    if (typeof e === "object" && draft !== 4 && !("$ref" in e)) e.$id = "http://a.test/d/e";
    // Recursion goes through members, so that it ends.
    if (typeof d === "object" && !("$ref" in d) && this.chance(0.3)) d.properties = { a: { $ref: draft === 4 || this.chance(0.5) ? "#" : this.reference() } };
    made[draft >= 2019 ? "$defs" : "definitions"] = { d, e };
    if (draft === 2020) made.$defs.f = { $dynamicAnchor: "dyn", ...(this.chance(0.5) ? { type: this.pick(TYPES) } : {}) };
    return SCHEMAS[draft] ? { $schema: SCHEMAS[draft], ...made } : made;
  }

  // Near what the schema asks for; it need not fit.
  fitting(schema, depth) {
    if (typeof schema !== "object" || depth < 0) return this.value(1);
    if ("const" in schema) return schema.const;
    if (schema.enum) return this.pick(schema.enum);
    for (const key of ["anyOf", "oneOf", "allOf"]) if (schema[key] && this.chance(0.6)) return this.fitting(this.pick(schema[key]), depth);
    if (schema.$ref && this.root_) {
      const defs = this.root_.$defs ?? this.root_.definitions;
      return this.fitting(/\/d$|here/.test(schema.$ref) ? defs.d : schema.$ref === "#" ? this.root_ : defs.e, depth - 1);
    }
    let types = schema.type === undefined ? [] : [schema.type].flat();
    if (types.length === 0) {
      for (const type of ["number", "string", "array", "object"]) if (OF[type].some((key) => key in schema)) types.push(type);
    }
    switch (types.length > 0 ? this.pick(types) : "") {
      case "integer": case "number": {
        const step = schema.multipleOf ?? 1;
        const low = schema.minimum ?? (typeof schema.exclusiveMinimum === "number" ? schema.exclusiveMinimum + step : (schema.maximum ?? 3) - 2 * step);
        const number = (Math.ceil(low / step) + this.below(3)) * step;
        return Number.isFinite(number) && Math.abs(number) < 1e15 ? Number(number.toFixed(6)) : this.pick(NUMBERS);
      }
      case "string": return this.chance(0.3) ? this.pick(FORMATTED) : this.pick(STRINGS) + this.pick(STRINGS).repeat(this.below(3));
      case "boolean": return this.chance(0.5);
      case "null": return null;
      case "array": {
        const first = schema.prefixItems ?? (Array.isArray(schema.items) ? schema.items : []);
        const others = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
        return Array.from({ length: Math.min(6, (schema.minItems ?? 0) + this.below(4)) }, (_, i) =>
          this.fitting(first[i] ?? (this.chance(0.4) ? schema.contains : undefined) ?? others ?? schema.unevaluatedItems ?? true, depth - 1));
      }
      case "object": {
        const names = new Set([...(schema.required ?? []), ...this.some(Object.keys(schema.properties ?? {}), 3), ...(this.chance(0.3) ? this.some(NAMES, 2) : [])]);
        return this.map([...names], (name) => this.fitting(schema.properties?.[name] ?? schema.additionalProperties ?? true, depth - 1));
      }
      default: return this.value(2);
    }
  }

  changed(value) {
    if (Array.isArray(value) && value.length > 0 && this.chance(0.7)) {
      const made = [...value];
      const i = this.below(made.length);
      if (this.chance(0.3)) made.splice(i, 1);
      else if (this.chance(0.3)) made.push(made[i]);
      else made[i] = this.changed(made[i]);
      return made;
    }
    if (typeof value === "object" && value !== null && this.chance(0.8)) {
      const made = { ...value };
      const names = Object.keys(made);
      if (names.length === 0 || this.chance(0.3)) made[this.pick(NAMES)] = this.value(1);
      else if (this.chance(0.4)) delete made[this.pick(names)];
      else { const name = this.pick(names); made[name] = this.changed(made[name]); }
      return made;
    }
    if (typeof value === "number" && this.chance(0.8)) return this.pick([-value, value + 1, value - 1, value + 0.5, value * 10]);
    if (typeof value === "string" && this.chance(0.8)) return this.pick([value + "a", [...value].slice(0, -1).join(""), "b" + value]);
    return this.value(1);
  }

  space() {
    return this.chance(0.12) ? this.pick([" ", "\n", "\t", "  ", "\r\n"]) : "";
  }
  write(value, fresh) {
    if (typeof value === "string") {
      return JSON.stringify(value).replace(/[^"\\]/gu, (c) => (fresh && this.chance(0.1) && !/[\\"]/.test(JSON.stringify(value).slice(1, -1)) ? [...Array(c.length).keys()].map((i) => "\\u" + c.charCodeAt(i).toString(16).padStart(4, "0")).join("") : c));
    }
    if (typeof value === "number") {
      const text = Object.is(value, -0) ? "0" : JSON.stringify(value);
      if (!fresh || this.draft === 4 || !this.chance(0.3) || text.includes("e") || text.length > 5) return text;
      const forms = [text + "e0", text + "E+0"];
      if (Number.isInteger(value)) forms.push(text + ".0", text + (text.length < 4 ? "0e-1" : ".000"), text + ".00e00");
      else forms.push(text + "0", text + "0e-0");
      return this.pick(forms);
    }
    const list = (open, close, parts) => open + this.space() + parts.join("," + this.space()) + this.space() + close;
    if (Array.isArray(value)) return list("[", "]", value.map((one) => this.write(one, fresh)));
    if (typeof value === "object" && value !== null) {
      return list("{", "}", Object.entries(value).map(([name, one]) => this.write(name, fresh) + this.space() + ":" + this.space() + this.write(one, fresh)));
    }
    return JSON.stringify(value);
  }
}

const [modules, seed, count, most = "4000"] = process.argv.slice(2);
const validator = await loadValidator(modules);
const maker = new Maker(Number(seed));
const drafts = [4, 6, 7, 2019, 2020, 2020, 2020];
for (let made = 0, tries = 0; made < Number(count) && tries < 4 * Number(count); ++tries) {
  const schema = maker.root(maker.pick(drafts));
  const valid = await validator(schema);
  if (typeof valid === "string") {
    if (process.env.SHOW_REFUSED) console.error(valid, JSON.stringify(schema));
    continue;
  }
  maker.root_ = schema;
  const texts = new Set();
  for (let i = 0; i < 14; ++i) {
    let value = i < 4 ? maker.value(2) : maker.fitting(schema, 3);
    if (i >= 9) value = maker.changed(value);
    texts.add(maker.write(value, true));
  }
  let verdicts = "";
  const instances = [...texts];
  try {
    for (const text of instances) verdicts += valid(JSON.parse(text)) ? "1" : "0";
  } catch {
    continue;
  }
  const line = `{"schema": ${JSON.stringify(schema)}, "instances": ${JSON.stringify(instances)}, "valid": "${verdicts}"}`;
  if (Buffer.byteLength(line) > Number(most)) continue;
  console.log(line);
  ++made;
}
