// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.ArrayList;
import java.util.List;

/** A conversation, to be laid out by {@link Model#format}. Any thread may add and format. */
public final class Chat {
  private record Message(byte[] role, byte[] text) {}

  private final List<Message> messages = new ArrayList<>();

  /** Makes an empty conversation. */
  public Chat() {}

  /** Adds a message of "system", "user", "assistant" or whatever role the model's form knows. */
  public Chat add(String role, String text) {
    Message message = new Message(Text.name(role), Text.bytes(text));
    synchronized (messages) {
      messages.add(message);
    }
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

  String format(long model, boolean addGenerationPrompt) {
    List<Message> all;
    synchronized (messages) {
      all = List.copyOf(messages);
    }
    long chat = Handle.make(Native::gen_chat_new);
    try {
      for (Message m : all) Native.gen_chat_add(chat, m.role, m.text, m.text.length);
      return Text.ask((buf, capacity, n) ->
          Native.gen_chat_format(model, chat, addGenerationPrompt ? 1 : 0, buf, capacity, n));
    } finally {
      Native.gen_chat_free(chat);
    }
  }
}
