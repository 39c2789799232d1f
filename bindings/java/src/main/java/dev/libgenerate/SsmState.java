// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/**
 * The state of recurrent layers: [batch, dInner, dState] of float32 for each of your own, and for those of a session
 * (Session.state) what their kind says. One thread at a time.
 */
public final class SsmState extends Handle {
  /** A state of zeros for one sequence. */
  public SsmState(int layers, int dInner, int dState) {
    this(layers, 1, dInner, dState);
  }

  /** A state of zeros for sequences that advance together. */
  public SsmState(int layers, int batch, int dInner, int dState) {
    super("state", make(out -> Native.gen_ssm_state_new_batch(layers, batch, dInner, dState, out)),
        Native::gen_ssm_state_free);
  }

  SsmState(Handle owner, long address) {
    super(owner, address);
  }

  /** Number of tokens that a session's state is after; 0 for one of your own. Also while a call runs. */
  public int position() {
    return number(Native::gen_ssm_state_position);
  }

  /** What a layer is, such as "delta net"; null if there is no such layer. */
  public String layerKind(int layer) {
    return ask(s -> Text.of(Native.gen_ssm_state_layer_kind(s, layer)));
  }

  /** The layer of the model that a layer of the state belongs to; -1 if there is no such layer. */
  public int layerIndex(int layer) {
    return ask(s -> Native.gen_ssm_state_layer_index(s, layer));
  }

  /** Number of layers. */
  public int layers() {
    return number(Native::gen_ssm_state_num_layers);
  }

  /** A copy of the state of a layer. */
  public KvCache.Tensor layer(int layer) {
    return ask(s -> {
      int[] shape = new int[3];
      Native.gen_ssm_state_get_layer(s, layer, null, 0, shape);
      float[] h = Shapes.array(shape);
      Native.gen_ssm_state_get_layer(s, layer, h, h.length, shape);
      return Shapes.tensor(h, shape);
    });
  }

  /** Replaces the state of a layer, but not of a session. */
  public void setLayer(int layer, float[] h, int batch, int dInner, int dState) {
    Shapes.check(h, "numbers", batch, dInner, dState);
    run(s -> Native.gen_ssm_state_set_layer(s, layer, h, batch, dInner, dState));
  }

  /** Keeps a copy of all layers and gives its number; the last 16 are kept. */
  public long snapshot() {
    return ask(s -> {
      long[] number = new long[1];
      Native.gen_ssm_state_snapshot(s, number);
      return number[0];
    });
  }

  /** Makes the state that of a snapshot. A session then holds again what it held when it was taken. */
  public void restore(long snapshot) {
    run(s -> Native.gen_ssm_state_restore(s, snapshot));
  }

  /** Sets all layers to zeros; a session has its own reset. */
  public void reset() {
    run(Native::gen_ssm_state_reset);
  }

  /** Bytes of the state; 0 for a custom model. */
  public long memoryBytes() {
    return ask(Native::gen_ssm_state_memory_bytes);
  }
}
