#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives the library from Python's ctypes, with no compiler and no header: load, generate, stream, refuse, bring a
model of one's own.

usage: ctypes_test.py <libgenerate.so.0> <model.gguf>
"""
import ctypes
import sys
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_uint8, c_void_p

NUL_TERMINATED = c_size_t(-1)


class Error(ctypes.Structure):
    _fields_ = [("code", c_int32), ("message", c_char * 1020)]


class Token(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("id", c_int32), ("text", c_void_p), ("text_len", c_size_t),
                ("logprob", c_float), ("done", c_int32), ("finish_reason", c_int32), ("index", c_int32)]


Callback = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Token))

lib = ctypes.CDLL(sys.argv[1])
lib.gen_version.restype = c_char_p
lib.gen_result_text.restype = c_char_p
lib.gen_result_text.argtypes = [c_void_p, c_void_p]
lib.gen_sampling_set_temperature.argtypes = [c_void_p, c_double, c_void_p]
lib.gen_sampling_set_seed.argtypes = [c_void_p, c_uint64, c_void_p]
lib.gen_generate.argtypes = [c_void_p, c_char_p, c_size_t, c_void_p, c_void_p, c_void_p]
lib.gen_generate_stream.argtypes = [c_void_p, c_char_p, c_size_t, c_void_p, Callback, c_void_p, c_void_p, c_void_p]
lib.gen_result_tokens.argtypes, lib.gen_result_tokens.restype = [c_void_p, c_void_p], POINTER(c_int32)
for function in (lib.gen_result_free, lib.gen_sampling_free, lib.gen_free, lib.gen_model_free, lib.gen_session_free,
                 lib.gen_options_free, lib.gen_model_config_free):
    function.argtypes, function.restype = [c_void_p], None

error = Error()


def check(status):
    if status != 0:
        raise SystemExit(f"status {status}: {error.message.decode()}")


assert lib.gen_version().decode().count(".") == 2

model, generator, sampling, result = c_void_p(), c_void_p(), c_void_p(), c_void_p()
assert lib.gen_model_load(b"/no/such/file", None, byref(model), byref(error)) == -3  # GEN_ERROR_IO
assert error.code == -3 and b"/no/such/file" in error.message and not model.value

check(lib.gen_model_load(sys.argv[2].encode(), None, byref(model), byref(error)))
check(lib.gen_create(model, None, byref(generator), byref(error)))
check(lib.gen_sampling_new(byref(sampling), byref(error)))
check(lib.gen_sampling_set_temperature(sampling, 0.8, byref(error)))
check(lib.gen_sampling_set_seed(sampling, 11, byref(error)))
check(lib.gen_sampling_set_max_new_tokens(sampling, 40, byref(error)))
check(lib.gen_generate(generator, b"Once upon a time", NUL_TERMINATED, sampling, byref(result), byref(error)))
text = lib.gen_result_text(result, None)
assert len(text.decode().split()) >= 5, text
lib.gen_result_free(result)

# The same from the stream, piece by piece, each of them whole characters.
pieces = []


@Callback
def take(_, token):
    pieces.append(ctypes.string_at(token.contents.text, token.contents.text_len).decode())
    return 0


check(lib.gen_generate_stream(generator, b"Once upon a time", NUL_TERMINATED, sampling, take, None, None, byref(error)))
assert "".join(pieces).encode() == text, (pieces, text)
assert len(pieces) > 5

# A callback may stop; its value comes back with what was generated.
stop_after_three = []


@Callback
def stop(_, token):
    stop_after_three.append(token.contents.id)
    return 42 if len(stop_after_three) == 3 else 0


status = lib.gen_generate_stream(generator, b"Once upon a time", NUL_TERMINATED, sampling, stop, None, byref(result), byref(error))
assert status == -11, status  # GEN_ERROR_CANCELLED
lib.gen_result_user_code.argtypes = [c_void_p]
assert lib.gen_result_user_code(result) == 42

lib.gen_result_free(result)
lib.gen_sampling_free(sampling)
lib.gen_free(generator)
lib.gen_model_free(model)


# A model of one's own, and a sink for metrics, both in Python: it counts upwards from the last token.
class Batch(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("n_rows", c_int32), ("n_sequences", c_int32), ("n_logits", c_int32),
                ("tokens", POINTER(c_int32)), ("positions", POINTER(c_int32)), ("sequences", POINTER(c_int32)),
                ("wants_logits", POINTER(c_uint8)), ("states", POINTER(c_void_p)), ("call", c_void_p)]


Forward = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(Batch), POINTER(c_float), POINTER(c_float), POINTER(Error))
Tell = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_double)


class ForwardTable(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("user", c_void_p), ("forward", Forward), ("state_new", c_void_p),
                ("state_clone", c_void_p), ("state_truncate", c_void_p), ("state_free", c_void_p), ("release", c_void_p)]


class Sink(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("user", c_void_p), ("counter_add", Tell), ("gauge_set", c_void_p),
                ("histogram_observe", c_void_p)]


counted = {}


@Forward
def count_up(_, batch, logits, _features, _error):
    view, row = batch.contents, 0
    for i in range(view.n_rows):
        if view.wants_logits[i]:
            for token in range(10):
                logits[row * 10 + token] = float(token == (view.tokens[i] + 1) % 10)
            row += 1
    return 0


@Tell
def tell(_, name, value):
    counted[name.decode()] = counted.get(name.decode(), 0) + value


config, options, session = c_void_p(), c_void_p(), c_void_p()
check(lib.gen_model_config_new(byref(config), byref(error)))
check(lib.gen_model_config_set(config, b"vocab_size", b"10", byref(error)))
check(lib.gen_model_config_set(config, b"max_seq_len", b"64", byref(error)))
table = ForwardTable(struct_size=ctypes.sizeof(ForwardTable), forward=count_up)
check(lib.gen_model_new_custom(byref(table), config, None, byref(model), byref(error)))
check(lib.gen_options_new(byref(options), byref(error)))
check(lib.gen_options_set_metrics(options, byref(Sink(struct_size=ctypes.sizeof(Sink), counter_add=tell)), byref(error)))
check(lib.gen_create(model, options, byref(generator), byref(error)))
check(lib.gen_session_new(generator, byref(session), byref(error)))
check(lib.gen_session_append_tokens(session, (c_int32 * 2)(0, 3), c_size_t(2), byref(error)))
check(lib.gen_sampling_new(byref(sampling), byref(error)))
check(lib.gen_sampling_set_temperature(sampling, 0, byref(error)))
check(lib.gen_sampling_set_max_new_tokens(sampling, 12, byref(error)))
check(lib.gen_session_generate(session, b"", c_size_t(0), sampling, byref(result), byref(error)))
said = c_size_t()
tokens = lib.gen_result_tokens(result, byref(said))
assert tokens[:said.value] == [4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5], tokens[:said.value]
assert counted["completion_tokens"] == 12 and counted["prompt_tokens"] == 2, counted
lib.gen_result_free(result)
lib.gen_sampling_free(sampling)
lib.gen_session_free(session)
lib.gen_free(generator)
lib.gen_options_free(options)
lib.gen_model_free(model)
lib.gen_model_config_free(config)
print("Once upon a time" + text.decode())
