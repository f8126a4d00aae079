// SPDX-License-Identifier: Apache-2.0
// Our validator against ajv's compiled ones, on the cases of bench/schema/cases.json, in one run.
//
//   npm install --prefix DIRECTORY ajv
//   NODE_PATH=DIRECTORY/node_modules node bench/ajv/compare.mjs BUILD/bench/bench_schema
//
// Both validate values that were parsed before; the best of some rounds counts, since other work on the
// machine only adds. Ends with status 1 if ours takes more than 3 times as long in any case. Two are
// shown but not judged: invalid values (ours writes sentences, ajv an object), and unevaluated*, which
// ajv resolves when it compiles and ours when it validates.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const allowed = 3;
const rounds = 15;
const turns = 3;
const program = process.argv[2];
if (!program) {
  console.error("usage: node bench/ajv/compare.mjs BUILD/bench/bench_schema");
  process.exit(2);
}

let Ajv;
try {
  Ajv = createRequire(import.meta.url)("ajv/dist/2020.js").default;
} catch {
  console.error("ajv is not installed: npm install --prefix DIRECTORY ajv, then set NODE_PATH to DIRECTORY/node_modules");
  process.exit(2);
}

const casesFile = fileURLToPath(new URL("../schema/cases.json", import.meta.url));
const cases = JSON.parse(readFileSync(casesFile, "utf8"));

function nanoseconds(validate, value, expected) {
  const samples = [];
  let loops = 20000;
  for (let round = -5; round < rounds; round++) {
    let right = 0;
    const start = process.hrtime.bigint();
    for (let i = 0; i < loops; i++) right += validate(value) === expected ? 1 : 0;
    const spent = Number(process.hrtime.bigint() - start);
    if (right !== loops) throw new Error("a case has the wrong answer");
    if (round >= 0) samples.push(spent / loops);
    else loops = Math.max(1000, Math.round(1e7 / (spent / loops)));
  }
  return Math.min(...samples);
}

const ours = {};
const theirs = {};
for (let turn = 0; turn < turns; turn++) {
  const lines = execFileSync(program, ["--json", casesFile], { encoding: "utf8" }).trim().split("\n");
  for (const { name, best_ns } of lines.map((line) => JSON.parse(line)))
    ours[name] = Math.min(ours[name] ?? Infinity, best_ns);
  for (const { name, schema, value, invalid } of cases) {
    const ajv = new Ajv({ strict: false, validateFormats: false });
    theirs[name] = Math.min(theirs[name] ?? Infinity, nanoseconds(ajv.compile(schema), value, !invalid));
  }
}

let slow = 0;
console.log("                     ours       ajv   ratio");
for (const { name, unjudged } of cases) {
  const ratio = ours[name] / theirs[name];
  if (!unjudged && ratio > allowed) slow++;
  console.log(
    `  ${name.padEnd(14)} ${ours[name].toFixed(0).padStart(6)} ns ${theirs[name].toFixed(0).padStart(6)} ns ${ratio.toFixed(2).padStart(7)}${unjudged ? "  (not judged)" : ""}`,
  );
}
console.log(slow ? `${slow} cases take more than ${allowed} times as long as ajv` : `every judged case is within ${allowed} times ajv`);
process.exit(slow ? 1 : 0);
