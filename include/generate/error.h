/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: a status code as the return value and, if the caller passes one, a gen_error with one
 * line of text. There is no "last error" per thread, because goroutines and fibres change threads.
 */
#ifndef GENERATE_ERROR_H
#define GENERATE_ERROR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Owned by the caller, needs no initialisation, written only on failure. */
struct gen_error {
  int32_t code;       /**< the gen_status that the call returned */
  char message[1020]; /**< one line, NUL-terminated, naming the value and the limit */
};

/**
 * Name of a status, such as "GEN_ERROR_FORMAT"; "GEN_ERROR_UNKNOWN" for any other number.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API const char *gen_status_name(gen_status status);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_ERROR_H */
