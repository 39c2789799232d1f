# What the CUDA engine is made of, for devices and for the emulator alike.
set(GEN_CUDA_ENGINE_SOURCES
  engine/allocators.cpp engine/cuda_backend.cpp engine/cuda_engine.cpp engine/device_memory.cpp engine/device_queue.cpp
  engine/device_uploads.cpp
  engine/matrix_library.cpp engine/staging.cpp engine/step_graphs.cpp engine/step_kernel.cpp
  engine/weight_loader.cpp
  ops/context.cpp ops/pairs.cpp step/memory_use.cpp)
set(GEN_CUDA_KERNEL_SOURCES
  ops/activate.cu ops/adapter_in.cu ops/add.cu ops/attention.cu ops/attention_mma.cu ops/attention_plain.cu
  ops/attention_split.cu ops/attention_tile.cu ops/attention_tile_plain.cu ops/best.cu ops/best_many.cu ops/cache_append.cu
  ops/compare_sums.cu ops/embed.cu ops/experts.cu ops/gated.cu ops/kv_copy.cu
  ops/kv_pool.cu ops/kv_shift.cu ops/layer_norm.cu ops/linear.cu ops/linear_blocks_of_256.cu
  ops/linear_blocks_of_32.cu ops/linear_float_few.cu ops/linear_float_rows.cu ops/linear_floats.cu
  ops/linear_rows_of_256.cu ops/linear_rows_of_32.cu ops/linear_unpacked.cu ops/mass.cu ops/mean_rows.cu ops/pack.cu ops/pack_tiles.cu ops/rms_norm.cu ops/rope_angles.cu ops/rope_append.cu
  ops/route.cu
  ops/scan.cu ops/select_rows.cu step/compile.cu step/kernel.cu)
