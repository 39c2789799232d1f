# SPDX-License-Identifier: Apache-2.0
"""Conversations with tools, as the chat template of the bundled models writes them.

conversation() returns [(role, content), ...] like talk.chat(); messages() the same conversation as a program would
give it to a chat template. tests/examples/tool_talk_test.py compares the two.
"""
import json

import talk
import tool_kinds

PROMPTS = talk.SYSTEMS + ["You are an assistant with tools.", "Use the tools when they help.", "You can use tools.", "Be brief.", "You help in a small shop.", "You help at home.", "Answer with the tools."]
SORRY_TOOL = ["I am sorry, I have no tool for that.", "I am sorry, none of my tools can do that."]
NOT_FOUND = ["not found", "error: not found", "unknown", "null", "nothing found", "no entry", '{"error": "not found"}', '{"error": "unknown key"}', "no result"]
BROKEN = ["error", "error: timeout", '{"error": "failed"}', "error: service unavailable", "failed", "error: division by zero", "error: bad request"]
CHATS = [talk.greet, talk.fact, talk.opinion, talk.recall, talk.sequence]


def described(tool):
    """A tool as programs describe it to a chat template."""
    parameters = {"type": "object", "properties": tool.properties, "required": list(tool.properties)}
    return {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": parameters}}


def shown(tool):
    """A tool as the system turn shows it: each parameter as its type, or as the list of its values."""
    properties = {key: kind.get("enum", kind["type"]) for key, kind in tool.properties.items()}
    return json.dumps({"name": tool.name, "description": tool.description, "parameters": properties})


def called(message):
    return "\n".join("<tool_call>\n" + json.dumps(call["function"]) + "\n</tool_call>" for call in message["tool_calls"])


def written(tools, messages):
    """[(role, content), ...] of a conversation, as chat_template.jinja writes it."""
    first, rest = ([messages[0]["content"]], messages[1:]) if messages[0]["role"] == "system" else ([], messages)
    turns = [("system", "\n\n".join(first + ["\n".join(["<tools>", *map(shown, tools), "</tools>"])]))]
    for before, message in zip([None, *rest], rest):
        if message["role"] == "tool":
            content = f"<tool_response>\n{message['content']}\n</tool_response>"
            if before["role"] == "tool":  # the results of several calls are one turn
                content = turns.pop()[1] + "\n" + content
            turns.append(("user", content))
        else:
            turns.append((message["role"], called(message) if "tool_calls" in message else message["content"]))
    return turns


def said(*texts):
    """Turns of the user and the assistant by turns."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


def exchange(calls, results):
    """The assistant's turn with calls [(tool, arguments), ...] and their results."""
    functions = [{"type": "function", "function": {"name": tool.name, "arguments": arguments}} for tool, arguments in calls]
    return [{"role": "assistant", "tool_calls": functions}, *({"role": "tool", "content": str(x)} for x in results)]


def answered(text, calls, results, answer):
    return [{"role": "user", "content": text}, *exchange(calls, results), {"role": "assistant", "content": answer}]


def offered(r):
    """One to four tools; the calculator and the lookup are in about half of the conversations each."""
    makers = [tool_kinds.calculator] * (r.random() < 0.55) + [tool_kinds.lookup] * (r.random() < 0.5)
    makers += r.sample(tool_kinds.OTHERS, r.choice([0, 0, 0, 1, 1, 2]) or (not makers))
    tools = {}
    for make in makers:
        one = make(r)
        tools.setdefault(one.name, one)  # two tools of one name would be a riddle
    tools = list(tools.values())
    r.shuffle(tools)
    return tools


def weighted(r, tools):
    """A tool to ask for: the calculator and the lookup more often."""
    return r.choices(tools, [2 if t.kind else 1 for t in tools])[0]


def failed(r, tool, q):
    if tool.kind == "calculator":
        result, answer = r.choice(BROKEN), "I am sorry, the calculator could not do that."
    elif q.about and r.random() < 0.7:
        result, answer = r.choice(NOT_FOUND), f"I am sorry, I could not find {q.about}."
    else:
        result, answer = r.choice(BROKEN), "I am sorry, that did not work."
    return answered(q.text, [(tool, q.arguments)], [result], answer)


def price_of_many(r, calculator, finder):
    """A price is looked up, then multiplied."""
    key, many = next(iter(finder.properties)), r.randint(2, 99)
    item, price = tool_kinds.thing(r), r.randint(2, 999)
    product = f"{many} * {price}"
    result = str(price) if r.random() < 0.5 else json.dumps({"price": price})
    multiplied = exchange([(calculator, {next(iter(calculator.properties)): product})], [many * price])
    talked = answered(f"What do {many} of the {item} cost?", [(finder, {key: item})], [result], f"They cost {many * price} coins.")
    return talked[:-1] + multiplied + talked[-1:]


def round_of(r, tools):
    """One question and all that follows from it."""
    kind = r.random()
    tool = weighted(r, tools)
    if kind < 0.13:
        return said(*r.choices(CHATS, [3, 4, 1, 1, 1])[0](r))
    if kind < 0.17:
        names = {t.name for t in tools}
        other = r.choice(tool_kinds.OTHERS[:-4] + [tool_kinds.lookup])(r)
        known = {frozenset(t.properties) for t in tools}
        if other.name not in names and frozenset(other.properties) not in known and not any(t.kind == "lookup" for t in tools):
            return said(other.ask().text, r.choice(SORRY_TOOL))
    if kind < 0.23:
        return failed(r, tool, tool.ask())
    if kind < 0.29:
        sums, prices = ([t for t in tools if t.kind == "calculator"], [t for t in tools if t.has_prices])
        if sums and prices:
            return price_of_many(r, sums[0], prices[0])
    if kind < 0.37:
        both = [tool, weighted(r, tools)]
        asked = [t.ask() for t in both]
        text = r.choice([" ", " And: ", " Then: "]).join(q.text for q in asked)
        return answered(text, [(t, q.arguments) for t, q in zip(both, asked)], [q.result for q in asked], " ".join(q.answer for q in asked))
    q = tool.ask()
    text = r.choice(["", "", "", "", "", "", "Please: ", "Hello! ", "Hi. "]) + q.text
    return answered(text, [(tool, q.arguments)], [q.result], q.answer)


def messages(r):
    """(tools, messages) of a conversation."""
    tools = offered(r)
    prompt = r.choice(PROMPTS) if r.random() < 0.45 else ""
    talked = [{"role": "system", "content": prompt}] if prompt else []
    for _ in range(r.choice([1, 2, 3, 4, 5, 6])):
        talked += round_of(r, tools)
    return tools, talked


def conversation(r):
    return written(*messages(r))
