# SPDX-License-Identifier: Apache-2.0
"""libgenerate from Python's ctypes, with nothing but the C header: enough of it to load a model, stream, cancel and run
batches, and the pattern for the rest. The library is found by GENERATE_LIBRARY or as libgenerate.so.0.

    with Model("model.gguf") as model, Generator(model) as generator, Session(generator) as session:
        for token in session.stream("Once upon a time", temperature=0.8, max_new_tokens=50):
            print(token.text, end="", flush=True)
"""
import ctypes
import json
import os
import struct
import threading
from ctypes import POINTER, byref, c_char_p, c_float, c_int32, c_int64, c_size_t, c_uint32, c_void_p, string_at
from typing import NamedTuple

_lib = ctypes.CDLL(os.environ.get("GENERATE_LIBRARY", "libgenerate.so.0"))


class _Error(ctypes.Structure):
    _fields_ = [("code", c_int32), ("message", ctypes.c_char * 1020)]


# struct gen_token: struct_size, id, text, text_len, logprob, done, finish_reason, index, top, top_count, piece_count, pieces. Taken apart at once,
# since this is done for each token and the fields of a ctypes.Structure are slow.
_TOKEN = struct.Struct("@IiPNfiiiPiiP")
_PIECE = struct.Struct("@iiPN")
_TOP = struct.Struct("@if")

FINISH = ("none", "stop_token", "stop_string", "length", "context_full", "grammar_complete", "grammar_dead_end",
          "cancelled", "callback", "error")


USAGE = ("prompt", "prompt_cached", "prompt_evaluated", "completion", "dropped", "drafted", "accepted", "grammar_complete")


class Error(Exception):
    """A call failed: `code` is its status, `result` what a generation had made until then, or None."""

    def __init__(self, code, message, result=None):
        super().__init__(message)
        self.code, self.result = code, result


# What a Piece is: text of the answer, of the reasoning, a call's name, more of its arguments (JSON), its end, or that it is none.
PIECES = ("text", "reasoning", "call_name", "arguments", "call_end", "call_broken")


class Piece(NamedTuple):
    kind: str
    call: int  # number of the call in the answer, from 0
    text: str


class Token(NamedTuple):
    id: int
    text: str
    logprob: float
    done: bool
    finish_reason: str
    top: tuple = ()  # the likeliest tokens here as (id, log-probability), best first, as many as logprobs=… asks for
    pieces: tuple = ()  # of a chat session: what is text, reasoning or part of a call


class Result(NamedTuple):
    text: str
    tokens: list
    finish_reason: str
    error: Error | None
    usage: dict  # tokens by USAGE
    drafts: list = []  # of each pass that had some: index, drafter, tokens, parents, grades, accepted
    answer: dict = {}  # what a chat session read: text, reasoning, calls (id, name, arguments), faults


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
_model_options_new = _fallible("gen_model_options_new", _out)
_model_options_set = _fallible("gen_model_options_set", c_void_p, c_char_p, c_char_p)
_model_options_free = _function("gen_model_options_free", c_void_p, result=None)
_model_custom = _fallible("gen_model_new_custom", c_void_p, c_void_p, c_void_p, _out)
_config_new = _fallible("gen_model_config_new", _out)
_config_set = _fallible("gen_model_config_set", c_void_p, c_char_p, c_char_p)
_config_free = _function("gen_model_config_free", c_void_p, result=None)
_model_tokenizer = _function("gen_model_tokenizer", c_void_p, result=c_void_p)
_adapter_load = _fallible("gen_adapter_load", c_void_p, c_char_p, c_char_p, c_float)
_adapter_unload = _fallible("gen_adapter_unload", c_void_p, c_char_p)
_adapter_set_budget = _fallible("gen_adapter_set_budget", c_void_p, c_int32)
_adapter_count = _function("gen_adapter_count", c_void_p, result=c_size_t)
_adapter_name = _fallible("gen_adapter_name", c_void_p, c_size_t, c_char_p, c_size_t, POINTER(c_size_t))
_options_new = _fallible("gen_options_new", _out)
_options_set = _fallible("gen_options_set", c_void_p, c_char_p, c_char_p)
_options_set_draft = _fallible("gen_options_set_speculative_draft", c_void_p, c_void_p, c_int32)
_options_set_eagle = _fallible("gen_options_set_eagle", c_void_p, c_char_p)
_options_free = _function("gen_options_free", c_void_p, result=None)
_eagle_enabled = _function("gen_generator_eagle_enabled", c_void_p)
_eagle_path = _fallible("gen_generator_eagle_path", c_void_p, c_char_p, c_size_t, POINTER(c_size_t))
_create = _fallible("gen_create", c_void_p, c_void_p, _out)
_session_new = _fallible("gen_session_new", c_void_p, _out)
_session_length = _function("gen_session_length", c_void_p)
_sampling_new = _fallible("gen_sampling_new", _out)
_sampling_set = _fallible("gen_sampling_set", c_void_p, c_char_p, c_char_p)
_sampling_add_adapter = _fallible("gen_sampling_add_adapter", c_void_p, c_char_p, c_float)
_sampling_set_cancel = _fallible("gen_sampling_set_cancel", c_void_p, c_void_p)
_sampling_set_grammar = _fallible("gen_sampling_set_grammar", c_void_p, c_void_p)
_sampling_set_matcher = _fallible("gen_sampling_set_grammar_matcher", c_void_p, c_void_p)
_sampling_free = _function("gen_sampling_free", c_void_p, result=None)
_grammar_options_new = _fallible("gen_grammar_options_new", _out)
_grammar_options_set = _fallible("gen_grammar_options_set", c_void_p, c_char_p, c_char_p)
_grammar_options_add_schema = _fallible(
    "gen_grammar_options_add_schema", c_void_p, c_char_p, c_char_p, c_size_t)
_grammar_options_free = _function("gen_grammar_options_free", c_void_p, result=None)
_grammar_from_gbnf = _fallible("gen_grammar_from_gbnf", *_text, c_void_p, _out)
_grammar_from_lark = _fallible("gen_grammar_from_lark", *_text, c_void_p, _out)
_grammar_from_regex = _fallible("gen_grammar_from_regex", *_text, c_void_p, _out)
_grammar_from_tags = _fallible("gen_grammar_from_tags", *_text, c_void_p, _out)
_grammar_from_json_schema = _fallible("gen_grammar_from_json_schema", *_text, c_void_p, _out)
_grammar_any_json = _fallible("gen_grammar_any_json", c_void_p, _out)
_matcher_new = _fallible("gen_grammar_matcher_new", c_void_p, c_void_p, _out)
_matcher_accept_token = _fallible("gen_grammar_matcher_accept_token", c_void_p, c_int32)
_matcher_accept_bytes = _fallible("gen_grammar_matcher_accept_bytes", c_void_p, *_text)
_matcher_mask = _fallible("gen_grammar_matcher_mask", c_void_p, POINTER(c_uint32), c_size_t)
_matcher_valid_bytes = _fallible("gen_grammar_matcher_valid_bytes", c_void_p, POINTER(c_uint32))
_matcher_rollback = _fallible("gen_grammar_matcher_rollback", c_void_p, c_size_t)
_matcher_fork = _fallible("gen_grammar_matcher_fork", c_void_p, _out)
_matcher_complete = _function("gen_grammar_matcher_complete", c_void_p)
_matcher_reset = _fallible("gen_grammar_matcher_reset", c_void_p)
_matcher_forced = _fallible("gen_grammar_matcher_forced", c_void_p, POINTER(c_int32), c_size_t, POINTER(c_size_t))
_matcher_min_tokens = _fallible("gen_grammar_matcher_min_tokens", c_void_p, POINTER(c_int64))
_chat_new = _fallible("gen_chat_new", _out)
_chat_add = _fallible("gen_chat_add", c_void_p, c_char_p, *_text)
_chat_set_name = _fallible("gen_chat_set_name", c_void_p, c_char_p)
_chat_set_reasoning = _fallible("gen_chat_set_reasoning", c_void_p, *_text)
_chat_add_tool_call = _fallible("gen_chat_add_tool_call", c_void_p, c_char_p, c_char_p, *_text)
_chat_add_tool_result = _fallible("gen_chat_add_tool_result", c_void_p, c_char_p, c_char_p, *_text)
_chat_add_tool = _fallible("gen_chat_add_tool", c_void_p, *_text)
_chat_set_variable = _fallible("gen_chat_set_variable", c_void_p, c_char_p, *_text)
_chat_set_template = _fallible("gen_chat_set_template", c_void_p, *_text)
_chat_set_time = _fallible("gen_chat_set_time", c_void_p, c_char_p)
_chat_set = _fallible("gen_chat_set", c_void_p, c_char_p, c_char_p)
_chat_describe_options = _fallible("gen_chat_describe_options", c_void_p, c_char_p, c_size_t, POINTER(c_size_t))
_chat_truncate = _fallible("gen_chat_truncate", c_void_p, c_int32)
_chat_describe = _fallible("gen_chat_describe", c_void_p, c_char_p, c_size_t, POINTER(c_size_t))
_chat_encode = _fallible("gen_chat_encode", c_void_p, c_void_p, c_int32, POINTER(c_int32), c_size_t, POINTER(c_size_t))
_vocab_size = _function("gen_tokenizer_vocab_size", c_void_p)
_cancel_new = _fallible("gen_cancel_new", _out)
_cancel_fire = _function("gen_cancel_fire", c_void_p, result=None)
_stream_open = _fallible("gen_stream_open", c_void_p, *_text, c_void_p, _out)
_chat_session_new = _fallible("gen_chat_session_new", c_void_p, c_void_p, _out)
_chat_session_session = _function("gen_chat_session_session", c_void_p, result=c_void_p)
_chat_session_open_stream = _fallible("gen_chat_session_open_stream", c_void_p, *_text, c_void_p, _out)
_chat_session_end_reasoning = _fallible("gen_chat_session_end_reasoning", c_void_p)
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
_result_drafts = _fallible("gen_result_drafts", c_void_p, c_char_p, c_size_t, POINTER(c_size_t))
_result_answer = _fallible("gen_result_answer", c_void_p, c_char_p, c_size_t, POINTER(c_size_t))
_result_usage = _fallible("gen_result_usage", c_void_p, c_char_p, POINTER(c_int64))
_result_reason = _function("gen_result_finish_reason", c_void_p)
_result_error = _function("gen_result_error", c_void_p, result=POINTER(_Error))
_result_free = _function("gen_result_free", c_void_p, result=None)


def _ids(fill):
    """Token ids of a call (buffer, capacity, n), which tells their number without a buffer."""
    n = c_size_t()
    fill(None, 0, byref(n))
    ids = (c_int32 * max(n.value, 1))()
    fill(ids, len(ids), byref(n))
    return ids[:n.value]


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


def _text(value):
    """A setting as the library reads it: True and False are 1 and 0, and a schema is JSON."""
    if isinstance(value, dict):
        return json.dumps(value)
    return str(int(value) if isinstance(value, bool) else value)


class Model(Handle):
    _free = _function("gen_model_free", c_void_p, result=None)

    def __init__(self, path, **options):
        """Options are those of gen_model_options_describe: Model("…", backend="cuda", gpu_layers="auto")."""
        settings = c_void_p()
        _model_options_new(byref(settings))
        try:
            for key, value in options.items():
                _model_options_set(settings, key.encode(), _text(value).encode())
            super().__init__(_model_load, os.fsencode(path), settings)
        finally:
            _model_options_free(settings)

    @classmethod
    def custom(cls, forward, tokenizer_of, **config):
        """Over a gen_forward in C, by its address; the tokenizer is another model's."""
        model, sizes = cls.__new__(cls), c_void_p()
        _config_new(byref(sizes))
        try:
            for key, value in config.items():
                _config_set(sizes, key.encode(), _text(value).encode())
            Handle.__init__(model, _model_custom, forward, sizes, _model_tokenizer(tokenizer_of.handle))
        finally:
            _config_free(sizes)
        return model

    def load_adapter(self, path, name, scale=1.0):
        """A low-rank adapter (LoRA), a GGUF file, in the place of one of the same name; `scale` multiplies that of calls, which
        use it by adapter="name", or several by adapters={"name": 1, "other": 0.5}."""
        _adapter_load(self.handle, os.fsencode(path), _name(name), scale)

    def unload_adapter(self, name):
        """Calls that use it go on with it."""
        _adapter_unload(self.handle, _name(name))

    def set_adapter_budget(self, max_memory_mb):
        """Limits their memory to MiB, 0 for no limit: the least recently used names are forgotten."""
        _adapter_set_budget(self.handle, max_memory_mb)

    def adapters(self):
        """Names of the loaded ones, oldest first."""
        names, name, n = [], ctypes.create_string_buffer(256), c_size_t()
        for index in range(_adapter_count(self.handle)):
            _adapter_name(self.handle, index, name, len(name), byref(n))
            names.append(name.value.decode())
        return names


class Cancel(Handle):
    """A flag that ends the calls that have it; fire() it from any thread."""

    _free = _function("gen_cancel_free", c_void_p, result=None)

    def __init__(self):
        super().__init__(_cancel_new)

    def fire(self):
        _cancel_fire(self.handle)


class Grammar(Handle):
    """Which texts are allowed: generate("…", grammar=Grammar.regex("[0-9]+")). Options are those of
    gen_grammar_options_describe. What is wrong in one raises an Error that names line and column."""

    _free = _function("gen_grammar_free", c_void_p, result=None)

    def __init__(self, make, *text, documents=None, **options):
        """`documents`: schemas by URI, that references of json_schema can lead to."""
        settings = c_void_p()
        _grammar_options_new(byref(settings))
        try:
            for uri, schema in (documents or {}).items():
                data = (schema if isinstance(schema, str) else json.dumps(schema)).encode()
                _grammar_options_add_schema(settings, uri.encode(), data, len(data))
            for key, value in options.items():
                _grammar_options_set(settings, key.encode(), _text(value).encode())
            super().__init__(make, *text, settings)
        finally:
            _grammar_options_free(settings)

    @classmethod
    def gbnf(cls, text, **options):
        data = text.encode()
        return cls(_grammar_from_gbnf, data, len(data), **options)

    @classmethod
    def lark(cls, text, **options):
        """A Lark file in llguidance's dialect."""
        data = text.encode()
        return cls(_grammar_from_lark, data, len(data), **options)

    @classmethod
    def regex(cls, pattern, **options):
        data = pattern.encode()
        return cls(_grammar_from_regex, data, len(data), **options)

    @classmethod
    def tags(cls, tags, **options):
        """Free text with constrained parts, from a dict as gen_grammar_from_tags of grammar.h has it."""
        data = json.dumps(tags).encode()
        return cls(_grammar_from_tags, data, len(data), **options)

    @classmethod
    def json_schema(cls, schema, **options):
        """`schema`: its text, or what json.dumps makes it of."""
        data = (schema if isinstance(schema, str) else json.dumps(schema)).encode()
        return cls(_grammar_from_json_schema, data, len(data), **options)

    @classmethod
    def any_json(cls, **options):
        return cls(_grammar_any_json, **options)


def schema_of(kind):
    """The JSON Schema of the texts whose json.loads fills `kind`: a dataclass, a TypedDict, an enum of texts or numbers, a
    class with annotations, or anything that typing knows (list[int], str | None, Literal, dict[str, float], tuple …). A
    datetime, date, time or UUID is its text, which fromisoformat() and UUID() take. A model of pydantic gives its own. Whole
    numbers have no fraction and no exponent, as int() wants them."""
    own = getattr(kind, "model_json_schema", None)
    if own is not None:
        return own()
    known = {}  # by class: its name and schema
    return {"$schema": "http://json-schema.org/draft-04/schema#", "allOf": [_schema(kind, known)],
            "definitions": dict(known.values())}


def _schema(kind, known):
    import datetime
    import enum
    import types
    import typing
    import uuid

    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    plain = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", None: "null"}
    texts = {datetime.datetime: "date-time", datetime.date: "date", datetime.time: "time", uuid.UUID: "uuid"}
    try:
        if kind in plain:
            return {"type": plain[kind]}
        if kind in texts:
            return {"type": "string", "format": texts[kind]}
    except TypeError:
        pass  # it has no hash
    if kind is typing.Any or kind is object:
        return {}
    if origin is typing.Annotated:
        return _schema(arguments[0], known)
    if origin in (getattr(typing, "Required", None), getattr(typing, "NotRequired", None)) and origin is not None:
        return _schema(arguments[0], known)
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is typing.Union or origin is getattr(types, "UnionType", typing.Union):
        return {"anyOf": [_schema(one, known) for one in arguments]}
    if origin is tuple or kind is tuple:
        if not arguments or arguments[-1] is Ellipsis:
            return {"type": "array", "items": _schema(arguments[0], known) if arguments else {}}
        return {"type": "array", "items": [_schema(one, known) for one in arguments], "additionalItems": False,
                "minItems": len(arguments)}
    if kind in (list, dict) or origin in (list, dict):
        if (origin or kind) is list:
            return {"type": "array", "items": _schema(arguments[0], known) if arguments else {}}
        if arguments and arguments[0] is not str:
            raise TypeError(f"{kind}: names of JSON's objects are texts")
        return {"type": "object", "additionalProperties": _schema(arguments[1], known) if arguments else {}}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [one.value for one in kind]}
    if not isinstance(kind, type) or not typing.get_type_hints(kind):
        raise TypeError(f"{kind} has no form in JSON")
    if kind not in known:
        name = f"t{len(known)}"
        known[kind] = name, None  # it may refer to itself
        hints = typing.get_type_hints(kind, include_extras=True)
        fields = getattr(kind, "__dataclass_fields__", None)
        if fields is not None:
            hints = {field: hints[field] for field, how in fields.items() if how.init}
            required = [field for field in hints if not _has_default(fields[field])]
        elif hasattr(kind, "__required_keys__"):
            required = [field for field in hints if field in kind.__required_keys__]
        else:
            required = [field for field in hints if not hasattr(kind, field)]
        properties = {}
        for field, hint in hints.items():
            try:
                properties[field] = _schema(hint, known)
            except TypeError as wrong:
                raise TypeError(f"{kind.__name__}.{field}: {wrong}") from None
        made = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            made["required"] = required
        known[kind] = name, made
    return {"$ref": f"#/definitions/{known[kind][0]}"}


def _has_default(field):
    import dataclasses

    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


class Matcher(Handle):
    """A text on its way through a grammar, over the tokens of a model. Masks are numbers: `mask >> token & 1`."""

    _free = _function("gen_grammar_matcher_free", c_void_p, result=None)

    def __init__(self, grammar, model):
        tokenizer = _model_tokenizer(model.handle)
        super().__init__(_matcher_new, grammar.handle, tokenizer)
        self._words = (_vocab_size(tokenizer) + 31) // 32

    def accept_token(self, token):
        _matcher_accept_token(self.handle, token)

    def accept(self, text):
        data = text.encode() if isinstance(text, str) else text
        _matcher_accept_bytes(self.handle, data, len(data))

    def mask(self):
        bits = (c_uint32 * self._words)()
        _matcher_mask(self.handle, bits, self._words)
        return int.from_bytes(bits, "little")

    def valid_bytes(self):
        bits = (c_uint32 * 8)()
        _matcher_valid_bytes(self.handle, bits)
        return int.from_bytes(bits, "little")

    def rollback(self, n):
        _matcher_rollback(self.handle, n)

    def fork(self):
        fork = Matcher.__new__(Matcher)
        Handle.__init__(fork, _matcher_fork, self.handle)
        fork._words = self._words
        return fork

    def complete(self):
        return _matcher_complete(self.handle) > 0

    def reset(self):
        _matcher_reset(self.handle)

    def forced(self):
        """Tokens from here on that are each the only one that may come; of a grammar with forced_tokens="tokenizer", those that
        the tokenizer makes of the bytes that must come."""
        return _ids(lambda *buffer: _matcher_forced(self.handle, *buffer))

    def min_tokens(self):
        """Fewest tokens until the text may end; -1 if none are known to end it."""
        fewest = c_int64()
        _matcher_min_tokens(self.handle, byref(fewest))
        return fewest.value


class _Sampling(Handle):
    _free = _sampling_free

    def __init__(self, cancel, settings):
        super().__init__(_sampling_new)
        adapters, grammar = settings.pop("adapters", None), settings.pop("grammar", None)
        if grammar is not None and grammar.handle is None:  # for the library none at all
            raise Error(-15, "the grammar is closed")
        if isinstance(grammar, Matcher):
            _sampling_set_matcher(self.handle, grammar.handle)
        elif grammar is not None:
            _sampling_set_grammar(self.handle, grammar.handle)
        for key, values in settings.items():
            for value in values if isinstance(values, (list, tuple)) else [values]:
                _sampling_set(self.handle, key.encode(), _text(value).encode())
        for name, scale in (adapters or {}).items():
            _sampling_add_adapter(self.handle, _name(name), scale)
        if cancel is not None:
            _sampling_set_cancel(self.handle, cancel.handle)


def _json(call, handle):
    n = c_size_t()
    call(handle, None, 0, byref(n))
    text = ctypes.create_string_buffer(n.value + 1)
    call(handle, text, len(text), byref(n))
    return json.loads(text.value)


def _drafts(handle):
    try:
        return _json(_result_drafts, handle)
    except Error:  # a pass had no memory for its own
        return []


def _taken(handle):
    """A Result out of a gen_result, which is freed."""
    n = c_size_t()
    text = string_at(_result_text(handle, byref(n)), n.value).decode()
    tokens = _result_tokens(handle, byref(n))[:n.value]
    failure = _result_error(handle)
    error = Error(failure.contents.code, failure.contents.message.decode()) if failure else None
    usage, value = {}, c_int64()
    for key in USAGE:
        _result_usage(handle, key.encode(), byref(value))
        usage[key] = value.value
    result = Result(text, tokens, FINISH[_result_reason(handle)], error, usage, _drafts(handle) if usage["drafted"] else [],
                    _json(_result_answer, handle))
    _result_free(handle)
    return result


class Generator(Handle):
    """Sessions of a model come from here. Options are those of gen_options_describe: kv_dtype="fp16", …; `draft`, a smaller
    Model, guesses up to `draft_length` tokens ahead. That, and prompt_lookup="3,8", suffix_lookup="8" or `eagle`, the
    path of an EAGLE head (draft_heads="auto,8" for a length other than 4), change no text; `drafted` and `accepted` of a
    Result's usage tell what was guessed and what of it was right."""

    _free = _function("gen_free", c_void_p, result=None)

    def __init__(self, model, draft=None, draft_length=4, eagle=None, **options):
        settings = c_void_p()
        _options_new(byref(settings))
        try:
            for key, value in options.items():
                _options_set(settings, key.encode(), _text(value).encode())
            if draft is not None:
                if draft.handle is None:  # for the library none at all
                    raise Error(-15, "the draft model is closed")
                _options_set_draft(settings, draft.handle, draft_length)
            if eagle is not None:
                _options_set_eagle(settings, _name(str(eagle)))
            super().__init__(_create, model.handle, settings)
        finally:
            _options_free(settings)

    def eagle_enabled(self):
        """Whether the head of `eagle` drafts: its file was there."""
        return _eagle_enabled(self.handle) != 0

    def eagle_path(self):
        """The path that `eagle` was; "" if there was none."""
        n = c_size_t()
        _eagle_path(self.handle, None, 0, byref(n))
        path = ctypes.create_string_buffer(n.value + 1)
        _eagle_path(self.handle, path, len(path), byref(n))
        return path.value.decode()

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
        """Yields tokens as they come. A loop that is left early leaves what has come in the session. Keywords are those of
        gen_sampling_describe (stop_string=["END", "\\n\\n"]), `grammar`, a Grammar or a Matcher to go on from, and
        `adapters`, names of the model's adapters with scales."""
        data = prompt.encode()
        with _Sampling(cancel, sampling) as how, _Stream(self.handle, data, len(data), how.handle) as stream:
            yield from stream.tokens()

    def generate(self, prompt, cancel=None, **sampling):
        data = prompt.encode()
        with _Sampling(cancel, sampling) as how, _Stream(self.handle, data, len(data), how.handle) as stream:
            for _ in stream.tokens():
                pass
            return stream.result()


class ChatSession(Handle):
    """A conversation, a Chat, and the session that holds it."""

    _free = _function("gen_chat_session_free", c_void_p, result=None)

    def __init__(self, generator, chat):
        super().__init__(_chat_session_new, generator.handle, chat.handle)

    def __len__(self):
        return _session_length(_chat_session_session(self.handle))

    def end_reasoning(self):
        """Makes the model end its reasoning and answer, from any thread; needs Chat.set(reasoning_control=True)."""
        _chat_session_end_reasoning(self.handle)

    def send(self, text=None, cancel=None, **sampling):
        """As stream(), but returns the result; its `answer` has the text, the reasoning and the calls."""
        message = (None, 0) if text is None else _data(text)
        with _Sampling(cancel, sampling) as how, \
                _Stream(self.handle, *message, how.handle, opening=_chat_session_open_stream) as stream:
            for _ in stream.tokens():
                pass
            return stream.result()

    def stream(self, text=None, cancel=None, **sampling):
        """Adds a message of the user, and yields tokens of the answer, which is added when the loop ends, or is left. Without a
        message it answers what the conversation ends with, or goes on with an answer that was cut. Only what is new is run."""
        message = (None, 0) if text is None else _data(text)
        with _Sampling(cancel, sampling) as how, \
                _Stream(self.handle, *message, how.handle, opening=_chat_session_open_stream) as stream:
            yield from stream.tokens()


class Chat(Handle):
    """Messages, tools and variables for the chat template of a model. A ChatSession generates what comes next."""

    _free = _function("gen_chat_free", c_void_p, result=None)

    def __init__(self, template="", time="", tools=(), **variables):
        """`template`: another than the model's, or the name of a built-in form; `time`: of templates, ISO 8601; `tools`: what
        the model may call, as dicts in the form of OpenAI's API; variables of the template by name."""
        super().__init__(_chat_new)
        if template:
            _chat_set_template(self.handle, *_data(template))
        _chat_set_time(self.handle, _name(time))
        for tool in tools:
            _chat_add_tool(self.handle, *_data(json.dumps(tool)))
        for name, value in variables.items():
            _chat_set_variable(self.handle, _name(name), *_data(json.dumps(value)))

    def add(self, role, text, name="", reasoning=""):
        _chat_add(self.handle, _name(role), *_data(text))
        if name:
            _chat_set_name(self.handle, _name(name))
        if reasoning:
            _chat_set_reasoning(self.handle, *_data(reasoning))
        return self

    def add_tool_call(self, name, arguments, id=""):
        """A call by the assistant, to its last message; arguments are a dict."""
        _chat_add_tool_call(self.handle, _name(id), _name(name), *_data(json.dumps(arguments)))
        return self

    def add_tool_result(self, text, name="", id=""):
        _chat_add_tool_result(self.handle, _name(id), _name(name), *_data(text))
        return self

    def truncate(self, n):
        """Keeps the first n messages; if negative, takes the last -n back."""
        _chat_truncate(self.handle, n)
        return self

    def set(self, **options):
        """How a ChatSession deals with answers: tool_choice="required", reasoning_budget=200 …; see describe_options()."""
        for key, value in options.items():
            _chat_set(self.handle, _name(key), _name(_text(value)))
        return self

    def describe_options(self):
        return _json(_chat_describe_options, self.handle)

    def describe(self):
        """Messages, tools and variables."""
        return _json(_chat_describe, self.handle)

    def encode(self, model, reply=True):
        """The conversation as tokens; with reply it ends with the opening of an assistant's turn."""
        return _ids(lambda *buffer: _chat_encode(model.handle, self.handle, int(reply), *buffer))


def _data(text):
    data = text.encode()
    return data, len(data)


def _name(text):
    if "\0" in text:
        raise ValueError("a name must not hold a NUL")
    return text.encode()


class _Stream(Handle):
    _free = _stream_close

    def __init__(self, *arguments, opening=_stream_open):
        super().__init__(opening, *arguments)

    def tokens(self):
        piece, error = c_void_p(), _Error()
        where, failed, handle = byref(piece), byref(error), self.handle
        while True:
            if _stream_next(handle, where, failed):
                raise Error(error.code, error.message.decode(), self.result())
            if not piece.value:
                return
            _, token, text, length, logprob, done, reason, _, top, count, parts, pieces = _TOKEN.unpack(
                string_at(piece.value, _TOKEN.size))
            yield Token(token, string_at(text, length).decode() if length else "", logprob, done != 0, FINISH[reason],
                        tuple(_TOP.iter_unpack(string_at(top, count * _TOP.size))) if count else (),
                        tuple(Piece(PIECES[kind], call, string_at(at, n).decode() if n else "") for kind, call, at, n in
                              _PIECE.iter_unpack(string_at(pieces, parts * _PIECE.size))) if parts else ())

    def result(self):
        out = c_void_p()
        _stream_result(self.handle, byref(out))
        return _taken(out)
