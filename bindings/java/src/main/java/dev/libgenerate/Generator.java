// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * A model with cache settings and a scheduler: what sessions come from. Calls from many threads run side by side and share
 * forward passes. An interrupt of the thread inside a call stops that call soon.
 */
public final class Generator extends Handle {
  private static final int MAX_TEXTS = 128;  // of gen_generate_n

  private Generator(long address) {
    super("generator", address, Native::gen_free);
  }

  /** Makes a generator with the default options. */
  public static Generator of(Model model) {
    return of(model, null);
  }

  /** Makes a generator, which keeps the model alive. */
  public static Generator of(Model model, GeneratorOptions options) {
    return new Generator(Settings.use(options, o -> makeWith(model, (m, out) -> Native.gen_create(m, o, out))));
  }

  /** Makes an empty session. */
  public Session newSession() {
    return ask(g -> new Session(make(out -> Native.gen_session_new(g, out))));
  }

  /** Makes a chat session of an empty conversation. */
  public ChatSession newChatSession() {
    return newChatSession(null);
  }

  /**
   * Makes a chat session.
   *
   * @param chat the conversation so far, shared, not copied: add to it what is not the user's, such as the results of tools,
   *     and find the answers in it. It may be closed at any time. Null for an empty one.
   */
  public ChatSession newChatSession(Chat chat) {
    return ask(g -> new ChatSession(makeWith(chat, (c, out) -> Native.gen_chat_session_new(g, c, out))));
  }

  /** Continues a prompt with the default sampling. */
  public Result generate(String prompt) {
    return generate(prompt, null, null);
  }

  /** Continues a prompt. */
  public Result generate(String prompt, Sampling sampling) {
    return generate(prompt, sampling, null);
  }

  /**
   * Continues a prompt.
   *
   * @param sampling null for the defaults
   * @param cancel stops the call; null for none
   * @throws GenerateException with the partial result if generation had begun
   */
  public Result generate(String prompt, Sampling sampling, Cancel cancel) {
    byte[] text = Text.bytes(prompt);
    return ask(g -> Call.generate(sampling,
        (settings, out) -> Native.gen_generate(g, text, text.length, settings, out), cancel));
  }

  /** The same on an executor. Cancelling the future stops the generation. */
  public CompletableFuture<Result> generateAsync(String prompt, Sampling sampling, Executor executor) {
    return Call.async(executor, cancel -> generate(prompt, sampling, cancel));
  }

  /** Continues a prompt piece by piece with the default sampling. */
  public TokenStream stream(String prompt) {
    return stream(prompt, null, null);
  }

  /** Continues a prompt piece by piece, on a session of its own. */
  public TokenStream stream(String prompt, Sampling sampling) {
    return stream(prompt, sampling, null);
  }

  /** The same, with what stops it. */
  public TokenStream stream(String prompt, Sampling sampling, Cancel cancel) {
    byte[] text = Text.bytes(prompt);
    return ask(g -> {
      long session = make(out -> Native.gen_session_new(g, out));
      try {
        return TokenStream.open(session, text, sampling, cancel);  // which keeps it alive
      } finally {
        Native.gen_session_free(session);
      }
    });
  }

  /** Runs all requests together. */
  public List<Result> generate(List<Request> requests) {
    return generate(requests, null);
  }

  /**
   * Runs all requests together, in common steps. Each result is what {@link #generate(String, Sampling)} gives for the
   * request alone; that of a request that failed or passed its deadline has an {@link Result#error}.
   *
   * @param cancel stops all of them; null for none
   * @throws GenerateCancelledException with all results if the call was cancelled before every request had ended
   */
  public List<Result> generate(List<Request> requests, Cancel cancel) {
    return ask(g -> Request.run(g, List.copyOf(requests), cancel));
  }

  /**
   * Generates several texts from one prompt, which is run once: text i is what {@link #generate(String, Sampling)} gives with
   * a seed that is larger by i.
   *
   * @param bestOf texts that are generated, at least n: with more, the n most probable are returned, best first
   * @param cancel stops all of them; null for none
   * @throws GenerateCancelledException with all results if the call was cancelled before every text had ended
   */
  public List<Result> generate(String prompt, Sampling sampling, int n, int bestOf, Cancel cancel) {
    byte[] text = Text.bytes(prompt);
    return ask(g -> {
      try (Call.Flagged call = new Call.Flagged(cancel)) {
        return Sampling.orDefaults(sampling).use(settings -> {
          Native.gen_sampling_set_cancel(settings, call.address());
          long[] out = new long[MAX_TEXTS];
          call.enter();
          try {
            Native.gen_generate_n(g, text, text.length, settings, n, bestOf, out);
          } finally {
            call.leave();
          }
          return Request.take(out, n, call);
        });
      }
    });
  }

  /** The same on an executor. Cancelling the future stops all of them. */
  public CompletableFuture<List<Result>> generateAsync(List<Request> requests, Executor executor) {
    return Call.async(executor, cancel -> generate(requests, cancel));
  }

  /** Runs all requests together and gives their pieces as they come. Priorities do not count here. */
  public BatchStream stream(List<Request> requests) {
    return new BatchStream(this, List.copyOf(requests));
  }

  /**
   * Statistics of {@link GeneratorOptions#prefixCache} so far.
   *
   * @param lookups calls that searched for a cached prefix
   * @param hits those that found one
   * @param tokens that were not evaluated again
   * @param blocks held now
   * @param evictions evicted blocks
   */
  public record PrefixStats(long lookups, long hits, long tokens, long blocks, long evictions) {}

  /** Statistics of {@link GeneratorOptions#prefixCache} so far; {@link Status#STATE} without one. */
  public PrefixStats prefixStats() {
    return ask(g -> new PrefixStats(prefixStat(g, "lookups"), prefixStat(g, "hits"), prefixStat(g, "tokens"),
        prefixStat(g, "blocks"), prefixStat(g, "evictions")));
  }

  private static long prefixStat(long generator, String key) {
    long[] value = new long[1];
    Native.gen_generator_prefix_stats(generator, Text.name(key), value);
    return value[0];
  }

  /** Statistics of drafts so far, by key: see gen_generator_draft_stats of speculative.h. */
  public double draftStats(String key) {
    return ask(g -> {
      double[] value = new double[1];
      Native.gen_generator_draft_stats(g, Text.name(key), value);
      return value[0];
    });
  }

  /** Whether the head of {@link GeneratorOptions#eagle} drafts: its file was there. */
  public boolean eagleEnabled() {
    return ask(g -> Native.gen_generator_eagle_enabled(g) != 0);
  }

  /** The path that {@link GeneratorOptions#eagle} was given; empty if none was. */
  public String eaglePath() {
    return ask(g -> Text.ask((buf, capacity, n) -> Native.gen_generator_eagle_path(g, buf, capacity, n)));
  }

  /** Gives the blocks of {@link GeneratorOptions#prefixCache} back, except those that sessions use. */
  public void clearPrefixCache() {
    run(Native::gen_generator_prefix_clear);
  }

  /** An empty cache of the kind that sessions have, for {@link Model#forward}; 0 positions for as many as a session's. */
  public KvCache newCache(int maxSequenceLength) {
    return ask(g -> new KvCache(make(out -> Native.kv_cache_generator_new(g, maxSequenceLength, out))));
  }
}
