// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.List;
import java.util.function.LongConsumer;

/** Sizes of a custom model, see {@link Model#custom}: immutable, each method gives a new one. */
public final class ModelConfig extends Settings<ModelConfig> {
  private ModelConfig(List<Setter> setters) {
    super(setters);
  }

  /** The two sizes that must be set: tokens of the vocabulary, and the most that a sequence can hold. */
  public static ModelConfig of(int vocabSize, int maxSequenceLength) {
    return new ModelConfig(List.of())
        .add(c -> Native.gen_model_config_set_vocab_size(c, vocabSize))
        .add(c -> Native.gen_model_config_set_max_seq_len(c, maxSequenceLength));
  }

  /** The token that ends a text, beside those that the tokenizer knows; -1 for none. */
  public ModelConfig eos(int token) {
    return add(c -> Native.gen_model_config_set_eos(c, token));
  }

  /** The begin-of-sequence token; -1 for the tokenizer's. */
  public ModelConfig bos(int token) {
    return add(c -> Native.gen_model_config_set_bos(c, token));
  }

  /** Number of layers. */
  public ModelConfig numLayers(int layers) {
    return add(c -> Native.gen_model_config_set_num_layers(c, layers));
  }

  /** Query heads of a layer. */
  public ModelConfig numHeads(int heads) {
    return add(c -> Native.gen_model_config_set_num_heads(c, heads));
  }

  /** Key and value heads of a layer. */
  public ModelConfig numKvHeads(int heads) {
    return add(c -> Native.gen_model_config_set_num_kv_heads(c, heads));
  }

  /** Elements of a head. */
  public ModelConfig headDim(int elements) {
    return add(c -> Native.gen_model_config_set_head_dim(c, elements));
  }

  /** Width of the hidden state; 0 for a model that gives none. */
  public ModelConfig hidden(int elements) {
    return add(c -> Native.gen_model_config_set_hidden(c, elements));
  }

  /** In how many layers the function uses gen_forward_attention. */
  public ModelConfig kvLayers(int layers) {
    return add(c -> Native.gen_model_config_set_kv_layers(c, layers));
  }

  /** The name under which the model is shown and its saved sessions are known. */
  public ModelConfig name(String name) {
    byte[] text = Text.name(name);
    return add(c -> Native.gen_model_config_set_name(c, text));
  }

  @Override
  ModelConfig with(List<Setter> all) {
    return new ModelConfig(all);
  }

  @Override
  void make(long[] out) {
    Native.gen_model_config_new(out);
  }

  @Override
  LongConsumer free() {
    return Native::gen_model_config_free;
  }

  @Override
  void describe(long address, byte[] buf, long capacity, long[] n) {
    Native.gen_model_config_describe(address, buf, capacity, n);
  }

  @Override
  void set(long address, byte[] key, byte[] value) {
    Native.gen_model_config_set(address, key, value);
  }
}
