// SPDX-License-Identifier: Apache-2.0
// The thread that waits for asynchronous tools of agents.mjs, one call at a time: it tells the main thread of a call, and sleeps
// until that has the outcome of the promise.
import { receiveMessageOnPort, workerData } from "node:worker_threads";

import { toolCallback } from "./tool_callback.mjs";

const { flag, port } = workerData;

const address = toolCallback((call) => {
  Atomics.store(flag, 0, 0);
  port.postMessage(call);
  Atomics.wait(flag, 0, 0);
  return receiveMessageOnPort(port).message;
});
port.postMessage(address);
Atomics.store(flag, 0, 1);
Atomics.notify(flag, 0);
setInterval(() => {}, 1 << 30); // the thread serves C until the program ends
