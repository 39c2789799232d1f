/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of the public structs in version 0.1, by that version's header, which cannot stand beside today's. */
#include "../abi/0.1/generate.h"

#include "first_sizes.h"

const struct first_sizes first_sizes = {sizeof(gen_allocator), sizeof(gen_forward), sizeof(gen_metrics_sink),
                                        sizeof(kv_cache_span), sizeof(gen_forward_batch), sizeof(gen_token)};
