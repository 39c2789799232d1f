// SPDX-License-Identifier: Apache-2.0
// Typemaps of the rules in generate.i for Java: package-private classes Native and NativeJNI of package dev.libgenerate.
// Arrays are copied in and out, never pinned, so that the collector is free while a call runs. A failing call throws
// GenerateException when everything else has been written back, so that partial results arrive beside it.

// Constants have Java enums of their own.
%rename("$ignore", %$isenumitem) "";
%rename("$ignore", %$isconstant) "";

%pragma(java) moduleclassmodifiers="final class"
%pragma(java) modulecode="  private Native() {}"
%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) jniclasscode=%{
  private NativeJNI() {}
  static { NativeLibrary.load(NativeJNI::gen_binding_check); }
%}

%{
#include <stdlib.h>

#include "support.h"

_Static_assert(sizeof(void *) == sizeof(jlong), "addresses are passed as 64-bit numbers");

/* Throws what GenerateException.of makes of a failure. */
static void gen_java_throw(JNIEnv *env, int32_t code, const char *message) {
  const jsize n = (jsize)strlen(message);
  jclass type = (*env)->FindClass(env, "dev/libgenerate/GenerateException");
  if (type == NULL) return;
  jmethodID make = (*env)->GetStaticMethodID(env, type, "of", "(I[B)Ldev/libgenerate/GenerateException;");
  jbyteArray text = make != NULL ? (*env)->NewByteArray(env, n) : NULL;
  if (text == NULL) return;
  (*env)->SetByteArrayRegion(env, text, 0, n, (const jbyte *)message);
  jobject exception = (*env)->CallStaticObjectMethod(env, type, make, code, text);
  if (!(*env)->ExceptionCheck(env)) (*env)->Throw(env, (jthrowable)exception);
}

/* A copy with a NUL behind it; NULL with an exception if there is no memory. */
static char *gen_java_text(JNIEnv *env, jbyteArray bytes) {
  const jsize n = (*env)->GetArrayLength(env, bytes);
  char *text = malloc((size_t)n + 1);
  if (text == NULL) {
    gen_java_throw(env, GEN_ERROR_OUT_OF_MEMORY, "no memory for a text");
    return NULL;
  }
  (*env)->GetByteArrayRegion(env, bytes, 0, n, (jbyte *)text);
  text[n] = 0;
  return text;
}

static jbyteArray gen_java_bytes(JNIEnv *env, const char *text) {
  if (text == NULL) return NULL;
  const jsize n = (jsize)strlen(text);
  jbyteArray bytes = (*env)->NewByteArray(env, n);
  if (bytes != NULL) (*env)->SetByteArrayRegion(env, bytes, 0, n, (const jbyte *)text);
  return bytes;
}
%}

// Numbers: size_t and uint64_t are the bits of a long.
typedef int int32_t;
typedef long long int64_t;
%apply long long { uint64_t, size_t };
%apply int { uint32_t };

// Failures.
%typemap(in, numinputs=0) gen_error *error (gen_error failure) "$1 = &failure;"
%typemap(freearg) gen_error *error
  "if (result != GEN_OK && !(*jenv)->ExceptionCheck(jenv)) gen_java_throw(jenv, result, $1->message);"

// gen_java_number(<C type> …): passed as its address.
%define %gen_java_number(TYPE...)
%typemap(jni) TYPE "jlong"
%typemap(jtype) TYPE "long"
%typemap(jstype) TYPE "long"
%typemap(javain) TYPE "$javainput"
%typemap(javaout) TYPE { return $jnicall; }
%typemap(in) TYPE "$1 = ($1_ltype)(intptr_t)$input;"
%typemap(out) TYPE "$result = (jlong)(intptr_t)$1;"
%typemap(freearg) TYPE ""
%enddef

// gen_java_array(<primitive>, <Name in JNI>, <JNI_ABORT for inputs, 0 for what is written back>, <C types> …)
%define %gen_java_array(JAVA, NAME, MODE, TYPES...)
%typemap(jni) TYPES "j" #JAVA "Array"
%typemap(jtype) TYPES #JAVA "[]"
%typemap(jstype) TYPES #JAVA "[]"
%typemap(javain) TYPES "$javainput"
%typemap(in) TYPES %{
  $1 = $input != NULL ? ($1_ltype)(*jenv)->Get##NAME##ArrayElements(jenv, $input, NULL) : NULL;
  if ($input != NULL && $1 == NULL) return $null; %}
%typemap(freearg) TYPES
  %{ if ($1 != NULL) (*jenv)->Release##NAME##ArrayElements(jenv, $input, (void *)$1, MODE); %}
%enddef
%gen_java_array(byte, Byte, JNI_ABORT, const void *, const uint8_t *)
%gen_java_array(byte, Byte, 0, char *, void *buf, void *mask, void *out, void *text)
%gen_java_array(int, Int, JNI_ABORT, const int32_t *)
%gen_java_array(int, Int, 0, int32_t *, uint32_t *, int32_t [ANY])
%gen_java_array(long, Long, JNI_ABORT, const size_t *)
%gen_java_array(long, Long, 0, int64_t *, uint64_t *, size_t *, const int32_t **, const float **)
%gen_java_array(float, Float, JNI_ABORT, const float *)
%gen_java_array(float, Float, 0, float *)
%gen_java_array(double, Double, 0, double *)

// Borrowed memory that is returned, for gen_binding_copy.
%define %gen_java_address(TYPES...)
%typemap(jni) TYPES "jlong"
%typemap(jtype) TYPES "long"
%typemap(jstype) TYPES "long"
%typemap(javaout) TYPES { return $jnicall; }
%typemap(out) TYPES "$result = (jlong)(intptr_t)$1;"
%enddef
%gen_java_address(const int32_t *gen_result_tokens, const float *gen_result_logprobs,
                  const int32_t *kv_cache_seq_len_device_ptr, const int32_t *kv_cache_counter_device_ptr,
                  const int32_t *kv_cache_gpu_counter_ptr,
                  const char *gen_result_text)
%gen_java_number(void *user)
%gen_java_number(void *kv_cache_block_k)
%gen_java_number(void *kv_cache_block_v)

// Texts.
%typemap(jni) const char * "jbyteArray"
%typemap(jtype) const char * "byte[]"
%typemap(jstype) const char * "byte[]"
%typemap(javain) const char * "$javainput"
%typemap(javaout) const char * { return $jnicall; }
%typemap(in) const char * %{
  $1 = $input != NULL ? gen_java_text(jenv, $input) : NULL;
  if ($input != NULL && $1 == NULL) return $null; %}
%typemap(freearg) const char * "free((void *)$1);"
%typemap(out) const char * "$result = gen_java_bytes(jenv, $1);"

// Handles, tables and functions of C.
%define %gen_handle(TYPE)
%gen_java_number(TYPE *)
%gen_java_number(const TYPE *)
%typemap(jni) TYPE **out, TYPE **result "jlongArray"
%typemap(jtype) TYPE **out, TYPE **result "long[]"
%typemap(jstype) TYPE **out, TYPE **result "long[]"
%typemap(javain) TYPE **out, TYPE **result "$javainput"
%typemap(in) TYPE **out (TYPE *made = NULL), TYPE **result (TYPE *made = NULL) "$1 = $input != NULL ? &made : NULL;"
%typemap(freearg) TYPE **out, TYPE **result %{
  if ($input != NULL) {
    const jlong address = (jlong)(intptr_t)*$1;
    (*jenv)->SetLongArrayRegion(jenv, $input, 0, 1, &address);
  } %}
%enddef
%define %gen_handle_array(TYPE, NAME)
%gen_java_array(long, Long, JNI_ABORT, TYPE *const *NAME, const TYPE *const *NAME)
%gen_java_array(long, Long, 0, TYPE **NAME)
%enddef
%define %gen_table(TYPE)
%ignore TYPE;
%gen_java_number(const TYPE *)
%enddef
%define %gen_function(TYPE)
%gen_java_number(TYPE)
%enddef
%gen_table(gen_forward_batch)

// What Java alone needs.
%inline %{
/* Writes n bytes to memory that is the caller's by a contract of the library, as a block of a pool. */
static void gen_java_store(int64_t address, const void *data, size_t n) {
  if (n > 0) memcpy((void *)(intptr_t)address, data, n);
}
%}
