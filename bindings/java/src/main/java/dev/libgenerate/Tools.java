// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.lang.reflect.Type;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Functions that a model may call. Threads and agents share one. Calls that come after {@link #close} fail. */
public final class Tools extends Handle {
  private static final int MOST_OF_A_RESULT = 1 << 20;

  /** A tool. It runs on a thread of its own, several at once. */
  @FunctionalInterface
  public interface Function {
    /** The output. An exception is a failure that the model is told. */
    String call(ToolCall call) throws Exception;
  }

  private final long desk;
  private final Map<String, Function> functions;

  /** Makes an empty set. */
  public Tools() {
    this(Desk.open(), new ConcurrentHashMap<>());
  }

  private Tools(long desk, Map<String, Function> functions) {
    super("tools", makeBeside(desk), address -> {
      Desk.close(desk);
      Native.gen_tool_registry_free(address);
    });
    this.desk = desk;
    this.functions = functions;
    Desk.thread(() -> serve(desk, functions));
  }

  private static long makeBeside(long desk) {
    try {
      return make(Native::gen_tool_registry_new);
    } catch (RuntimeException | Error e) {
      Desk.close(desk);
      throw e;
    }
  }

  /** Keeps nothing of the object, so that one that is dropped can be collected. */
  private static void serve(long desk, Map<String, Function> functions) {
    for (Desk.Matter matter = Desk.next(desk); matter != null; matter = Desk.next(desk)) {
      Desk.Matter call = matter;
      try {
        Desk.thread(() -> run(functions, call));
      } catch (Throwable e) {
        call.answer("there is no thread for it: " + e, true);
      }
    }
  }

  private static void run(Map<String, Function> functions, Desk.Matter matter) {
    String output = "";
    boolean failed = true;
    try {
      Function function = functions.get(matter.name());
      if (function == null) {
        output = "tool \"" + matter.name() + "\" not found";
      } else {
        output = function.call(new ToolCall(matter));
        failed = output == null;
        if (failed) output = "tool \"" + matter.name() + "\" gave null";
      }
    } catch (Throwable e) {
      output = e.getMessage() != null ? e.getMessage() : e.toString();
    } finally {
      matter.answer(output, failed);
    }
  }

  /**
   * Adds a tool.
   *
   * @param schema JSON Schema of the arguments; empty for none
   */
  public Tools add(String name, String description, String schema, Function function) {
    byte[] key = Text.name(name);
    byte[] about = Text.name(description);
    byte[] json = Text.name(schema);
    if (function == null) throw new GenerateException(Status.INVALID_ARGUMENT, "the function is null");
    run(t -> {
      synchronized (functions) {
        Native.gen_tool_registry_add(t, key, about, json, Native.gen_binding_desk_tool_function(), desk);
        functions.put(name, function);
      }
    });
    return this;
  }

  /** Adds a tool whose arguments are those of a record or bean: the schema is {@link Schemas#of}. */
  public Tools add(String name, String description, Type arguments, Function function) {
    return add(name, description, Schemas.of(arguments), function);
  }

  /** Removes a tool. A call of it that runs finishes. */
  public Tools remove(String name) {
    byte[] key = Text.name(name);
    run(t -> {
      synchronized (functions) {
        Native.gen_tool_registry_remove(t, key);
        functions.remove(name);
      }
    });
    return this;
  }

  /** The number of tools. */
  public int size() {
    return ask(t -> (int) Native.gen_tool_registry_count(t));
  }

  /** All tools as JSON, in the form of OpenAI's API, sorted by name. */
  public String describe() {
    return ask(t -> Text.ask((buf, capacity, n) -> Native.gen_tool_registry_describe(t, buf, capacity, n)));
  }

  /** One tool as JSON. */
  public String describe(String name) {
    byte[] key = Text.name(name);
    return ask(t -> Text.ask((buf, capacity, n) -> Native.gen_tool_registry_get(t, key, buf, capacity, n)));
  }

  /** Calls a tool as an agent does: the result is {@code {"tool_call_id":…,"output":…,"is_error":…}}, at most a MiB. */
  public String call(String id, String name, String arguments) {
    byte[] number = Text.name(id);
    byte[] key = Text.name(name);
    byte[] json = Text.bytes(arguments);
    byte[] buf = new byte[MOST_OF_A_RESULT];
    long[] n = new long[1];
    run(t -> Native.gen_tool_registry_call(t, number, key, json, json.length, buf, buf.length, n));
    return new String(buf, 0, (int) n[0], java.nio.charset.StandardCharsets.UTF_8);
  }

  /** The calls in a text that a model wrote, as JSON; see gen_tool_calls_parse. An empty format is "json". */
  public static String parseCalls(String format, String text) {
    byte[] name = Text.name(format);
    byte[] bytes = Text.bytes(text);
    return Text.ask((buf, capacity, n) -> Native.gen_tool_calls_parse(name, bytes, bytes.length, buf, capacity, n));
  }

  /** A result as JSON. */
  public static String formatResult(String id, String output, boolean isError) {
    byte[] number = Text.name(id);
    byte[] bytes = Text.bytes(output);
    return Text.ask((buf, capacity, n) ->
        Native.gen_tool_result_format(number, bytes, bytes.length, isError ? 1 : 0, buf, capacity, n));
  }
}
