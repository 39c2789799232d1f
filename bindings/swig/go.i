// SPDX-License-Identifier: Apache-2.0
// Typemaps of the rules in generate.i for Go. Beyond them: a failing call returns an error, which is nil otherwise; a text
// with its length is one Go string and crosses without a copy, as slices do.
%rename("%(camelcase)s", %$isfunction) "";
%rename("$ignore", %$isenumitem) "";
%ignore GEN_NUL_TERMINATED;

%go_import("strings")
%insert(go_header) %{
// Failure makes the error of a status and its message; the package above sets it before it calls anything.
var Failure func(code int32, message string) error

// failure takes the bytes that fail() of the wrapper made: the code, then the message.
func failure(bytes []byte) error {
	if bytes == nil {
		return nil
	}
	code, message := *(*int32)(unsafe.Pointer(&bytes[0])), string(bytes[4:])
	if len(bytes) == cap(bytes) {
		Swig_free(uintptr(unsafe.Pointer(&bytes[0])))
	}
	return Failure(code, message)
}
%}

// Slices hold numbers only. With a type for what they hold, cgo does not look for Go pointers in whatever object a slice is
// a part of, which takes time and refuses parts of structs.
%insert(cgo_comment_typedefs) %{
typedef struct { char* array; intgo len; intgo cap; } numbers_slice;
#define _goslice_ numbers_slice
%}

%{
#include <generate/error.h>

/* A failure as bytes that failure() in Go copies and frees; those that are not to be freed have a larger capacity. */
static _goslice_ fail(gen_status status, gen_error *error) {
  static struct { int32_t code; char message[16]; } no_memory = {GEN_ERROR_OUT_OF_MEMORY, "out of memory"};
  _goslice_ bytes = {NULL, 0, 0};
  if (status == GEN_OK) return bytes;
  const size_t length = strlen(error->message);
  error->code = status;
  bytes.array = malloc(sizeof error->code + length);
  if (bytes.array != NULL) {
    memcpy(bytes.array, error, sizeof error->code + length);
    bytes.len = bytes.cap = (intgo)(sizeof error->code + length);
  } else {
    bytes.array = &no_memory;
    bytes.len = (intgo)(sizeof no_memory.code + strlen(no_memory.message));
    bytes.cap = bytes.len + 1;
  }
  return bytes;
}
%}

// Numbers.
%typemap(gotype) int32_t "int32"
%typemap(gotype) uint32_t "uint32"
%typemap(gotype) int64_t "int64"
%typemap(gotype) uint64_t "uint64"
%typemap(gotype) size_t "int"
%typemap(in) int32_t, uint32_t, int64_t, uint64_t, size_t %{ $1 = ($1_ltype)$input; %}
%typemap(out) int32_t, uint32_t, int64_t, uint64_t, size_t %{ $result = $1; %}
%typemap(goout) int32_t, uint32_t, int64_t, uint64_t, size_t ""

// Statuses and errors.
%typemap(gotype) gen_status "error"
%typemap(imtype) gen_status "[]byte"
%typemap(out) gen_status ""
%typemap(goout) gen_status "$result = failure($1)"
%typemap(in, numinputs=0) gen_error *error (gen_error failure) %{
  failure.code = 0;
  failure.message[0] = 0;
  $1 = &failure;
%}
%typemap(argout) gen_error *error "_swig_go_result = fail(result, $1);"
%typemap(gotype) gen_status status "int32"
%typemap(imtype) gen_status status "int32"
%typemap(in) gen_status status "$1 = $input;"

// Addresses.
%define %gen_address(TYPE)
%typemap(gotype) TYPE "uintptr"
%typemap(in) TYPE "$1 = ($1_ltype)$input;"
%typemap(out) TYPE "$result = (void *)$1;"
%typemap(goout) TYPE ""
%enddef
%gen_address(void *user)
%gen_address(const gen_forward_batch *)
%typemap(gotype) void * "uintptr"
%typemap(out) void * "$result = $1;"
%typemap(goout) void * ""

// Arrays: the first element of a slice.
%define %gen_array(TYPE, GOTYPE)
%typemap(gotype) TYPE "[]GOTYPE"
%typemap(in) TYPE "$1 = ($1_ltype)$input.array;"
%typemap(freearg) TYPE ""
%enddef
%gen_array(int32_t *, int32)
%gen_array(const int32_t *, int32)
%gen_array(int64_t *, int64)
%gen_array(uint64_t *, uint64)
%gen_array(uint32_t *, uint32)
%gen_array(size_t *, int)
%gen_array(const size_t *, int)
%gen_array(float *, float32)
%gen_array(const float *, float32)
%gen_array(double *, float64)
%gen_array(const uint8_t *, byte)
%gen_array(char *buf, byte)
%gen_array(void *buf, byte)
%gen_array(void *text, byte)
%gen_array(void *out, byte)
%gen_array(void *mask, byte)
%gen_array(const void *data, byte)
%gen_array(int32_t [ANY], int32)
%gen_array(const int32_t **, uintptr)
%gen_array(const float **, uintptr)

%define %gen_handle(T)
%gen_address(T *)
%gen_address(const T *)
%gen_array(T **out, uintptr)
%gen_array(T **result, uintptr)
%enddef
%define %gen_handle_array(T, name)
%gen_array(T *const *name, uintptr)
%gen_array(const T *const *name, uintptr)
%gen_array(T **name, uintptr)
%enddef
%define %gen_table(T)
%ignore T;
%gen_address(const T *)
%enddef
%define %gen_function(T)
%gen_address(T)
%enddef

// Texts. One with a NUL in it cannot be said in C, and is NULL: never another text than was given.
%typemap(gotype) const char * "string"
%typemap(in) const char * %{
  $1 = NULL;
  if ($input.n == 0 || memchr($input.p, 0, (size_t)$input.n) == NULL) {
    $1 = ($1_ltype)malloc((size_t)$input.n + 1);
    if ($1 != NULL) {
      memcpy($1, $input.p, (size_t)$input.n);
      $1[$input.n] = 0;
    }
  }
%}
%typemap(freearg) const char * "free($1);"
%typemap(out) const char * %{
  $result.p = (char *)$1;
  $result.n = $1 != NULL ? (intgo)strlen($1) : 0;
%}
%typemap(goout) const char * "$result = strings.Clone($1)"
%define %gen_text(NAME, LENGTH)
%typemap(gotype) (const char *NAME, size_t LENGTH) "string"
%typemap(in) (const char *NAME, size_t LENGTH) %{
  $1 = $input.n > 0 ? $input.p : "";
  $2 = (size_t)$input.n;
%}
%typemap(freearg) (const char *NAME, size_t LENGTH) ""
%enddef
%gen_text(text, len)
%gen_text(prompt, len)
%gen_text(pattern, len)
%gen_text(schema, len)
%gen_text(bytes, len)
%gen_text(arguments, len)
%gen_text(description, len)
%gen_text(value, len)
%gen_text(request, len)
%gen_text(task, len)
%gen_text(output, len)
%gen_text(prefix, prefix_len)
%gen_text(suffix, suffix_len)

%gen_address(const char *gen_result_text)
%gen_address(const int32_t *gen_result_tokens)
%gen_address(const float *gen_result_logprobs)
%gen_address(const int32_t *kv_cache_seq_len_device_ptr)
%gen_address(const int32_t *kv_cache_counter_device_ptr)
%gen_address(const int32_t *kv_cache_gpu_counter_ptr)
%gen_address(void *kv_cache_block_k)
%gen_address(void *kv_cache_block_v)
