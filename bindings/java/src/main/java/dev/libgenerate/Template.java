// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/** A chat template by itself, to see how it renders a conversation. Any number of threads may use one. */
public final class Template extends Handle {
  /** Compiles a template: Jinja, as the Transformers library evaluates it for chats. */
  public Template(String text) {
    super("template", compile(Text.bytes(text)), Native::gen_template_free);
  }

  Template(long address) {
    super("template", address, Native::gen_template_free);
  }

  private static long compile(byte[] text) {
    return make(out -> Native.gen_template_new(text, text.length, out));
  }

  /** Renders a conversation, from JSON to JSON; gen_template_render of template.h lists the members of both. */
  public String render(String request) {
    byte[] json = Text.bytes(request);
    return ask(t -> Text.ask((buf, capacity, n) ->
        Native.gen_template_render(t, json, json.length, buf, capacity, n)));
  }
}
