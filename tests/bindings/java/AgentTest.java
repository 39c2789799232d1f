// SPDX-License-Identifier: Apache-2.0
// Proves that tools are functions of Java, that agents run them, and that a cancel, an interrupt and an exception reach them.
import dev.libgenerate.Agent;
import dev.libgenerate.AgentEvent;
import dev.libgenerate.AgentOptions;
import dev.libgenerate.Cancel;
import dev.libgenerate.GenerateException;
import dev.libgenerate.Generator;
import dev.libgenerate.Model;
import dev.libgenerate.Result;
import dev.libgenerate.Sampling;
import dev.libgenerate.Status;
import dev.libgenerate.Supervisor;
import dev.libgenerate.ToolCall;
import dev.libgenerate.Tools;
import java.util.EnumMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;

final class AgentTest {
  private AgentTest() {}

  record City(String city, Optional<Integer> days) {}

  private static Tools weather() {
    return new Tools().add("weather", "The weather of a city.", City.class, call -> "sunny " + call.arguments());
  }

  private static String call(String name, String arguments) {
    return "{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}";
  }

  private static void that(boolean holds, String what) {
    if (!holds) throw new AssertionError(what);
  }

  private static void contains(String text, String part) {
    that(text.contains(part), "\"" + text + "\" lacks " + part);
  }

  public static void main(String[] args) throws Exception {
    toolsAreFunctions();
    stepsWithGivenOutputs();
    runs();
    isCancelledInATool();
    System.out.println("agents");
  }

  private static void toolsAreFunctions() {
    try (Tools tools = weather()) {
      contains(tools.call("c", "weather", "{\"city\": \"Oslo\"}"), "\"output\":\"sunny {\\\"city\\\": \\\"Oslo\\\"}\",\"is_error\":false");
      contains(tools.call("c", "weather", "{}"), "\\\"city\\\" is missing");
      contains(tools.call("c", "nothing", ""), "tool \\\"nothing\\\" not found");
      tools.add("throws", "", "", call -> {
        throw new IllegalStateException("it broke");
      });
      contains(tools.call("c", "throws", ""), "\"output\":\"it broke\",\"is_error\":true");
      that(tools.size() == 2, "two tools");
      contains(tools.describe(), "\"throws\"");
      contains(tools.describe("weather"), "The weather of a city.");
      try {
        tools.add("throws", "", "", ToolCall::name);
        that(false, "a name was taken twice");
      } catch (GenerateException e) {
        that(e.status() == Status.INVALID_ARGUMENT, e.toString());
      }
      tools.remove("throws");
      contains(Tools.parseCalls("", call("f", "{}")), "call_0");
      contains(Tools.formatResult("c", "o", true), "\"is_error\":true");
    }
  }

  private static void stepsWithGivenOutputs() {
    try (Tools tools = weather();
        Agent agent = Agent.of(tools, AgentOptions.defaults().system("Be brief.").set("tool_threads", "2"))) {
      agent.chat().user("Is it warm?");
      that(!agent.step(call("weather", "{\"city\": \"Rome\"}") + call("weather", "{\"city\": \"Oslo\"}")), "not the last");
      that(agent.step("It is."), "the last");
      contains(agent.describe(), "\"stop_reason\":\"no_tools\"");
      contains(agent.describe(), "sunny {\\\"city\\\": \\\"Oslo\\\"}");
      contains(agent.chat().describe(), "Be brief.");
      try {
        agent.run("x");
        that(false, "there is no model");
      } catch (GenerateException e) {
        that(e.status() == Status.STATE, e.toString());
      }
      agent.reset();
      that(!agent.describe().contains("sunny"), "reset");
      contains(AgentOptions.defaults().describe(), "max_steps");
    }
  }

  private static void runs() {
    AgentOptions options = AgentOptions.defaults().sampling(Sampling.defaults().temperature(0).maxNewTokens(4));
    try (Model model = Model.load(Check.MODEL);
        Generator generator = Generator.of(model);
        Tools tools = new Tools();
        Agent agent = Agent.of(generator, tools, options);
        Supervisor supervisor = new Supervisor()) {
      agent.chat().template("chatml");
      Map<AgentEvent.Kind, Integer> kinds = new EnumMap<>(AgentEvent.Kind.class);
      StringBuilder said = new StringBuilder();
      Result result = agent.run("Hi", event -> {
        kinds.merge(event.kind(), 1, Integer::sum);
        if (event.kind() == AgentEvent.Kind.TEXT) said.append(event.text());
        return true;
      }, null);
      that(said.toString().equals(result.text()), said.toString());
      that(kinds.get(AgentEvent.Kind.STEP_ENDED) == 1, kinds.toString());
      try {
        agent.run("Hi", event -> false, null);
        that(false, "it was not ended");
      } catch (GenerateException e) {
        that(e.status() == Status.CANCELLED, e.toString());
      }
      try {
        agent.run("Hi", event -> {
          throw new IllegalStateException("mine");
        }, null);
        that(false, "nothing was thrown");
      } catch (IllegalStateException e) {
        that(e.getMessage().equals("mine"), e.toString());
      }
      Cancel cancel = new Cancel();
      cancel.fire();
      try {
        agent.run("Hi", null, cancel);
        that(false, "it was not cancelled");
      } catch (GenerateException e) {
        that(e.status() == Status.CANCELLED, e.toString());
      }
      agent.chat().user("And?");
      that(agent.step(), "a step without calls is the last");
      supervisor.add("first", "", agent).budget(100);
      that(!supervisor.run("Hi", null, null).text().isEmpty(), "no text");
      contains(supervisor.describe(), "\"budget\":100");
    }
  }

  private static void isCancelledInATool() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    try (Tools tools = new Tools(); Agent agent = Agent.of(tools, null)) {
      tools.add("waits", "", "", call -> {
        begun.countDown();
        while (!call.stopped()) Thread.sleep(1);
        return "told";
      });
      Thread runner = Thread.currentThread();
      Thread other = new Thread(() -> {
        try {
          begun.await();
        } catch (InterruptedException e) {
          return;
        }
        runner.interrupt();
      });
      other.start();
      try {
        agent.step(call("waits", "{}"));
        that(false, "it was not cancelled");
      } catch (GenerateException e) {
        that(e.status() == Status.CANCELLED, e.toString());
      }
      that(Thread.interrupted(), "the interrupt is lost");
      other.join();
      contains(agent.describe(), "\"output\":\"told\"");
      contains(agent.describe(), "\"stop_reason\":\"cancelled\"");
    }
  }
}
