// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.file.Path;
import java.util.List;
import java.util.function.LongConsumer;

/** How a generator keeps keys and values and runs its sessions: immutable, each method gives new options. */
public final class GeneratorOptions extends Settings<GeneratorOptions> {
  private GeneratorOptions(List<Setter> setters) {
    super(setters);
  }

  /** A float32 cache, prompts run in chunks of 256 tokens, the context ends a generation. */
  public static GeneratorOptions defaults() {
    return new GeneratorOptions(List.of());
  }

  /** What keys and values are stored as: "fp32", "fp16", "fp8", "q4" or "q3"; see {@link LibGenerate#kvKinds}. */
  public GeneratorOptions kvDtype(String name) {
    byte[] text = Text.name(name);
    return add(o -> Native.gen_options_set_kv_dtype(o, text));
  }

  /** The same for keys and values apart. */
  public GeneratorOptions kvTypes(String keys, String values) {
    byte[] k = Text.name(keys);
    byte[] v = Text.name(values);
    return add(o -> Native.gen_options_set_kv_types(o, k, v));
  }

  /** The form in which keys are stored: "rotated", "hadamard" or "best". */
  public GeneratorOptions kvKeyForm(String name) {
    byte[] text = Text.name(name);
    return add(o -> Native.gen_options_set_kv_key_form(o, text));
  }

  /** Keeps the keys and values of all sessions in blocks of one pool of at most that many MiB; 0 for none. */
  public GeneratorOptions pagedKv(int maxMemoryMb, int blockSize) {
    return add(o -> Native.gen_options_set_paged_kv(o, maxMemoryMb, blockSize));
  }

  /** Keeps up to that many blocks of the pool for prompts with a common prefix; 0 for none. */
  public GeneratorOptions prefixCache(int blocks) {
    return add(o -> Native.gen_options_set_prefix_cache(o, blocks));
  }

  /** Each full chunk of positions becomes one entry; 0 pools nothing. */
  public GeneratorOptions compressedKv(int chunk) {
    return add(o -> Native.gen_options_set_compressed_kv(o, chunk));
  }

  /** Keeps the newest positions in memory and the rest in a file. */
  public GeneratorOptions tieredKv(TieredOptions options) {
    return add(o -> options.use(config -> Native.gen_options_set_tiered_kv(o, config)));
  }

  /** What happens when the context is full: "stop", or "shift" without the first {@code keep} tokens. */
  public GeneratorOptions contextPolicy(String policy, int keep) {
    byte[] text = Text.name(policy);
    return add(o -> Native.gen_options_set_context_policy(o, text, keep));
  }

  /**
   * Takes a snapshot of a recurrent model's state every so many tokens, for texts that are cut anywhere; 1024 by
   * default, 0 for none within prompts and answers.
   */
  public GeneratorOptions stateSnapshotEvery(int tokens) {
    return add(o -> Native.gen_options_set_state_snapshot_every(o, tokens));
  }

  /** Limits the memory of a session's snapshots of such a state; -1 for that of eight, 0 for none. */
  public GeneratorOptions stateSnapshotBudget(int maxMemoryMb) {
    return add(o -> Native.gen_options_set_state_snapshot_budget(o, maxMemoryMb));
  }

  /** Runs prompts in chunks of at most that many tokens. */
  public GeneratorOptions prefillChunk(int tokens) {
    return add(o -> Native.gen_options_set_prefill_chunk(o, tokens));
  }

  /** Runs at most that many sessions in one forward pass. */
  public GeneratorOptions maxBatch(int sequences) {
    return add(o -> Native.gen_options_set_max_batch(o, sequences));
  }

  /** Accepts at most that many calls beyond {@link #maxBatch}; one more is {@link Status#BUSY}. 0 for no limit. */
  public GeneratorOptions maxQueue(int calls) {
    return add(o -> Native.gen_options_set_max_queue(o, calls));
  }

  /** Has the bits of a text depend on nothing that runs beside it, on a device too; on the CPU they never do. */
  public GeneratorOptions deterministic(boolean on) {
    return add(o -> Native.gen_options_set_deterministic(o, on ? 1 : 0));
  }

  /** Leaves a call out of at most that many steps for others of higher priority; with 0 they take turns. */
  public GeneratorOptions fairness(int steps) {
    return add(o -> Native.gen_options_set_fairness(o, steps));
  }

  /**
   * Drafts up to {@code length} tokens (0 means 8) where the last {@code ngram} tokens occurred earlier in the text.
   * Results do not change.
   */
  public GeneratorOptions promptLookup(int ngram, int length) {
    return add(o -> Native.gen_options_set_prompt_lookup(o, ngram, length));
  }

  /**
   * Lets a smaller model draft up to {@code length} tokens (0 means 4) at a time. Results do not change. It must be
   * open when the generator is made, and may be closed then.
   */
  public GeneratorOptions speculativeDraft(Model draft, int length) {
    return add(o -> draft.run(m -> Native.gen_options_set_speculative_draft(o, m, length)));
  }

  /**
   * Lets the head of an EAGLE file draft where lookups find nothing. Results do not change. Without a file at the path there are
   * no drafts by it: see {@link Generator#eagleEnabled}.
   */
  public GeneratorOptions eagle(Path path) {
    byte[] file = Text.name(path);
    return add(o -> Native.gen_options_set_eagle(o, file));
  }

  /** Tells metrics to a collector, which must be open when the generator is made. */
  public GeneratorOptions metrics(MetricsMemory memory) {
    return add(o -> memory.run(m -> Native.gen_options_set_metrics(o, Native.gen_metrics_memory_sink(m))));
  }

  /** Tells metrics to a gen_metrics_sink in C, which must work as long as the generator and its sessions. */
  public GeneratorOptions metrics(NativeSymbol sink) {
    return add(o -> Native.gen_options_set_metrics(o, sink.address()));
  }

  /** Records every forward pass. The tracer must be open when the generator is made. */
  public GeneratorOptions tracer(Tracer tracer) {
    return add(o -> tracer.run(t -> Native.gen_options_set_tracer(o, t)));
  }

  @Override
  GeneratorOptions with(List<Setter> all) {
    return new GeneratorOptions(all);
  }

  @Override
  void make(long[] out) {
    Native.gen_options_new(out);
  }

  @Override
  LongConsumer free() {
    return Native::gen_options_free;
  }

  @Override
  void describe(long address, byte[] buf, long capacity, long[] n) {
    Native.gen_options_describe(address, buf, capacity, n);
  }

  @Override
  void set(long address, byte[] key, byte[] value) {
    Native.gen_options_set(address, key, value);
  }
}
