# SPDX-License-Identifier: Apache-2.0
"""Files of adapters for tests."""
import random
import struct


def _text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def write_adapter(path, tensors, seed=1, gain=0.5, architecture="llama", width=256, rank=4, tokens=(), alpha=None):
    """An adapter of random values: tensors are names with their outputs, or inputs and outputs; without
    inputs there are `width`. With tokens, these activate it; with alpha, its scale is alpha / rank."""
    draw = random.Random(seed)
    entries = (("general.type", "adapter"), ("general.architecture", architecture), ("adapter.type", "lora"))
    head = struct.pack("<4sIQQ", b"GGUF", 3, 2 * len(tensors), len(entries) + bool(tokens) + (alpha is not None))
    head += b"".join(_text(key) + struct.pack("<I", 8) + _text(value) for key, value in entries)
    if tokens:
        head += _text("adapter.alora.invocation_tokens") + struct.pack(f"<IIQ{len(tokens)}i", 9, 5, len(tokens), *tokens)
    if alpha is not None:
        head += _text("adapter.lora.alpha") + struct.pack("<If", 6, alpha)
    data = b""
    for name, *sizes in tensors:
        inputs = sizes[0] if len(sizes) == 2 else width
        for half, cols, rows in (("a", inputs, rank), ("b", rank, sizes[-1])):
            head += _text(f"{name}.lora_{half}") + struct.pack("<IQQIQ", 2, cols, rows, 0, len(data))
            values = [gain * (draw.random() - 0.5) for _ in range(cols * rows)]
            data += struct.pack(f"<{len(values)}f", *values)
            data += bytes(-len(data) % 32)
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32) + data)
