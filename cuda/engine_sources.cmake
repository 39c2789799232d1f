# What the CUDA engine is made of, for devices and for the emulator alike.
set(GEN_CUDA_ENGINE_SOURCES
  engine/allocators.cpp engine/cuda_backend.cpp engine/cuda_engine.cpp engine/device_memory.cpp engine/device_queue.cpp
  engine/device_uploads.cpp
  engine/matrix_library.cpp engine/staging.cpp engine/step_graphs.cpp engine/step_kernel.cpp
  engine/uploaded_rows.cpp engine/weight_loader.cpp
  ops/context.cpp ops/pairs.cpp step/memory_use.cpp)
set(GEN_CUDA_KERNEL_SOURCES
  ops/attention/attention.cu ops/attention/attention_mma.cu ops/attention/attention_plain.cu ops/attention/attention_split.cu
    ops/attention/attention_tile.cu ops/attention/attention_tile_plain.cu
  ops/cache/cache_append.cu ops/cache/kv_copy.cu ops/cache/kv_pool.cu ops/cache/kv_shift.cu
  ops/elementwise/activate.cu ops/elementwise/add.cu ops/elementwise/gated.cu ops/elementwise/mean_rows.cu
    ops/elementwise/pack.cu ops/elementwise/position_scale.cu ops/elementwise/select_rows.cu
  ops/experts/experts.cu ops/experts/experts_rows_floats.cu ops/experts/experts_rows_of_256.cu
    ops/experts/experts_rows_of_32.cu ops/experts/group_experts.cu ops/experts/route.cu
  ops/linear/adapter_in.cu ops/linear/compare_sums.cu ops/linear/linear.cu ops/linear/linear_blocks_of_256.cu
    ops/linear/linear_blocks_of_32.cu ops/linear/linear_float_few.cu ops/linear/linear_float_rows.cu
    ops/linear/linear_floats.cu ops/linear/linear_rows_of_256.cu ops/linear/linear_rows_of_32.cu ops/linear/linear_rows_trial.cu
    ops/linear/linear_unpacked.cu
  ops/logits/best.cu ops/logits/best_many.cu ops/logits/mass.cu
  ops/norm/layer_norm.cu ops/norm/rms_norm.cu
  ops/sequence/causal_conv.cu ops/sequence/delta_net.cu ops/sequence/rope_angles.cu ops/sequence/rope_append.cu ops/sequence/scan.cu ops/sequence/selective_scan.cu
  ops/weight/embed.cu ops/weight/pack_tiles.cu
  step/compile.cu step/kernel.cu)
