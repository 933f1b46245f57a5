/** A valid request of every RPC, as protobuf's own library writes it, read and written again. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { createRegistry, type DescMessage, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import * as agent from "@phylactery/client/agent";
import * as memory from "@phylactery/client/memory";
import * as riskgate from "@phylactery/client/riskgate";

import { setting } from "./support.js";

interface Written {
  readonly type: string;
  readonly json: JsonValue;
}

test("every request is written as protobuf's own library writes it", () => {
  const files = [agent, memory, riskgate]
    .flatMap((one) => Object.values(one) as unknown[])
    .filter((one): one is DescMessage => typeof one === "object" && one !== null && "kind" in one && one.kind === "message");
  const registry = createRegistry(...files);
  const requests = JSON.parse(readFileSync(setting("PHYLACTERY_REQUESTS"), "utf-8")) as Written[];
  assert.ok(requests.length > 80);
  for (const { type, json } of requests) {
    const schema = registry.getMessage(type);
    assert.ok(schema, type);
    assert.deepEqual(toJson(schema, fromJson(schema, json)), json, type);
  }
});
