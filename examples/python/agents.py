# SPDX-License-Identifier: Apache-2.0
"""Tools and agents of libgenerate from Python: a tool is a function with annotations, from which its schema is made.

    tools = Tools()

    @tools.add
    def weather(city: str, days: int = 1) -> dict:
        "The weather of a city."
        return {"sky": "clear", "celsius": 18}

    with Model("model.gguf") as model, Generator(model) as generator, Agent(tools, generator) as agent:
        print(agent.run("Do I need a coat in Oslo?").text)
"""
import ctypes
import dataclasses
import inspect
import json
import threading
import typing
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p, string_at
from typing import NamedTuple

import libgenerate
from libgenerate import Chat, Error, Handle, _data, _fallible, _function, _json, _name, _out, _Sampling, _taken, schema_of

EVENTS = libgenerate.PIECES + ("step_began", "tool_began", "tool_ended", "step_ended")


class _Call(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("id", c_char_p), ("name", c_char_p), ("arguments", c_void_p), ("length", c_size_t)]


class _Event(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_int32), ("step", c_int32), ("call", c_int32), ("name", c_char_p),
                ("id", c_char_p), ("text", c_void_p), ("len", c_size_t), ("is_error", c_int32)]


_TOOL = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(_Call), c_void_p)
_EVENT = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(_Event))
_NO_EVENT = ctypes.cast(None, _EVENT)

_reply_write = _fallible("gen_tool_reply_write", c_void_p, c_char_p, c_size_t)
_reply_stopped = _function("gen_tool_reply_stopped", c_void_p)
_buffer = (c_char_p, c_size_t, POINTER(c_size_t))
_registry_new = _fallible("gen_tool_registry_new", _out)
_registry_add = _fallible("gen_tool_registry_add", c_void_p, c_char_p, c_char_p, c_char_p, _TOOL, c_void_p)
_registry_remove = _fallible("gen_tool_registry_remove", c_void_p, c_char_p)
_registry_count = _function("gen_tool_registry_count", c_void_p, result=c_size_t)
_registry_describe = _fallible("gen_tool_registry_describe", c_void_p, *_buffer)
_registry_call = _fallible("gen_tool_registry_call", c_void_p, c_char_p, c_char_p, c_char_p, c_size_t, *_buffer)
_calls_parse = _fallible("gen_tool_calls_parse", c_char_p, c_char_p, c_size_t, *_buffer)
_options_new = _fallible("gen_agent_options_new", _out)
_options_set = _fallible("gen_agent_options_set", c_void_p, c_char_p, c_char_p)
_options_set_sampling = _fallible("gen_agent_options_set_sampling", c_void_p, c_void_p)
_options_free = _function("gen_agent_options_free", c_void_p, result=None)
_agent_new = _fallible("gen_agent_new", c_void_p, c_void_p, c_void_p, _out)
_agent_run = _fallible("gen_agent_run", c_void_p, c_char_p, c_size_t, _EVENT, c_void_p, _out)
_agent_step = _fallible("gen_agent_step", c_void_p, c_char_p, c_size_t, _EVENT, c_void_p, POINTER(c_int32))
_agent_describe = _fallible("gen_agent_describe", c_void_p, *_buffer)
_agent_chat = _function("gen_agent_chat", c_void_p, result=c_void_p)
_agent_cancel = _function("gen_agent_cancel", c_void_p, result=None)
_agent_reset = _fallible("gen_agent_reset", c_void_p)
_supervisor_new = _fallible("gen_supervisor_new", _out)
_supervisor_add = _fallible("gen_supervisor_add_agent", c_void_p, c_char_p, c_char_p, c_void_p)
_supervisor_budget = _fallible("gen_supervisor_set_budget", c_void_p, c_int64)
_supervisor_run = _fallible("gen_supervisor_run", c_void_p, c_char_p, c_size_t, _EVENT, c_void_p, _out)
_supervisor_describe = _fallible("gen_supervisor_describe", c_void_p, *_buffer)

_running = threading.local()


class Event(NamedTuple):
    kind: str  # of EVENTS
    step: int
    call: int  # -1 where the event is not about one
    name: str
    id: str
    text: str
    is_error: bool


def stopped():
    """In a tool: whether nobody waits for its output any more."""
    return bool(_reply_stopped(_running.reply))


def tool_schema(function):
    """The JSON Schema of a function's arguments, from its annotations; those with a default may be left out."""
    hints = typing.get_type_hints(function)
    fields = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints.get(name, typing.Any)
        required = parameter.default is inspect.Parameter.empty
        fields.append((name, kind) if required else (name, kind, dataclasses.field(default_factory=lambda: None)))
    if not fields:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    schema = schema_of(dataclasses.make_dataclass("arguments", fields))
    # Templates show the properties of the schema itself, not those behind a $ref.
    others = schema["definitions"]
    arguments = others.pop(schema["allOf"][0]["$ref"].rpartition("/")[2])
    if others:
        arguments["definitions"] = others
    return {"$schema": schema["$schema"], **arguments} if "additionalItems" in json.dumps(arguments) else arguments


class Tools(Handle):
    """Functions that a model may call. Any number of threads and agents may use one."""

    _free = _function("gen_tool_registry_free", c_void_p, result=None)

    def __init__(self):
        super().__init__(_registry_new)
        self._kept = []  # what C calls

    def __len__(self):
        return _registry_count(self.handle)

    def add(self, function, name="", description="", schema=None):
        """Adds a function with its name, the first line of its docstring and the schema of its annotations. It returns a text,
        or anything that JSON can hold; an exception is told to the model."""

        def run(_, call, reply):
            _running.reply = reply
            try:
                output = function(**json.loads(string_at(call.contents.arguments, call.contents.length)))
                failed = 0
            except Exception as e:
                output, failed = str(e) or repr(e), 1
            try:
                _reply_write(reply, *_data(output if isinstance(output, str) else json.dumps(output)))
            except Exception:
                failed = 1
            return failed

        wrapped = _TOOL(run)
        schema = tool_schema(function) if schema is None else schema
        description = description or (inspect.getdoc(function) or "").partition("\n")[0]
        _registry_add(self.handle, _name(name or function.__name__), _name(description), _name(json.dumps(schema)), wrapped, None)
        self._kept.append(wrapped)
        return function

    def remove(self, name):
        _registry_remove(self.handle, _name(name))

    def describe(self):
        return _json(_registry_describe, self.handle)

    def call(self, name, id="", **arguments):
        """The result of a call, as a dict: tool_call_id, output, is_error."""
        text, n = ctypes.create_string_buffer(1 << 20), c_size_t()
        _registry_call(self.handle, _name(id), _name(name), *_data(json.dumps(arguments)), text, len(text), byref(n))
        return json.loads(text.raw[:n.value])


def parse_calls(text, format="json"):
    """The calls in a text that a model wrote: a dict of text, reasoning, calls and faults."""
    data = _data(text)
    return _json(lambda handle, *buffer: _calls_parse(handle, *data, *buffer), _name(format))


class _Options(Handle):
    _free = _options_free

    def __init__(self, sampling, settings):
        super().__init__(_options_new)
        for key, value in settings.items():
            _options_set(self.handle, _name(key), _name(libgenerate._text(value)))
        if sampling:
            with _Sampling(None, dict(sampling)) as how:
                _options_set_sampling(self.handle, how.handle)


class _AgentChat(Chat):
    """An agent's conversation: it is freed with the agent."""

    def __init__(self, agent):
        self._lock, self.agent, self.handle = threading.Lock(), agent, _agent_chat(agent.handle)


def _run(call, events):
    """Runs call(callback, out); events(Event) may return False to end it, or raise."""
    raised = []

    def tell(_, event):
        e = event.contents
        try:
            text = string_at(e.text, e.len).decode()
            on = events(Event(EVENTS[e.kind], e.step, e.call, e.name.decode(), e.id.decode(), text, bool(e.is_error)))
            return int(on is False)
        except BaseException as error:
            raised.append(error)
            return 1

    out, failure = c_void_p(), None
    try:
        call(_EVENT(tell) if events else _NO_EVENT, byref(out))
    except Error as error:
        failure = error
    result = _taken(out.value) if out.value else None
    if raised:
        raise raised[0]
    if failure:
        failure.result = result
        raise failure
    return result


class Agent(Handle):
    """A conversation in which a model calls tools until it has an answer. `sampling` is a dict of the options of calls, such as
    {"temperature": 0}, and the other options are those of agents in docs/options.md. Without a generator it is for step() with
    the outputs of a model of one's own."""

    _free = _function("gen_agent_free", c_void_p, result=None)

    def __init__(self, tools, generator=None, sampling=None, **options):
        self.tools = tools  # whose functions C calls
        with _Options(sampling, options) as how:
            super().__init__(_agent_new, generator.handle if generator else None, tools.handle, how.handle)
        self.chat = _AgentChat(self)

    def close(self):
        self.chat.handle = None
        super().close()

    def run(self, task=None, events=None):
        """Gives the agent a task, and returns the result of its last answer. Without one it goes on with the conversation."""
        text = (None, 0) if task is None else _data(task)
        return _run(lambda callback, out: _agent_run(self.handle, *text, callback, None, out), events)

    def step(self, output=None):
        """One step, with the output of a model of one's own or a generated one: whether it was the last."""
        finished = c_int32()
        text = (None, 0) if output is None else _data(output)
        _agent_step(self.handle, *text, _NO_EVENT, None, byref(finished))
        return bool(finished.value)

    def describe(self):
        """The last run: steps, finished, final_output, total_tokens, stop_reason."""
        return _json(_agent_describe, self.handle)

    def cancel(self):
        """From any thread: ends what runs, or the next run."""
        _agent_cancel(self.handle)

    def reset(self):
        _agent_reset(self.handle)


class Supervisor(Handle):
    """Several agents on one task: the first one gets it, and the others are tools to it. Each is given by its name, and may have
    a description for the first one: Supervisor(boss=agent, clerk=("Knows prices.", other))."""

    _free = _function("gen_supervisor_free", c_void_p, result=None)

    def __init__(self, budget=0, **agents):
        super().__init__(_supervisor_new)
        self.agents = agents
        _supervisor_budget(self.handle, budget)
        for name, agent in agents.items():
            description, agent = agent if isinstance(agent, tuple) else ("", agent)
            _supervisor_add(self.handle, _name(name), _name(description), agent.handle)

    def run(self, task, events=None):
        text = _data(task)
        return _run(lambda callback, out: _supervisor_run(self.handle, *text, callback, None, out), events)

    def describe(self):
        return _json(_supervisor_describe, self.handle)
