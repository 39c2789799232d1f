// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.List;
import java.util.function.LongConsumer;

/** How to load a model: immutable, each method gives new options. */
public final class ModelOptions extends Settings<ModelOptions> {
  private final boolean progress;

  private ModelOptions(List<Setter> setters, boolean progress) {
    super(setters);
    this.progress = progress;
  }

  /** CPU, one thread per usable CPU, memory-mapped file, the model's own context length. */
  public static ModelOptions defaults() {
    return new ModelOptions(List.of(), false);
  }

  /** Backend by name; "cpu" is the default. See {@link LibGenerate#backends}. */
  public ModelOptions backend(String name) {
    byte[] text = Text.name(name);
    return add(o -> Native.gen_model_options_set_backend(o, text));
  }

  /** The backend's device; 0 is the default. */
  public ModelOptions device(int device) {
    return add(o -> Native.gen_model_options_set_device(o, device));
  }

  /** Of {@link #gpuLayers} and {@link #gpuExpertLayers}: every layer. */
  public static final int ALL_GPU_LAYERS = -1;
  /** Of {@link #gpuLayers} and {@link #gpuExpertLayers}: as many as the device has memory for. */
  public static final int AUTO_GPU_LAYERS = -2;

  /** So many layers, the last ones, run on the backend's device and the others on the CPU. */
  public ModelOptions gpuLayers(int layers) {
    return add(o -> Native.gen_model_options_set_gpu_layers(o, layers));
  }

  /** For so many of these layers, the last ones, the experts are on the device, too. */
  public ModelOptions gpuExpertLayers(int layers) {
    return add(o -> Native.gen_model_options_set_gpu_expert_layers(o, layers));
  }

  /** A thread pool of the model's own, the calling thread included. */
  public ModelOptions threads(int threads) {
    return add(o -> Native.gen_model_options_set_threads(o, threads));
  }

  /** A pool that models share; it must be open when the model is loaded. */
  public ModelOptions threadPool(ThreadPool pool) {
    return add(o -> pool.run(p -> Native.gen_model_options_set_thread_pool(o, p)));
  }

  /** A gen_allocator in C for weights, workspaces and caches; it must work as long as anything made from the model. */
  public ModelOptions allocator(NativeSymbol table) {
    return add(o -> Native.gen_model_options_set_allocator(o, table.address()));
  }

  /** Where all memory on a device comes from; it must be open when the model is loaded. */
  public ModelOptions gpuAllocator(GpuAllocator allocator) {
    return add(o -> allocator.run(a -> Native.gen_model_options_set_gpu_allocator(o, a)));
  }

  /** With false the file is read into memory instead of being mapped. */
  public ModelOptions mmap(boolean use) {
    return add(o -> Native.gen_model_options_set_mmap(o, use ? 1 : 0));
  }

  /** With true the weights are locked in memory; the load fails where the system does not let it. */
  public ModelOptions mlock(boolean lock) {
    return add(o -> Native.gen_model_options_set_mlock(o, lock ? 1 : 0));
  }

  /** A gen_progress_callback in C. With one, an interrupt no longer stops the load: that is the callback's to do. */
  public ModelOptions progress(NativeSymbol callback, long user) {
    ModelOptions options = add(o -> Native.gen_model_options_set_progress(o, callback.address(), user));
    return options.withProgress();
  }

  /** Limits the context to fewer tokens than the model was trained for; 0 takes the model's own. */
  public ModelOptions maxSequenceLength(int tokens) {
    return add(o -> Native.gen_model_options_set_max_seq_len(o, tokens));
  }

  /** The load reads every weight and refuses NaN and infinity. */
  public ModelOptions checkTensors(boolean check) {
    return add(o -> Native.gen_model_options_set_check_tensors(o, check ? 1 : 0));
  }

  boolean hasProgress() {
    return progress;
  }

  private ModelOptions withProgress() {
    return new ModelOptions(setters(), true);
  }

  @Override
  ModelOptions with(List<Setter> all) {
    return new ModelOptions(all, progress);
  }

  @Override
  void make(long[] out) {
    Native.gen_model_options_new(out);
  }

  @Override
  LongConsumer free() {
    return Native::gen_model_options_free;
  }

  @Override
  void describe(long address, byte[] buf, long capacity, long[] n) {
    Native.gen_model_options_describe(address, buf, capacity, n);
  }

  @Override
  void set(long address, byte[] key, byte[] value) {
    Native.gen_model_options_set(address, key, value);
  }
}
