#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tools and agents through examples/python/agents.py: functions with annotations, failures, events, cancels.

usage: agents_test.py SOURCE_DIR    (GENERATE_LIBRARY is the library)
"""
import json
import pathlib
import sys
import time
import unittest

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "examples" / "python"))
import agents  # noqa: E402
from agents import Agent, Supervisor, Tools, parse_calls  # noqa: E402
from libgenerate import Error, Generator, Model  # noqa: E402

STORY = ROOT / "examples/demo_model/story.gguf"


def weather(city: str, days: int = 1) -> dict:
    """The weather of a city."""
    if city == "Nowhere":
        raise ValueError("no such city")
    return {"city": city, "days": days}


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


class Agents(unittest.TestCase):
    def setUp(self):
        self.tools = Tools()
        self.tools.add(weather)

    def tearDown(self):
        self.tools.close()

    def test_tools_are_functions(self):
        result = self.tools.call("weather", id="c", city="Oslo")
        self.assertEqual((result["tool_call_id"], result["is_error"]), ("c", False))
        self.assertEqual(json.loads(result["output"]), {"city": "Oslo", "days": 1})
        for arguments, said in (({}, '"city" is missing'), ({"city": 5}, 'member "city"'), ({"city": "A", "days": "x"}, 'member "days"'),
                                ({"city": "Nowhere"}, "no such city")):
            result = self.tools.call("weather", **arguments)
            self.assertTrue(result["is_error"])
            self.assertIn(said, result["output"])
        self.assertEqual(self.tools.describe()[0]["function"]["description"], "The weather of a city.")
        self.assertEqual(len(self.tools), 1)
        self.assertRaises(Error, self.tools.add, weather)
        self.tools.remove("weather")
        self.assertIn("not found", self.tools.call("weather")["output"])
        self.assertEqual(parse_calls("a " + call("f"))["calls"], [{"id": "call_0", "name": "f", "arguments": {}}])

    def test_steps_with_given_outputs(self):
        with Agent(self.tools, system="Be brief.", tool_threads=2) as agent:
            agent.chat.add("user", "Is it warm?")
            self.assertFalse(agent.step(call("weather", city="Rome") + call("weather", city="Oslo")))
            self.assertTrue(agent.step("It is."))
            run = agent.describe()
            self.assertEqual((run["stop_reason"], run["final_output"]), ("no_tools", "It is."))
            self.assertEqual([json.loads(r["output"])["city"] for r in run["steps"][0]["results"]], ["Rome", "Oslo"])
            self.assertEqual(agent.chat.describe()["messages"][0], {"role": "system", "content": "Be brief."})
            self.assertRaises(Error, agent.run, "x")
            agent.reset()
            self.assertEqual(agent.describe()["steps"], [])

    def test_budget_and_broken_call(self):
        with Agent(self.tools, max_tokens=10) as agent:
            self.assertTrue(agent.step(call("weather", city="Rome")))
            self.assertEqual(agent.describe()["stop_reason"], "max_tokens")
            self.assertIn("not run", agent.describe()["steps"][0]["results"][0]["output"])
        with Agent(self.tools, call_format="hermes") as agent:
            self.assertTrue(agent.step('<tool_call>\n{"name": "weather", "arguments": [}\n</tool_call>'))
            self.assertEqual(len(agent.describe()["steps"][0]["faults"]), 1)

    def test_runs(self):
        with Model(STORY) as model, Generator(model) as generator, Tools() as none, \
                Agent(none, generator, sampling={"temperature": 0, "max_new_tokens": 4}) as agent:
            self.assertRaises(Error, agent.chat.set, no_such_option=1)
            agent.chat.add("user", "Hi")
            seen = []
            try:
                result = agent.run(None, seen.append)
            except Error as e:
                self.skipTest(str(e))  # a model without a template
            self.assertEqual("".join(e.text for e in seen if e.kind == "text"), result.text)
            self.assertEqual([e.kind for e in seen if e.kind.startswith("step")], ["step_began", "step_ended"])
            with self.assertRaises(Error) as failed:
                agent.run("Hi", lambda event: False)
            self.assertEqual(failed.exception.code, -11)
            self.assertRaises(ZeroDivisionError, agent.run, "Hi", lambda event: 1 / 0)
            with Supervisor(budget=100, first=agent) as supervisor:
                self.assertTrue(supervisor.run("Hi").text)
                self.assertEqual(supervisor.describe()["budget"], 100)

    def test_cancelled_in_a_tool(self):
        with Agent(self.tools) as agent:
            def waits():
                agent.cancel()
                while not agents.stopped():
                    time.sleep(0.001)
                return "told"

            self.tools.add(waits)
            with self.assertRaises(Error) as failed:
                agent.step(call("waits"))
            self.assertEqual(failed.exception.code, -11)
            self.assertEqual(agent.describe()["steps"][0]["results"][0]["output"], "told")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
