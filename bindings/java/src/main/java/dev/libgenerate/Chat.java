// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;

/**
 * A conversation, rendered as a model was trained to see it, by the chat template of its file. Only what the template writes
 * becomes special tokens: a message that holds {@code <|im_end|>} cannot end its turn. One thread at a time, a second one is
 * {@link Status#BUSY}. A call that fails changes nothing.
 */
public final class Chat extends Handle {
  private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss");

  /** Makes an empty conversation. */
  public Chat() {
    super("chat", make(Native::gen_chat_new), Native::gen_chat_free);
  }

  /** An agent's. */
  Chat(Handle owner, long address) {
    super(owner, address);
  }

  /** Adds a message of "system", "user", "assistant" or whatever role the template knows. */
  public Chat add(String role, String text) {
    byte[] who = Text.name(role);
    byte[] bytes = Text.bytes(text);
    run(c -> Native.gen_chat_add(c, who, bytes, bytes.length));
    return this;
  }

  /** Adds instructions for the whole conversation. */
  public Chat system(String text) {
    return add("system", text);
  }

  /** Adds what the user said. */
  public Chat user(String text) {
    return add("user", text);
  }

  /** Adds what the model said. */
  public Chat assistant(String text) {
    return add("assistant", text);
  }

  /** Sets the author of the last message. */
  public Chat name(String name) {
    byte[] bytes = Text.name(name);
    run(c -> Native.gen_chat_set_name(c, bytes));
    return this;
  }

  /** Sets the assistant's reasoning before the last message. */
  public Chat reasoning(String text) {
    byte[] bytes = Text.bytes(text);
    run(c -> Native.gen_chat_set_reasoning(c, bytes, bytes.length));
    return this;
  }

  /**
   * Adds a call of a tool to the assistant's last message, or as a new one without text.
   *
   * @param id of the call; null if there is none
   * @param name of the function
   * @param arguments a JSON object
   */
  public Chat toolCall(String id, String name, String arguments) {
    byte[] call = Text.name(id);
    byte[] function = Text.name(name);
    byte[] json = Text.bytes(arguments);
    run(c -> Native.gen_chat_add_tool_call(c, call, function, json, json.length));
    return this;
  }

  /**
   * Adds the result of a tool call.
   *
   * @param id of the call that it answers; null if there is none
   * @param name of the function; null if the template does not ask for it
   */
  public Chat toolResult(String id, String name, String text) {
    byte[] call = Text.name(id);
    byte[] function = Text.name(name);
    byte[] bytes = Text.bytes(text);
    run(c -> Native.gen_chat_add_tool_result(c, call, function, bytes, bytes.length));
    return this;
  }

  /**
   * Adds a tool that the model may call.
   *
   * @param description a JSON object in the form of OpenAI's API: {@code {"type": "function", "function": {"name": …,
   *     "description": …, "parameters": a JSON Schema}}}
   */
  public Chat tool(String description) {
    byte[] json = Text.bytes(description);
    run(c -> Native.gen_chat_add_tool(c, json, json.length));
    return this;
  }

  /**
   * Sets a variable of the template, such as enable_thinking.
   *
   * @param value JSON: a string is written with its quotes
   */
  public Chat variable(String name, String value) {
    byte[] key = Text.name(name);
    byte[] json = Text.bytes(value);
    run(c -> Native.gen_chat_set_variable(c, key, json, json.length));
    return this;
  }

  /** Keeps the first {@code n} messages, or removes the last {@code -n}, to edit or regenerate them. */
  public Chat truncate(int n) {
    run(c -> Native.gen_chat_truncate(c, n));
    return this;
  }

  /** Messages, tools and variables as JSON. */
  public String describe() {
    return ask(c -> Text.ask((buf, capacity, n) -> Native.gen_chat_describe(c, buf, capacity, n)));
  }

  /** Uses another template than the model's, or a built-in form by its name, "chatml" for example; empty for the model's. */
  public Chat template(String text) {
    byte[] bytes = Text.bytes(text);
    run(c -> Native.gen_chat_set_template(c, bytes, bytes.length));
    return this;
  }

  /**
   * Sets how a chat session deals with answers, by name: "tool_choice", "required". See gen_chat_set and
   * {@link #describeOptions()}.
   */
  public Chat set(String key, String value) {
    byte[] name = Text.name(key);
    byte[] bytes = Text.name(value);
    run(c -> Native.gen_chat_set(c, name, bytes));
    return this;
  }

  /** The options of {@link #set} as JSON. */
  public String describeOptions() {
    return ask(c -> Text.ask((buf, capacity, n) -> Native.gen_chat_describe_options(c, buf, capacity, n)));
  }

  /** Sets what templates write as today's date; null for the clock of the machine. */
  public Chat time(LocalDateTime now) {
    byte[] bytes = Text.name(now != null ? now.format(TIME) : "");
    run(c -> Native.gen_chat_set_time(c, bytes));
    return this;
  }
}
