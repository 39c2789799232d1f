// SPDX-License-Identifier: Apache-2.0
// Tools are functions of C#, agents run them, and a token and an exception reach them.
using System;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using LibGenerate;

static class Agents
{
    sealed class City
    {
        public string Name { get; set; }
        public int? Days { get; set; }
    }

    static Tools Weather()
    {
        return new Tools().Add<City>("weather", "The weather of a city.", call => "sunny " + call.Arguments);
    }

    static string CallOf(string name, string arguments)
    {
        return "{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}";
    }

    static void Contains(string text, string part)
    {
        Check.That(text.Contains(part), "\"" + text + "\" lacks " + part);
    }

    [Test]
    static void ToolsAreFunctions()
    {
        using (Tools tools = Weather())
        {
            Contains(tools.Call("c", "weather", "{\"Name\": \"Oslo\"}"), "\"output\":\"sunny {\\\"Name\\\": \\\"Oslo\\\"}\",\"is_error\":false");
            Contains(tools.Call("c", "weather", "{}"), "\\\"Name\\\" is missing");
            Contains(tools.Call("c", "nothing", ""), "tool \\\"nothing\\\" not found");
            tools.Add("throws", null, null, call => { throw new InvalidOperationException("it broke"); });
            Contains(tools.Call(null, "throws", null), "\"output\":\"it broke\",\"is_error\":true");
            Check.Equal(2, tools.Count, "tools");
            Contains(tools.Describe(), "\"throws\"");
            Contains(tools.Describe("weather"), "The weather of a city.");
            Check.Fails(Status.InvalidArgument, () => tools.Add("throws", null, null, call => ""), "a name that is taken");
            tools.Remove("throws");
            Contains(Tools.ParseCalls(null, CallOf("f", "{}")), "call_0");
            Contains(Tools.FormatResult("c", "o", true), "\"is_error\":true");
        }
    }

    [Test]
    static void StepsWithGivenOutputs()
    {
        using (Tools tools = Weather())
        using (var agent = new Agent(null, tools, new AgentOptions { System = "Be brief." }.Set("tool_threads", "2")))
        {
            agent.Chat.Add("user", "Is it warm?");
            Check.That(!agent.Step(CallOf("weather", "{\"Name\": \"Rome\"}") + CallOf("weather", "{\"Name\": \"Oslo\"}")), "not the last");
            Check.That(agent.Step("It is."), "the last");
            Contains(agent.Describe(), "\"stop_reason\":\"no_tools\"");
            Contains(agent.Describe(), "sunny {\\\"Name\\\": \\\"Oslo\\\"}");
            Contains(agent.Chat.Describe(), "Be brief.");
            Check.Fails(Status.State, () => agent.Run("x"), "a run without a model");
            agent.Reset();
            Check.That(!agent.Describe().Contains("sunny"), "reset");
            Contains(new AgentOptions().Describe(), "max_steps");
        }
    }

    [Test]
    static void Runs()
    {
        using (var generator = new Generator(Given.Story))
        using (var tools = new Tools())
        using (var agent = new Agent(generator, tools, new AgentOptions { Sampling = Sampling.Greedy(4) }))
        using (var supervisor = new Supervisor())
        {
            agent.Chat.SetTemplate("chatml");
            var said = new StringBuilder();
            int ends = 0;
            Result result = agent.Run("Hi", what =>
            {
                if (what.Kind == AgentEventKind.Text) said.Append(what.Text);
                if (what.Kind == AgentEventKind.StepEnded) ++ends;
                return true;
            });
            Check.Equal(result.Text, said.ToString(), "the text of events");
            Check.Equal(1, ends, "steps");
            Check.Throws<GenerationCanceledException>(() => agent.Run("Hi", what => false), "an event that ends it");
            Check.Throws<InvalidOperationException>(() => agent.Run("Hi", what => { throw new InvalidOperationException("mine"); }),
                "an event that throws");
            agent.Chat.Add("user", "And?");
            Check.That(agent.Step(), "a step without calls is the last");
            supervisor.Add("first", null, agent).SetBudget(100);
            Check.That(supervisor.Run("Hi").Text.Length > 0, "no text");
            Contains(supervisor.Describe(), "\"budget\":100");
        }
    }

    [Test]
    static void IsCancelledInATool()
    {
        using (var source = new CancellationTokenSource())
        using (var tools = new Tools())
        using (var agent = new Agent(null, tools))
        {
            tools.Add("waits", null, null, call =>
            {
                source.Cancel();
                while (!call.Stopped) Thread.Sleep(1);
                return "told";
            });
            Check.Throws<GenerationCanceledException>(() => agent.Step(CallOf("waits", "{}"), source.Token), "a cancel");
            Contains(agent.Describe(), "\"output\":\"told\"");
            Contains(agent.Describe(), "\"stop_reason\":\"cancelled\"");
        }
    }
}
