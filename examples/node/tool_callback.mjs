// SPDX-License-Identifier: Apache-2.0
// A function that C calls for tools. What it does is a thread's own: agents.mjs runs synchronous ones on the main thread, and
// tool_worker.mjs waits for the others.
import { internals } from "./libgenerate.mjs";

const { bytesAt, fallible, koffi } = internals;

const NativeCall = koffi.struct("gen_tool_call", {
  struct_size: "uint32_t", id: "const char *", name: "const char *", arguments: "void *", arguments_len: "size_t",
});
const Callback = koffi.proto("int gen_tool_callback(uintptr_t user, gen_tool_call *call, uintptr_t reply)");
const write = fallible("gen_tool_reply_write", "uintptr_t reply, const uint8_t *text, size_t len");

/** The address of a function that answers calls with answer({ number, id, name, text, reply }): `{ output, failed }`. */
export function toolCallback(answer) {
  return koffi.address(koffi.register((user, pointer, reply) => {
    const { id, name, ...call } = koffi.decode(pointer, NativeCall);
    const text = bytesAt(call.arguments, call.arguments_len).toString();
    const { output, failed } = answer({ number: Number(user), id, name, text, reply });
    try {
      const bytes = Buffer.from(output);
      write(reply, bytes, bytes.length);
      return Number(failed);
    } catch {
      return 1;
    }
  }, koffi.pointer(Callback)));
}
