// SPDX-License-Identifier: Apache-2.0
// libgenerate for other languages: the low layer, one flat function for each of the C API, on which each language's own
// classes are written by hand (bindings/go, bindings/java, bindings/csharp). Users never see this layer.
//
// The same rules hold in every language; <language>.i has them as typemaps:
//   a handle                     a number, its address; 0 is NULL. So are tables and functions of C.
//   `TYPE **out`, `**result`     one owned handle: written into the first element of an array of one
//   arrays of handles            arrays of numbers; an owned output is told from them by its name, out or result
//   arrays of numbers, bytes     the language's own arrays, null for NULL; their lengths stay arguments of their own
//   `const char *` as argument   bytes without a NUL, which is added; null for NULL. A length stays an argument.
//   `const char *` as result     text of the library's, which lives long enough to be copied
//   `gen_status`, `gen_error *`  an exception or error with code and message; the argument is gone
//   callbacks                    numbers as all functions of C: nothing of the language is ever called
// A new header is one more file here with what it declares, and a line below.
%module generate_native

#if defined(SWIGGO)
%include "go.i"
#elif defined(SWIGJAVA)
%include "java.i"
#elif defined(SWIGCSHARP)
%include "csharp.i"
#else
#error "no typemaps for this language"
#endif

%include "base.i"
%include "error.i"
%include "tokenizer.i"
%include "gpu.i"
%include "model.i"
%include "quantize.i"
%include "adapter.i"
%include "sampling.i"
%include "grammar.i"
%include "result.i"
%include "generator.i"
%include "memory_estimate.i"
%include "ssm_state.i"
%include "session.i"
%include "speculative.i"
%include "eagle.i"
%include "stream.i"
%include "chat.i"
%include "agent.i"
%include "template.i"
%include "batch.i"
%include "metrics.i"
%include "custom_model.i"
%include "kv_cache.i"
%include "kv_cache_batch.i"
%include "kv_cache_gpu.i"
%include "kv_cache_pool.i"
%include "kv_cache_prefix.i"
%include "kv_cache_radix.i"
%include "kv_cache_tensor.i"
%include "kv_cache_tiered.i"
%include "trace.i"
%include "experimental.i"
%include "support.i"
