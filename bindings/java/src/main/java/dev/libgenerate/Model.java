// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleConsumer;
import java.util.function.LongToIntFunction;

/** Weights and tokenizer, ready to run. Immutable: any number of generators, sessions and threads use one. */
public final class Model extends Handle {
  private Model(long address) {
    super("model", address, Native::gen_model_free);
  }

  /** Loads a GGUF file with the default options. */
  public static Model load(Path path) {
    return load(path, null, null);
  }

  /** Loads a GGUF file; the first part of a split one brings the others. An interrupt stops the load. */
  public static Model load(Path path, ModelOptions options) {
    return load(path, options, null);
  }

  /**
   * Loads a GGUF file.
   *
   * @param options null for the defaults
   * @param progress is told, on this thread, the share that is done, now and then and rising, and 1 at the end; null for
   *     nobody. What it throws stops the load and comes out of it. Not for options with a progress callback in C.
   */
  public static Model load(Path path, ModelOptions options, DoubleConsumer progress) {
    byte[] name = Text.name(path);
    return loading(options, progress, (o, out) -> Native.gen_model_load(name, o, out));
  }

  /** Loads a GGUF file that is already in memory. */
  public static Model load(byte[] file, ModelOptions options) {
    return load(file, options, null);
  }

  /** The same, with progress as {@link #load(Path, ModelOptions, DoubleConsumer)} tells it. */
  public static Model load(byte[] file, ModelOptions options, DoubleConsumer progress) {
    return loading(options, progress, (o, out) -> Native.gen_model_load_memory(file, file.length, o, out));
  }

  private static Model loading(ModelOptions options, DoubleConsumer progress, MakerWith body) {
    ModelOptions how = options != null ? options : ModelOptions.defaults();
    if (progress != null && how.hasProgress()) {
      throw new GenerateException(Status.INVALID_ARGUMENT, "the options have a progress callback in C");
    }
    long[] out = new long[1];
    try {
      how.use(o -> {
        if (how.hasProgress()) {
          body.make(o, out);
        } else {
          Progress.run(progress, (callback, user) -> {
            Native.gen_model_options_set_progress(o, callback, user);
            body.make(o, out);
          });
        }
        return null;
      });
    } catch (Throwable e) {
      // Of a load that ended well before `progress` threw. Where there is no library, `e` says why; a call would not.
      if (out[0] != 0) Native.gen_model_free(out[0]);
      throw e;
    }
    return new Model(out[0]);
  }

  /**
   * Makes a model of a function in C.
   *
   * @param forward a gen_forward table, whose functions must work as long as anything made from the model
   * @param tokenizer for texts, or null: then prompts are tokens
   */
  public static Model custom(NativeSymbol forward, ModelConfig config, Tokenizer tokenizer) {
    return new Model(config.use(c -> makeWith(tokenizer,
        (t, out) -> Native.gen_model_new_custom(forward.address(), c, t, out))));
  }

  /** Writes a GGUF file with the weights of another in another type, as "Q8_0" or "Q4_K_M". An interrupt stops it. */
  public static void quantize(Path in, Path out, String type) {
    quantize(in, out, type, null);
  }

  /**
   * The same, with progress as {@link #load(Path, ModelOptions, DoubleConsumer)} tells it. The file is there only if the
   * work got to its end: before {@code progress} is told 1.
   */
  public static void quantize(Path in, Path out, String type, DoubleConsumer progress) {
    byte[] from = Text.name(in);
    byte[] to = Text.name(out);
    byte[] name = Text.name(type);
    Progress.run(progress, (callback, user) -> Native.gen_model_quantize(from, to, name, callback, user));
  }

  /** The same with options: which columns of weights count more, and types for single tensors. */
  public static void quantize(Path in, Path out, String type, QuantizeOptions options, DoubleConsumer progress) {
    byte[] from = Text.name(in);
    byte[] to = Text.name(out);
    byte[] name = Text.name(type);
    Settings.use(options, o -> {
      Progress.run(progress, (callback, user) -> Native.gen_model_quantize_with(from, to, name, o, callback, user));
      return null;
    });
  }

  /**
   * Writes a GGUF file of a model with an adapter in its weights, multiplied by {@code scale}. An interrupt stops it.
   *
   * @param type as {@link #quantize(Path, Path, String)} takes it, or null: every tensor has the type that it has in the
   *     model
   */
  public static void mergeAdapter(Path model, Path adapter, float scale, Path out, String type) {
    mergeAdapter(model, adapter, scale, out, type, null);
  }

  /** The same, with progress as {@link #quantize(Path, Path, String, DoubleConsumer)} tells it. */
  public static void mergeAdapter(Path model, Path adapter, float scale, Path out, String type, DoubleConsumer progress) {
    byte[] of = Text.name(model);
    byte[] with = Text.name(adapter);
    byte[] to = Text.name(out);
    byte[] name = Text.name(type);
    Progress.run(progress,
        (callback, user) -> Native.gen_adapter_merge(of, with, scale, to, name, callback, user));
  }

  private int config(LongToIntFunction getter) {
    return number(m -> getter.applyAsInt(Native.gen_model_get_config(m)));
  }

  /** Number of tokens of the vocabulary. */
  public int vocabSize() {
    return config(Native::gen_model_config_vocab_size);
  }

  /** Maximum tokens of a sequence, prompt included. */
  public int maxSequenceLength() {
    return config(Native::gen_model_config_max_seq_len);
  }

  /** End-of-sequence token, or -1. */
  public int eos() {
    return config(Native::gen_model_config_eos);
  }

  /** Begin-of-sequence token, or -1. */
  public int bos() {
    return config(Native::gen_model_config_bos);
  }

  /** Number of layers. */
  public int numLayers() {
    return config(Native::gen_model_config_num_layers);
  }

  /** Layers of a cache for a forward pass: fewer than the model has where layers share keys and values or keep none. */
  public int numCacheLayers() {
    return config(Native::gen_model_config_num_cache_layers);
  }

  /** Query heads of an attention layer. */
  public int numHeads() {
    return config(Native::gen_model_config_num_heads);
  }

  /** Key and value heads of an attention layer. */
  public int numKvHeads() {
    return config(Native::gen_model_config_num_kv_heads);
  }

  /** Elements of a head. */
  public int headDim() {
    return config(Native::gen_model_config_head_dim);
  }

  /** Width of the hidden state. */
  public int hidden() {
    return config(Native::gen_model_config_hidden);
  }

  /** The sizes as JSON. */
  public String describeConfig() {
    return ask(m -> Text.ask((buf, capacity, n) ->
        Native.gen_model_config_describe(Native.gen_model_get_config(m), buf, capacity, n)));
  }

  /** Metadata of the file as text, in its order; long arrays are shortened. */
  public Map<String, String> metadata() {
    return ask(m -> {
      Map<String, String> all = new LinkedHashMap<>();
      long count = Native.gen_model_metadata_count(m);
      for (long i = 0; i < count; ++i) {
        byte[] key = Native.gen_model_metadata_key(m, i);
        all.put(Text.of(key),
            Text.ask((buf, capacity, n) -> Native.gen_model_metadata_value(m, key, buf, capacity, n)));
      }
      return all;
    });
  }

  /** One metadata value as text. */
  public String metadata(String key) {
    byte[] name = Text.name(key);
    return ask(m -> Text.ask((buf, capacity, n) -> Native.gen_model_metadata_value(m, name, buf, capacity, n)));
  }

  /** The model's description as one JSON object. */
  public String describe() {
    return ask(m -> Text.ask((buf, capacity, n) -> Native.gen_model_describe(m, buf, capacity, n)));
  }

  /** Memory in bytes: "weights", "workspace", "mapped", "file" or "stream". */
  public long memory(String key) {
    byte[] name = Text.name(key);
    return ask(m -> {
      long[] bytes = new long[1];
      Native.gen_model_memory(m, name, bytes);
      return bytes[0];
    });
  }

  /**
   * Loads a low-rank adapter (LoRA) from a GGUF file, in the place of one of the same name.
   *
   * @param scale multiplies that of requests
   */
  public void loadAdapter(String path, String name, float scale) {
    byte[] file = Text.name(path);
    byte[] key = Text.name(name);
    ask(m -> {
      Native.gen_adapter_load(m, file, key, scale);
      return null;
    });
  }

  /** Forgets a name; calls that use the adapter go on with it. */
  public void unloadAdapter(String name) {
    byte[] key = Text.name(name);
    ask(m -> {
      Native.gen_adapter_unload(m, key);
      return null;
    });
  }

  /** Limits the memory of the loaded adapters to MiB, 0 for no limit: the least recently used names are forgotten. */
  public void setAdapterBudget(int maxMemoryMb) {
    ask(m -> {
      Native.gen_adapter_set_budget(m, maxMemoryMb);
      return null;
    });
  }

  /** The names of the loaded adapters, oldest first. */
  public List<String> adapters() {
    return ask(m -> {
      List<String> names = new ArrayList<>();
      for (long i = 0; i < Native.gen_adapter_count(m); ++i) {
        long index = i;
        names.add(Text.ask((buf, capacity, n) -> Native.gen_adapter_name(m, index, buf, capacity, n)));
      }
      return names;
    });
  }

  /** The model's tokenizer, which ends with the model; null for a custom model without one. */
  public Tokenizer tokenizer() {
    return ask(m -> {
      long tokenizer = Native.gen_model_tokenizer(m);
      return tokenizer != 0 ? new Tokenizer(this, tokenizer) : null;
    });
  }

  /**
   * Renders a conversation as text, for display. A message that contains the name of a special token is refused here.
   *
   * @param addGenerationPrompt end with the opening of an assistant's turn
   */
  public String format(Chat chat, boolean addGenerationPrompt) {
    int open = addGenerationPrompt ? 1 : 0;
    return ask(m -> chat.ask(c -> Text.ask((buf, capacity, n) ->
        Native.gen_chat_format(m, c, open, buf, capacity, n))));
  }

  /** Renders a conversation as tokens, with begin-of-sequence where the model wants it. */
  public int[] encode(Chat chat, boolean addGenerationPrompt) {
    int open = addGenerationPrompt ? 1 : 0;
    return ask(m -> chat.ask(c -> {
      long[] n = new long[1];
      Native.gen_chat_encode(m, c, open, null, 0, n);
      int[] ids = new int[Math.toIntExact(n[0])];
      if (ids.length > 0) Native.gen_chat_encode(m, c, open, ids, ids.length, n);
      return ids;
    }));
  }

  /**
   * Writes an importance matrix: how large the inputs of the model's matrices are on the tokens of a text. An interrupt
   * stops it.
   *
   * @param context tokens of a window, 0 for the usual number
   * @param textName what the file is to say of the text, or null
   */
  public void importance(int[] tokens, int context, String textName, Path out) {
    importance(tokens, context, textName, out, null);
  }

  /** The same, with progress as {@link #quantize(Path, Path, String, DoubleConsumer)} tells it. */
  public void importance(int[] tokens, int context, String textName, Path out, DoubleConsumer progress) {
    byte[] text = Text.name(textName);
    byte[] to = Text.name(out);
    Progress.run(progress, (callback, user) -> run(
        m -> Native.gen_model_importance(m, tokens, tokens.length, context, text, to, callback, user)));
  }

  /** Runs the model over tokens that follow what the cache holds. Gives the logits of the last one. */
  public float[] forward(int[] tokens, KvCache cache) {
    float[] logits = new float[vocabSize()];
    run(m -> cache.run(c -> Native.gen_model_forward(m, tokens, tokens.length, c, logits, logits.length)));
    return logits;
  }
}
