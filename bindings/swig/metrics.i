// SPDX-License-Identifier: Apache-2.0
// <generate/metrics.h>: what is counted and measured.
%gen_handle(gen_metrics_memory)
%gen_table(gen_metrics_sink)
%include <generate/metrics.h>
