# SPDX-License-Identifier: Apache-2.0
"""How often a model calls a tool as it should, and uses the result: held-out questions, greedy, through the library.

usage: GENERATE_LIBRARY=libgenerate.so.0 measure_tools.py [story.gguf] [--count 200] [--seed 1000010]
                                                          [--corpus BUILD/tools/corpus.jsonl] [--show 0]

COUNT questions each for the calculator, the lookup and the other tools, each in a conversation of its own that offers
one to four tools; a quarter as many need no tool. A call is right if its text is, to the last byte. The right result is
then given, and the answer is right if it holds the value. Questions in the corpus are left out. --show prints failures.
"""
import argparse
import json
import os
import random
import re
import sys

import tool_kinds
import tool_talk

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "python"))
import libgenerate  # noqa: E402


def conversations(kind, count, seed, known):
    """(tools, prompt, tool, question), with the tool that is asked for among the tools."""
    r = random.Random(f"{seed} {kind}")
    while count:
        tools, prompt = tool_talk.offered(r), r.choice(tool_talk.PROMPTS) if r.random() < 0.45 else ""
        if kind == "none":
            text, answer = r.choice(tool_talk.CHATS[:3])(r)
            tool, question = None, tool_kinds.Question(text, {}, "", answer)
        else:
            wanted = [t for t in tools if t.kind == kind]
            if not wanted:
                continue
            tool = r.choice(wanted)
            question = tool.ask()
        if question.text in known and tool:
            continue
        count -= 1
        yield tools, prompt, tool, question


class Talk:
    def __init__(self, generator, tools, prompt):
        self.chat = libgenerate.Chat(tools=[tool_talk.described(t) for t in tools])
        if prompt:
            self.chat.add("system", prompt)
        self.session = libgenerate.ChatSession(generator, self.chat)

    def say(self, text=None):
        return "".join(token.text for token in self.session.stream(text, temperature=0, max_new_tokens=120))

    def close(self):
        self.session.close()
        self.chat.close()


def values(question):
    """What an answer must hold: the values of the result, or the numbers in it."""
    try:
        result = json.loads(question.result)
    except ValueError:
        result = question.result
    if question.value is not None:
        return [tool_kinds.plain(question.value) if isinstance(question.value, float) else str(question.value)]
    return [x for x in re.findall(r"-?\d+", question.answer) if x in str(result)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default=os.path.join(HERE, "story.gguf"))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000010)
    parser.add_argument("--corpus")
    parser.add_argument("--show", type=int, default=0)
    args = parser.parse_args()
    known = set()
    if args.corpus:
        with open(args.corpus, encoding="utf-8") as lines:
            for kind, body in map(json.loads, lines):
                known |= {content for role, content in body if role == "user"} if kind == "tools" else set()
    with libgenerate.Model(args.model) as model, libgenerate.Generator(model) as generator:
        for kind, count in (("calculator", args.count), ("lookup", args.count), ("", args.count), ("none", args.count // 4)):
            called = answered = word_for_word = shown = 0
            for tools, prompt, tool, question in conversations(kind, count, args.seed, known):
                talk = Talk(generator, tools, prompt)
                said = talk.say(question.text)
                if tool is None:
                    right = "<tool_call>" not in said
                    called += right
                else:
                    function = {"name": tool.name, "arguments": question.arguments}
                    right = said == "<tool_call>\n" + json.dumps(function) + "\n</tool_call>"
                    called += right
                    talk.chat.truncate(-1).add_tool_call(tool.name, question.arguments).add_tool_result(question.result, name=tool.name)
                    answer = talk.say()
                    used = all(x in answer for x in values(question))
                    answered += used
                    word_for_word += answer == question.answer
                    if not used and shown < args.show:
                        print(f"  asked {question.text!r}, told {question.result!r}: {answer!r}")
                if not right and shown < args.show:
                    shown += 1
                    print(f"  asked {question.text!r} with {[t.name for t in tools]}: {said!r}")
                talk.close()
            name = {"": "other tools", "none": "no tool needed"}.get(kind, kind)
            print(f"{name}: right calls {called} of {count}" + (f", answers with the result {answered} of {count}, as in training {word_for_word}" if kind != "none" else ""), flush=True)


if __name__ == "__main__":
    main()
