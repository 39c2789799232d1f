// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.file.Path;

/**
 * Will it fit: what loading a file and filling one session would take, in bytes, found without loading it.
 *
 * @param weights of the loaded model
 * @param workspace scratch of its forward passes
 * @param cache keys and values of one session with a full context
 * @param snapshots the most that snapshots of its state may take
 * @param peak the maximum held at any time
 * @param deviceWeights weights in a device's memory; those above are in the host's
 * @param deviceWorkspace scratch in a device's memory
 * @param deviceCache keys and values in a device's memory
 * @param deviceSnapshots the same in a device's memory
 * @param devicePeak the maximum of device memory held at any time
 * @param mapped what stays mapped of the file, not part of the peak
 * @param file size of the file
 */
public record MemoryEstimate(long weights, long workspace, long cache, long snapshots, long peak,
    long deviceWeights, long deviceWorkspace, long deviceCache, long deviceSnapshots, long devicePeak, long mapped, long file) {
  /** @param modelOptions and {@code options} may be null for the defaults. */
  public static MemoryEstimate of(Path path, ModelOptions modelOptions, GeneratorOptions options) {
    long address = Settings.use(modelOptions, m -> Settings.use(options,
        o -> Handle.make(out -> Native.gen_estimate_memory(Text.name(path), m, o, out))));
    try {
      return new MemoryEstimate(get(address, "weights"), get(address, "workspace"), get(address, "cache"),
          get(address, "snapshots"), get(address, "peak"), get(address, "device_weights"),
          get(address, "device_workspace"), get(address, "device_cache"), get(address, "device_snapshots"),
          get(address, "device_peak"), get(address, "mapped"), get(address, "file"));
    } finally {
      Native.gen_memory_estimate_free(address);
    }
  }

  private static long get(long address, String key) {
    long[] bytes = new long[1];
    Native.gen_memory_estimate_get(address, Text.name(key), bytes);
    return bytes[0];
  }
}
