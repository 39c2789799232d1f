// SPDX-License-Identifier: Apache-2.0
// Typemaps of the rules in generate.i for C#. What is generated is internal to the assembly: arrays of C# are pinned, never
// copied; a Handle is held for as long as the call takes; a failure comes back as an address that becomes an exception.
// SWIG's own helpers for exceptions and strings, which call back into the runtime, are not compiled (see the options in
// bindings/csharp/CMakeLists.txt), so that nothing native ever calls managed code.
%pragma(csharp) moduleclassmodifiers="internal static unsafe class"
%pragma(csharp) imclassclassmodifiers="internal static unsafe class"
%csconst(1);
#define %NOINLINE outattributes="[global::System.Runtime.CompilerServices.MethodImpl(global::System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]"
%ignore GEN_NUL_TERMINATED;
%ignore KV_CACHE_TO_THE_END;

%{
#include <stdlib.h>

#include "support.h"

static const gen_error gen_binding_no_memory = {GEN_ERROR_OUT_OF_MEMORY, "out of memory"};

/* What became of a call: NULL, or a gen_error to be given to gen_binding_failure_free. */
static void *gen_binding_failure(gen_status status, const gen_error *error) {
  if (status == GEN_OK) return NULL;
  gen_error *failure = (gen_error *)malloc(sizeof *failure);
  if (failure == NULL) return (void *)&gen_binding_no_memory;
  failure->code = status;
  snprintf(failure->message, sizeof failure->message, "%s", error->message);
  return failure;
}

static void gen_binding_failure_free(void *failure) {
  if (failure != (void *)&gen_binding_no_memory) free(failure);
}
%}

// ---- Results. Methods are not inlined: see Loader in bindings/csharp/src/Loader.cs.

%typemap(cstype, %NOINLINE) void "void"
%typemap(csout) void {
    $imcall;
  }

%typemap(ctype, out="void *") gen_status "int32_t"
%typemap(imtype, out="global::System.IntPtr") gen_status "int"
%typemap(cstype, out="void", %NOINLINE) gen_status "int"
%typemap(in) gen_status "$1 = $input;"
%typemap(csin) gen_status "$csinput"
%typemap(out) gen_status "$result = NULL;"
%typemap(csout) gen_status {
    GenerateException.Check($imcall);
  }
%typemap(in, numinputs=0) gen_error *error (gen_error failure) "$1 = &failure;"
%typemap(argout) gen_error *error "$result = gen_binding_failure(result, $1);"

// ---- Numbers: as wide as in C, size_t as 64 bits.

%define %gen_number(CTYPE, BOUNDARY, CSTYPE)
%typemap(ctype) CTYPE "BOUNDARY"
%typemap(imtype) CTYPE "CSTYPE"
%typemap(cstype, %NOINLINE) CTYPE "CSTYPE"
%typemap(in) CTYPE "$1 = (CTYPE)$input;"
%typemap(csin) CTYPE "$csinput"
%typemap(out) CTYPE "$result = (BOUNDARY)$1;"
%typemap(csout) CTYPE {
    return $imcall;
  }
%enddef
%gen_number(int, int, int)
%typemap(cstype) int "int"  // constants; no function returns one
%gen_number(int32_t, int32_t, int)
%gen_number(uint32_t, uint32_t, uint)
%gen_number(int64_t, int64_t, long)
%gen_number(uint64_t, uint64_t, ulong)
%gen_number(size_t, int64_t, long)
%gen_number(float, float, float)
%gen_number(double, double, double)

// A single number that a call gives.
%define %gen_number_out(CTYPE, CSTYPE, NAME)
%typemap(ctype) CTYPE *NAME "CTYPE *"
%typemap(imtype) CTYPE *NAME "out CSTYPE"
%typemap(cstype) CTYPE *NAME "out CSTYPE"
%typemap(in) CTYPE *NAME "$1 = $input;"
%typemap(csin) CTYPE *NAME "out $csinput"
%enddef
%gen_number_out(size_t, long, )
%gen_number_out(uint64_t, ulong, )
%gen_number_out(double, double, )
%gen_number_out(int64_t, long, )
%gen_number_out(int32_t, int, can)
%gen_number_out(int32_t, int, cached)
%gen_number_out(int32_t, int, moved)
%gen_number_out(int32_t, int, first)
%gen_number_out(int32_t, int, positions)
%gen_number_out(int32_t, int, id)
%gen_number_out(int32_t, int, accepted)
%gen_number_out(int32_t, int, correction)

// ---- Arrays: pinned during the call, null for NULL.

%define %gen_array(PATTERN, CTYPE, CSTYPE)
%typemap(ctype) PATTERN "CTYPE *"
%typemap(imtype) PATTERN "CSTYPE *"
%typemap(cstype) PATTERN "CSTYPE[]"
%typemap(in) PATTERN "$1 = ($1_ltype)$input;"
%typemap(csin, pre="    fixed (CSTYPE *pinned_$csinput = $csinput) {", terminator="    }") PATTERN "pinned_$csinput"
%enddef
%gen_array(const int32_t *, const int32_t, int)
%gen_array(const float *, const float, float)
%gen_array(const uint8_t *, const uint8_t, byte)
%gen_array(const size_t *, const size_t, long)
%gen_array(const char *, const char, byte)
%gen_array(char *, char, byte)
%gen_array(const void *, const void, byte)
%gen_array(void *buf, void, byte)
%gen_array(void *text, void, byte)
%gen_array(void *out, void, byte)
%gen_array(int32_t *, int32_t, int)
%gen_array(uint32_t *, uint32_t, int)  // masks, as BitArray takes them
%gen_array(float *, float, float)
%gen_array(int64_t *event, int64_t, long)
%gen_array(int64_t *fields, int64_t, long)
%gen_array(int32_t shape[3], int32_t, int)
%gen_array(int32_t k_shape[3], int32_t, int)
%gen_array(int32_t v_shape[3], int32_t, int)
%gen_array(int32_t mask_shape[2], int32_t, int)

// ---- Addresses: borrowed memory, tables and functions of C.

%define %gen_address(PATTERN, CTYPE)
%typemap(ctype) PATTERN "void *"
%typemap(imtype) PATTERN "global::System.IntPtr"
%typemap(cstype, %NOINLINE) PATTERN "global::System.IntPtr"
%typemap(in) PATTERN "$1 = ($1_ltype)$input;"
%typemap(csin) PATTERN "$csinput"
%typemap(out) PATTERN "$result = (void *)$1;"
%typemap(csout) PATTERN {
    return $imcall;
  }
%enddef
%gen_address(void *user, void *)
%gen_address(void *mask, void *)
%gen_address(void *failure, void *)
// A borrowed array or text that a call returns.
%define %gen_borrowed(PATTERN, CSTYPE)
%typemap(ctype, out="const void *") PATTERN "PATTERN"
%typemap(imtype, out="global::System.IntPtr") PATTERN "CSTYPE *"
%typemap(cstype, out="global::System.IntPtr", %NOINLINE) PATTERN "CSTYPE[]"
%typemap(out) PATTERN "$result = $1;"
%typemap(csout) PATTERN {
    return $imcall;
  }
%enddef
%gen_borrowed(const int32_t *, int)
%gen_borrowed(const float *, float)
%gen_borrowed(const char *, byte)
%gen_borrowed(void *, byte)

%define %gen_address_out(PATTERN, CTYPE)
%typemap(ctype) PATTERN "CTYPE"
%typemap(imtype) PATTERN "out global::System.IntPtr"
%typemap(cstype) PATTERN "out global::System.IntPtr"
%typemap(in) PATTERN "$1 = ($1_ltype)$input;"
%typemap(csin) PATTERN "out $csinput"
%enddef
%gen_address_out(const int32_t **ids, const int32_t **)
%gen_address_out(const float **logprobs, const float **)

%define %gen_table(T)
%ignore T;
%gen_address(const T *, const T *)
%enddef
%define %gen_function(T)
%gen_address(T, T)
%enddef
%gen_address(const gen_forward_batch *, const gen_forward_batch *)

// ---- Handles: held during the call; null for NULL. Those that a call gives are addresses, for a new Handle.

%define %gen_handle(T)
%typemap(ctype, out="const void *") T *, const T * "T *"
%typemap(imtype) T *, const T * "global::System.IntPtr"
%typemap(cstype, out="global::System.IntPtr", %NOINLINE) T *, const T * "Handle"
%typemap(in) T *, const T * "$1 = ($1_ltype)$input;"
%typemap(csin, pre="    using (var held_$csinput = new Use($csinput)) {", terminator="    }") T *, const T *
  "held_$csinput.Address"
%typemap(out) T *, const T * "$result = $1;"
%typemap(csout) T *, const T * {
    return $imcall;
  }
%gen_address_out(T **out, T **)
%gen_address_out(T **result, T **)
%enddef

%define %gen_handle_array(T, NAME)
%gen_addresses(T **NAME, T **)
%gen_addresses(T *const *NAME, T *const *)
%gen_addresses(const T *const *NAME, const T *const *)
%enddef
%define %gen_addresses(PATTERN, CTYPE)
%typemap(ctype) PATTERN "CTYPE"
%typemap(imtype) PATTERN "global::System.IntPtr *"
%typemap(cstype) PATTERN "global::System.IntPtr[]"
%typemap(in) PATTERN "$1 = ($1_ltype)$input;"
%typemap(csin, pre="    fixed (global::System.IntPtr *pinned_$csinput = $csinput) {", terminator="    }") PATTERN
  "pinned_$csinput"
%enddef

void gen_binding_failure_free(void *failure);

// The numbers of support.h.
enum {
  GEN_BINDING_EVENT_STATE = 0,
  GEN_BINDING_EVENT_ID = 1,
  GEN_BINDING_EVENT_DONE = 2,
  GEN_BINDING_EVENT_FINISH_REASON = 3,
  GEN_BINDING_EVENT_INDEX = 4,
  GEN_BINDING_EVENT_LOGPROB = 5,
  GEN_BINDING_EVENT_TEXT = 6,
  GEN_BINDING_EVENT_TEXT_LEN = 7,
  GEN_BINDING_EVENT_PIECES = 8,
  GEN_BINDING_EVENT_PIECE_COUNT = 9,
  GEN_BINDING_EVENT_FIELDS = 10,
  GEN_BINDING_PIECE_KIND = 0,
  GEN_BINDING_PIECE_CALL = 1,
  GEN_BINDING_PIECE_TEXT = 2,
  GEN_BINDING_PIECE_LEN = 3,
  GEN_BINDING_PIECE_FIELDS = 4,
  GEN_BINDING_SPAN_FIELDS = 11
};
