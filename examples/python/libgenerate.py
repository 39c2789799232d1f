# SPDX-License-Identifier: Apache-2.0
"""libgenerate from Python's ctypes, with nothing but the C header: enough of it to load a model, stream, cancel and run
batches, and the pattern for the rest. The library is found by GENERATE_LIBRARY or as libgenerate.so.0.

    with Model("model.gguf") as model, Generator(model) as generator, Session(generator) as session:
        for token in session.stream("Once upon a time", temperature=0.8, max_new_tokens=50):
            print(token.text, end="", flush=True)
"""
import ctypes
import os
import struct
import threading
from ctypes import POINTER, byref, c_char_p, c_int32, c_size_t, c_void_p, string_at
from typing import NamedTuple

_lib = ctypes.CDLL(os.environ.get("GENERATE_LIBRARY", "libgenerate.so.0"))


class _Error(ctypes.Structure):
    _fields_ = [("code", c_int32), ("message", ctypes.c_char * 1020)]


# struct gen_token: struct_size, id, text, text_len, logprob, done, finish_reason, index. Taken apart at once, since this is
# done for each token and the fields of a ctypes.Structure are slow.
_TOKEN = struct.Struct("@IiPNfiii")

FINISH = ("none", "stop_token", "stop_string", "length", "context_full", "grammar_complete", "grammar_dead_end",
          "cancelled", "callback", "error")


class Error(Exception):
    """A call failed: `code` is its status, `result` what a generation had made until then, or None."""

    def __init__(self, code, message, result=None):
        super().__init__(message)
        self.code, self.result = code, result


class Token(NamedTuple):
    id: int
    text: str
    logprob: float
    done: bool
    finish_reason: str


class Result(NamedTuple):
    text: str
    tokens: list
    finish_reason: str
    error: Error | None


def _function(name, *arguments, result=c_int32):
    function = getattr(_lib, name)
    function.argtypes, function.restype = arguments, result
    return function


def _fallible(name, *arguments):
    """A function that returns a status and takes a gen_error last, as one that raises."""
    function = _function(name, *arguments, POINTER(_Error))

    def call(*values):
        error = _Error()
        if function(*values, byref(error)):
            raise Error(error.code, error.message.decode())

    return call


_out, _text = POINTER(c_void_p), (c_char_p, c_size_t)
_model_load = _fallible("gen_model_load", c_char_p, c_void_p, _out)
_model_custom = _fallible("gen_model_new_custom", c_void_p, c_void_p, c_void_p, _out)
_config_new = _fallible("gen_model_config_new", _out)
_config_set = _fallible("gen_model_config_set", c_void_p, c_char_p, c_char_p)
_config_free = _function("gen_model_config_free", c_void_p, result=None)
_model_tokenizer = _function("gen_model_tokenizer", c_void_p, result=c_void_p)
_options_new = _fallible("gen_options_new", _out)
_options_set = _fallible("gen_options_set", c_void_p, c_char_p, c_char_p)
_options_free = _function("gen_options_free", c_void_p, result=None)
_create = _fallible("gen_create", c_void_p, c_void_p, _out)
_session_new = _fallible("gen_session_new", c_void_p, _out)
_session_length = _function("gen_session_length", c_void_p)
_sampling_new = _fallible("gen_sampling_new", _out)
_sampling_set = _fallible("gen_sampling_set", c_void_p, c_char_p, c_char_p)
_sampling_set_cancel = _fallible("gen_sampling_set_cancel", c_void_p, c_void_p)
_sampling_free = _function("gen_sampling_free", c_void_p, result=None)
_cancel_new = _fallible("gen_cancel_new", _out)
_cancel_fire = _function("gen_cancel_fire", c_void_p, result=None)
_stream_open = _fallible("gen_stream_open", c_void_p, *_text, c_void_p, _out)
_stream_next = _function("gen_stream_next", c_void_p, _out, POINTER(_Error))
_stream_result = _fallible("gen_stream_result", c_void_p, _out)
_stream_close = _function("gen_stream_close", c_void_p, result=None)
_request_new = _fallible("gen_request_new", _out)
_request_set_prompt = _fallible("gen_request_set_prompt", c_void_p, *_text)
_request_set_sampling = _fallible("gen_request_set_sampling", c_void_p, c_void_p)
_request_free = _function("gen_request_free", c_void_p, result=None)
_batch_generate = _fallible("gen_batch_generate", c_void_p, POINTER(c_void_p), c_size_t, POINTER(c_void_p))
_result_text = _function("gen_result_text", c_void_p, POINTER(c_size_t), result=c_void_p)
_result_tokens = _function("gen_result_tokens", c_void_p, POINTER(c_size_t), result=POINTER(c_int32))
_result_reason = _function("gen_result_finish_reason", c_void_p)
_result_error = _function("gen_result_error", c_void_p, result=POINTER(_Error))
_result_free = _function("gen_result_free", c_void_p, result=None)


class Handle:
    """Owns a handle; free it with close(), or let it go out of a `with`."""

    _free = None

    def __init__(self, make, *arguments):
        self._lock, out = threading.Lock(), c_void_p()
        make(*arguments, byref(out))
        self.handle = out.value

    def close(self):
        with self._lock:
            handle, self.handle = self.handle, None
        if handle:
            type(self)._free(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "handle", None):
            self.close()


class Model(Handle):
    _free = _function("gen_model_free", c_void_p, result=None)

    def __init__(self, path):
        super().__init__(_model_load, os.fsencode(path), None)

    @classmethod
    def custom(cls, forward, tokenizer_of, **config):
        """Over a gen_forward in C, by its address; the tokenizer is another model's."""
        model, sizes = cls.__new__(cls), c_void_p()
        _config_new(byref(sizes))
        try:
            for key, value in config.items():
                _config_set(sizes, key.encode(), str(value).encode())
            Handle.__init__(model, _model_custom, forward, sizes, _model_tokenizer(tokenizer_of.handle))
        finally:
            _config_free(sizes)
        return model


class Cancel(Handle):
    """A flag that ends the calls that have it; fire() it from any thread."""

    _free = _function("gen_cancel_free", c_void_p, result=None)

    def __init__(self):
        super().__init__(_cancel_new)

    def fire(self):
        _cancel_fire(self.handle)


class _Sampling(Handle):
    _free = _sampling_free

    def __init__(self, cancel, settings):
        super().__init__(_sampling_new)
        for key, value in settings.items():
            _sampling_set(self.handle, key.encode(), str(value).encode())
        if cancel is not None:
            _sampling_set_cancel(self.handle, cancel.handle)


def _taken(handle):
    """A Result out of a gen_result, which is freed."""
    n = c_size_t()
    text = string_at(_result_text(handle, byref(n)), n.value).decode()
    tokens = _result_tokens(handle, byref(n))[:n.value]
    failure = _result_error(handle)
    error = Error(failure.contents.code, failure.contents.message.decode()) if failure else None
    result = Result(text, tokens, FINISH[_result_reason(handle)], error)
    _result_free(handle)
    return result


class Generator(Handle):
    """Sessions of a model come from here. Options are those of gen_options_describe: kv_dtype="fp16", …"""

    _free = _function("gen_free", c_void_p, result=None)

    def __init__(self, model, **options):
        settings = c_void_p()
        _options_new(byref(settings))
        try:
            for key, value in options.items():
                _options_set(settings, key.encode(), str(value).encode())
            super().__init__(_create, model.handle, settings)
        finally:
            _options_free(settings)

    def batch(self, prompts, cancel=None, **sampling):
        """All together, a Result for each prompt with its own error; keywords are those of gen_sampling_describe."""
        requests = (c_void_p * len(prompts))()
        results = (c_void_p * len(prompts))()
        with _Sampling(cancel, sampling) as how:
            try:
                for i, prompt in enumerate(prompts):
                    request, data = c_void_p(), prompt.encode()
                    _request_new(byref(request))
                    requests[i] = request.value
                    _request_set_prompt(request, data, len(data))
                    _request_set_sampling(request, how.handle)
                _batch_generate(self.handle, requests, len(prompts), results)
            finally:
                for request in requests:
                    _request_free(request)
        return [_taken(result) for result in results]


class Session(Handle):
    _free = _function("gen_session_free", c_void_p, result=None)

    def __init__(self, generator):
        super().__init__(_session_new, generator.handle)

    def __len__(self):
        return _session_length(self.handle)

    def stream(self, prompt, cancel=None, **sampling):
        """Yields tokens as they come. A loop that is left early leaves what has come in the session."""
        data = prompt.encode()
        with _Sampling(cancel, sampling) as how, _Stream(self.handle, data, len(data), how.handle) as stream:
            yield from stream.tokens()

    def generate(self, prompt, cancel=None, **sampling):
        data = prompt.encode()
        with _Sampling(cancel, sampling) as how, _Stream(self.handle, data, len(data), how.handle) as stream:
            for _ in stream.tokens():
                pass
            return stream.result()


class _Stream(Handle):
    _free = _stream_close

    def __init__(self, *arguments):
        super().__init__(_stream_open, *arguments)

    def tokens(self):
        piece, error = c_void_p(), _Error()
        where, failed, handle = byref(piece), byref(error), self.handle
        while True:
            if _stream_next(handle, where, failed):
                raise Error(error.code, error.message.decode(), self.result())
            if not piece.value:
                return
            _, token, text, length, logprob, done, reason, _ = _TOKEN.unpack(string_at(piece.value, _TOKEN.size))
            yield Token(token, string_at(text, length).decode() if length else "", logprob, done != 0, FINISH[reason])

    def result(self):
        out = c_void_p()
        _stream_result(self.handle, byref(out))
        return _taken(out)
